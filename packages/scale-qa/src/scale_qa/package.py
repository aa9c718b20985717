"""A benchmark package on disk: what a system sees, what it is asked, and the gold it must not see.

    DIR/manifest.json               seeds, counts, arrangement, noise sources, SHA-256 of every file
    DIR/batches/000/stream.jsonl    {"role", "text"} and, where the source knows it, "timestamp" (ISO 8601)
    DIR/batches/000/questions.jsonl {"id", "query", "options", "answer", "evidence": [turn positions], ...}
    DIR/batches/000/source_ids.jsonl  of converted data: the source's id of each turn
    DIR/batches/000/gold.jsonl      {"id", "kind", "spans": [[start, end), ...]}: source dialogues

A batch is one thread: a system ingests its stream, answers its questions, and starts the next batch empty.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tsim_core.types import Turn

from scale_qa.errors import PackageError, RecordError
from scale_qa.records import dump_line, read_jsonl
from scale_qa.tokens import words, words_to_tokens

FORMAT = "scale-qa-package/1"
REACH = (1_000, 5_000, 20_000)
_MANIFEST_KEYS = {"batches", "counts", "files", "reachability"}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked over a batch.

    Attributes:
        id: Unique in the package.
        query: The question.
        evidence: Positions in the stream of every turn that is needed, ascending.
        answer: A letter where there are options, else the expected answer as text.
        options: Four texts, or none for an open question.
        topic: Domain, or the source's own category.
        stress: Stress cues; see `scale_qa.records.STRESS_CUES`.
        overlap: See `scale_qa.records.OVERLAPS`; None where nobody labelled it.
        language: ISO 639-1 code.
        reasoning: A reference rationale; empty where there is none.
        asked_at: When it was asked, where the source says so.
    """

    id: str
    query: str
    evidence: tuple[int, ...]
    answer: str
    options: tuple[str, ...] = ()
    topic: str = ""
    stress: tuple[str, ...] = ()
    overlap: str | None = None
    language: str = "en"
    reasoning: str = ""
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class GoldUnit:
    """A source dialogue (or session) of the stream; for diagnostics and segmentation scores only.

    Attributes:
        id: Record id, noise id or session id.
        kind: "truth", "noise" or "session".
        spans: Runs of stream positions [start, end), ascending; several where dialogues are braided.
    """

    id: str
    kind: str
    spans: tuple[tuple[int, int], ...]

    @property
    def turns(self) -> tuple[int, ...]:
        """Every stream position of the dialogue."""
        return tuple(i for start, end in self.spans for i in range(start, end))


@dataclass(frozen=True, slots=True)
class Batch:
    """One thread and what is asked about it."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    gold: tuple[GoldUnit, ...]


@dataclass(frozen=True)
class Package:
    """A verified package; batches are read when asked for, so a large one need not fit in memory.

    Attributes:
        directory: Where it lies.
        manifest: The parsed manifest.
        digest: SHA-256 of the manifest, which holds the hashes of all else: the identity of the package.
    """

    directory: Path
    manifest: Mapping[str, Any]
    digest: str

    @property
    def batch_names(self) -> tuple[str, ...]:
        """Names of the batches, in order."""
        return tuple(batch["name"] for batch in self.manifest["batches"])

    def __iter__(self) -> Iterator[Batch]:
        return map(self.batch, self.batch_names)

    def batch(self, name: str) -> Batch:
        """Read one batch.

        Raises:
            PackageError: If there is no such batch, or a line of it is malformed.
        """
        if name not in self.batch_names:
            raise PackageError(f"{self.directory}: no batch {name!r}; there are {', '.join(self.batch_names)}")
        folder = self.directory / "batches" / name
        try:
            turns = tuple(_turn(row) for _, row in read_jsonl(folder / "stream.jsonl"))
            questions = tuple(_question(row) for _, row in read_jsonl(folder / "questions.jsonl"))
            gold = tuple(_gold(row) for _, row in read_jsonl(folder / "gold.jsonl"))
        except (RecordError, KeyError, TypeError, ValueError) as error:
            raise PackageError(f"{folder}: not a batch of {FORMAT}: {error!r}") from error
        for question in questions:
            if not question.evidence or not 0 <= question.evidence[0] <= question.evidence[-1] < len(turns):
                raise PackageError(
                    f"{folder}: question {question.id!r} has evidence {question.evidence} "
                    f"outside of the {len(turns)} turns"
                )
        return Batch(name, turns, questions, gold)


def load_package(directory: Path | str) -> Package:
    """Open a package and verify the hash of every file.

    Raises:
        PackageError: If there is none, a file is missing or extra, or a hash does not match.
    """
    directory = Path(directory)
    path = directory / "manifest.json"
    try:
        raw = path.read_bytes()
        manifest = json.loads(raw)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PackageError(f"{directory}: no package (no manifest.json); build one with scale-qa build") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise PackageError(f"{path}: not JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or not set(manifest) >= _MANIFEST_KEYS:
        raise PackageError(f"{path}: not a manifest of {FORMAT}; build the package again")
    listed = set(manifest["files"])
    present = {p.relative_to(directory).as_posix() for p in (directory / "batches").rglob("*") if p.is_file()}
    if listed != present:
        odd = sorted(listed ^ present)[0]
        state = "is missing" if odd in listed else "is not in the manifest"
        raise PackageError(f"{directory}: {odd} {state}; build the package again")
    for name, expected in sorted(manifest["files"].items()):
        with (directory / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise PackageError(f"{directory}: {name} was changed since it was built (SHA-256 differs); rebuild")
    return Package(directory, manifest, hashlib.sha256(raw).hexdigest())


class PackageWriter:
    """Writes a package batch by batch, hashing as it goes. The manifest comes last: a torso never loads.

    Args:
        directory: An empty or new folder, or an older package, which is replaced.

    Raises:
        PackageError: If the folder holds anything else.
    """

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        if self.directory.exists() and any(self.directory.iterdir()):
            if not (self.directory / "batches").is_dir():
                raise PackageError(f"{self.directory}: not empty and no package; choose another folder")
            (self.directory / "manifest.json").unlink(missing_ok=True)
            shutil.rmtree(self.directory / "batches")
        self._files: dict[str, str] = {}
        self._batches: list[dict[str, Any]] = []
        self._reached = dict.fromkeys(REACH, 0)

    def write_batch(
        self,
        turns: Iterable[Turn],
        questions: Iterable[Question],
        gold: Iterable[GoldUnit],
        label: str | None = None,
        source_ids: Mapping[int, str] | None = None,
    ) -> None:
        """Write the next batch.

        Args:
            turns: The stream; may be a generator and is not kept.
            questions: What is asked.
            gold: The source dialogues.
            label: What the source calls this batch; for the manifest.
            source_ids: The source's id of each turn, by position; written apart, for looking evidence up.
        """
        name = f"{len(self._batches):03d}"
        counts: list[int] = []

        def counted() -> Iterator[str]:
            for turn in turns:
                counts.append(words(turn.text))
                yield dump_line(_turn_row(turn))

        self._write(f"batches/{name}/stream.jsonl", counted())
        tail, left = [0] * len(counts), 0
        for i in range(len(counts) - 1, -1, -1):
            left += counts[i]
            tail[i] = left
        asked = list(questions)
        for question in asked:
            if not question.evidence or question.evidence[-1] >= len(counts):
                raise PackageError(f"question {question.id!r} has evidence outside of its stream")
            for reach in REACH:
                self._reached[reach] += words_to_tokens(tail[question.evidence[0]]) <= reach
        units = list(gold)
        self._write(f"batches/{name}/questions.jsonl", (dump_line(_question_row(q)) for q in asked))
        self._write(f"batches/{name}/gold.jsonl", (dump_line(_gold_row(unit)) for unit in units))
        if source_ids:
            rows = ({"turn": turn, "id": id} for turn, id in sorted(source_ids.items()))
            self._write(f"batches/{name}/source_ids.jsonl", map(dump_line, rows))
        noise = sum(counts[i] for unit in units if unit.kind == "noise" for i in unit.turns)
        total = sum(counts)
        self._batches.append(
            {
                "name": name,
                **({"label": label} if label else {}),
                "turns": len(counts),
                "tokens": words_to_tokens(total),
                "noise_tokens": words_to_tokens(noise),
                "questions": len(asked),
                "dialogues": len(units),
            }
        )

    def finish(self, **facts: Any) -> Package:
        """Write the manifest.

        Args:
            facts: What else it says: name, seeds, arrangement, noise sources and so on, as JSON values.

        Returns:
            The finished package.
        """
        questions = sum(batch["questions"] for batch in self._batches)
        manifest = {
            "format": FORMAT,
            **facts,
            "counts": {key: sum(b[key] for b in self._batches) for key in ("turns", "questions", "dialogues")},
            "reachability": {str(k): round(v / max(questions, 1), 6) for k, v in self._reached.items()},
            "batches": self._batches,
            "files": self._files,
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"
        (self.directory / "manifest.json").write_text(text, encoding="utf-8", newline="\n")
        return load_package(self.directory)

    def _write(self, name: str, lines: Iterable[str]) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with path.open("wb") as out:
            for line in lines:
                raw = line.encode("utf-8")
                digest.update(raw)
                out.write(raw)
        self._files[name] = digest.hexdigest()


def _turn_row(turn: Turn) -> dict[str, Any]:
    row = {"role": turn.role, "text": turn.text}
    if turn.timestamp is not None:
        row["timestamp"] = turn.timestamp.isoformat()
    return row


def _turn(row: Mapping[str, Any]) -> Turn:
    return Turn(row["role"], row["text"], timestamp=_time(row.get("timestamp")))


def _question_row(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "query": question.query,
        "options": list(question.options),
        "answer": question.answer,
        "evidence": list(question.evidence),
        "topic": question.topic,
        "stress": list(question.stress),
        "overlap": question.overlap,
        "language": question.language,
        "reasoning": question.reasoning,
        "asked_at": question.asked_at.isoformat() if question.asked_at else None,
    }


def _question(row: Mapping[str, Any]) -> Question:
    return Question(
        id=row["id"],
        query=row["query"],
        evidence=tuple(sorted(row["evidence"])),
        answer=row["answer"],
        options=tuple(row["options"]),
        topic=row["topic"],
        stress=tuple(row["stress"]),
        overlap=row["overlap"],
        language=row["language"],
        reasoning=row["reasoning"],
        asked_at=_time(row["asked_at"]),
    )


def _gold_row(unit: GoldUnit) -> dict[str, Any]:
    return {"id": unit.id, "kind": unit.kind, "spans": [list(span) for span in unit.spans]}


def _gold(row: Mapping[str, Any]) -> GoldUnit:
    return GoldUnit(row["id"], row["kind"], tuple((start, end) for start, end in row["spans"]))


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
