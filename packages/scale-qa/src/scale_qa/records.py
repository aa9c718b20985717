"""Records (questions with their dialogue) and noise dialogues, one JSON object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from scale_qa.errors import RecordError

DOMAINS = (
    "CS-Software",
    "Network-Hardware",
    "Finance",
    "Legal",
    "Biomed",
    "Engineering",
    "Biz-Ops",
    "Social-Personal",
    "Game-Novel",
    "Daily-Life",
)
LETTERS = ("A", "B", "C", "D")
STRESS_CUES = ("state_overwrite", "long_range_bridge", "constraint_trap")
OVERLAPS = ("lexical", "paraphrase", "indirect")
LANGUAGES = ("en", "zh", "es", "de", "ja")
ROLES = ("user", "assistant")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a dialogue."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """One four-way question and the dialogue that decides it.

    Attributes:
        id: Unique name, such as ``our:Legal-014``.
        topic: One of `DOMAINS` in our data; imported data may name others.
        dialogue: The turns, in order.
        query: What is asked, long after the dialogue.
        options: Exactly four; none in imported records whose query itself lists them.
        answer: Letter of the one right option.
        expected_doc: The evidence; each is the exact text of one turn of the dialogue.
        reasoning: Which turns decide and how.
        stress: Any of `STRESS_CUES`.
        overlap: How the query reaches its evidence, one of `OVERLAPS`; None where it was never labelled.
        language: ISO 639-1 code.
        family: The scenario family it was drawn from; None for records from elsewhere.
    """

    id: str
    topic: str
    dialogue: tuple[Message, ...]
    query: str
    options: tuple[str, ...]
    answer: str
    expected_doc: tuple[str, ...]
    reasoning: str = ""
    stress: tuple[str, ...] = ()
    overlap: str | None = None
    language: str = "en"
    family: str | None = None

    @property
    def answer_text(self) -> str:
        """The right option; empty where the query itself lists the options."""
        if not self.options:
            return ""
        return self.options[LETTERS.index(self.answer)]

    def evidence_turns(self) -> tuple[int, ...]:
        """Position in the dialogue of each evidence text; the first where a text comes twice."""
        texts = [turn.text for turn in self.dialogue]
        return tuple(texts.index(text) for text in self.expected_doc)


@dataclass(frozen=True, slots=True)
class NoiseDialogue:
    """A dialogue that answers no question.

    Attributes:
        id: Unique within its source.
        source: Where it comes from, such as ``oasst`` or ``own``; printed in every report.
        licence: Licence of the source.
        turns: The turns, in order.
    """

    id: str
    source: str
    licence: str
    turns: tuple[Message, ...]


def record_to_dict(record: Record) -> dict[str, Any]:
    """The JSON object of a record, keys in the order of the design; empty optional fields are left out."""
    data: dict[str, Any] = {
        "id": record.id,
        "topic": record.topic,
        "dialogue": [{"role": turn.role, "text": turn.text} for turn in record.dialogue],
        "query": record.query,
        "options": list(record.options),
        "answer": record.answer,
        "expected_doc": list(record.expected_doc),
        "reasoning": record.reasoning,
        "stress": list(record.stress),
    }
    if record.overlap is not None:
        data["overlap"] = record.overlap
    data["language"] = record.language
    if record.family is not None:
        data["family"] = record.family
    return data


def record_from_dict(data: Mapping[str, Any]) -> Record:
    """Check one JSON object and make a record of it.

    Raises:
        RecordError: If a key is missing or unknown, or a value has the wrong type or breaks a rule of the
            format: four different options, a letter as answer, evidence that is the exact text of a turn.
    """
    _keys(data, _RECORD_REQUIRED, _RECORD_OPTIONAL)
    overlap, family = data.get("overlap"), data.get("family")
    record = Record(
        id=_text(data, "id"),
        topic=_text(data, "topic"),
        dialogue=_turns(data, "dialogue"),
        query=_text(data, "query"),
        options=_texts(data, "options"),
        answer=_text(data, "answer"),
        expected_doc=_texts(data, "expected_doc"),
        reasoning=_text(data, "reasoning") if data.get("reasoning") else "",
        stress=_texts(data, "stress") if data.get("stress") else (),
        overlap=None if overlap is None else _text(data, "overlap"),
        language=_text(data, "language") if "language" in data else "en",
        family=None if family is None else _text(data, "family"),
    )
    check_record(record)
    return record


def noise_to_dict(noise: NoiseDialogue) -> dict[str, Any]:
    """The JSON object of a noise dialogue."""
    return {
        "id": noise.id,
        "source": noise.source,
        "licence": noise.licence,
        "turns": [{"role": turn.role, "text": turn.text} for turn in noise.turns],
    }


def noise_from_dict(data: Mapping[str, Any]) -> NoiseDialogue:
    """Check one JSON object and make a noise dialogue of it.

    Raises:
        RecordError: If a key is missing or unknown or a value has the wrong type.
    """
    _keys(data, ("id", "source", "licence", "turns"), ())
    return NoiseDialogue(_text(data, "id"), _text(data, "source"), _text(data, "licence"), _turns(data, "turns"))


def read_records(*paths: Path) -> list[Record]:
    """Read record files.

    Raises:
        RecordError: If a line is malformed or an id comes twice; names the file and the line.
    """
    records: list[Record] = []
    seen: dict[str, str] = {}
    for path in paths:
        for where, data in read_jsonl(path):
            record = _located(where, record_from_dict, data)
            if record.id in seen:
                raise RecordError(f"{where}: id {record.id!r} was already used at {seen[record.id]}")
            seen[record.id] = where
            records.append(record)
    return records


def read_noise(path: Path) -> Iterator[NoiseDialogue]:
    """Read a noise file line by line.

    Raises:
        RecordError: If a line is malformed; names the file and the line.
    """
    for where, data in read_jsonl(path):
        yield _located(where, noise_from_dict, data)


def read_jsonl(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file:line", object) for each line; blank lines are skipped.

    Raises:
        RecordError: If the file is missing or not UTF-8, or a line is no JSON object.
    """
    try:
        with path.open("rb") as lines:
            for number, raw in enumerate(lines, 1):
                if not raw.strip():
                    continue
                where = f"{path}:{number}"
                try:
                    data = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
                except UnicodeDecodeError as error:
                    raise RecordError(f"{where}: not UTF-8: {error}") from error
                except json.JSONDecodeError as error:
                    raise RecordError(f"{where}: not JSON: {error}") from error
                if not isinstance(data, dict):
                    raise RecordError(f"{where}: expected a JSON object, got {type(data).__name__}")
                yield where, data
    except (FileNotFoundError, IsADirectoryError) as error:
        raise RecordError(f"{path}: no such file") from error


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write records, one a line; the same records give the same bytes."""
    write_jsonl(path, map(record_to_dict, records))


def write_noise(path: Path, noise: Iterable[NoiseDialogue]) -> None:
    """Write noise dialogues, one a line."""
    write_jsonl(path, map(noise_to_dict, noise))


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON objects, one a line, UTF-8, Unix line ends on every machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(dump_line(row) for row in rows)


def dump_line(row: Mapping[str, Any]) -> str:
    """One JSON line, the same on every machine."""
    return json.dumps(row, ensure_ascii=False) + "\n"


_RECORD_REQUIRED = ("id", "topic", "dialogue", "query", "options", "answer", "expected_doc")
_RECORD_OPTIONAL = ("reasoning", "stress", "overlap", "language", "family")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _located(where: str, build: Callable[[Mapping[str, Any]], T], data: Mapping[str, Any]) -> T:
    try:
        return build(data)
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from error


def _keys(data: Mapping[str, Any], required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    missing = [key for key in required if key not in data]
    if missing:
        raise RecordError(f"missing key(s): {', '.join(missing)}")
    unknown = [key for key in data if key not in required + optional]
    if unknown:
        raise RecordError(f"unknown key(s): {', '.join(unknown)}; known: {', '.join(required + optional)}")


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data[key]
    if not isinstance(value, str) or not value.strip():
        raise RecordError(f"{key!r} must be a non-blank string, got {value!r}")
    if _SURROGATE.search(value):
        raise RecordError(f"{key!r} holds half a surrogate pair, which is no text")
    return value


def _texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = data[key]
    if not isinstance(values, list):
        raise RecordError(f"{key!r} must be a list of strings, got {type(values).__name__}")
    return tuple(_text({f"{key}[{i}]": value}, f"{key}[{i}]") for i, value in enumerate(values))


def _turns(data: Mapping[str, Any], key: str) -> tuple[Message, ...]:
    values = data[key]
    if not isinstance(values, list) or not values:
        raise RecordError(f"{key!r} must be a non-empty list of turns")
    turns = []
    for i, value in enumerate(values):
        if not isinstance(value, dict) or set(value) != {"role", "text"}:
            raise RecordError(f"{key}[{i}] must be an object with exactly 'role' and 'text', got {value!r}")
        if value["role"] not in ROLES:
            raise RecordError(f"{key}[{i}]: role {value['role']!r} is not one of {', '.join(ROLES)}")
        turns.append(Message(value["role"], _text({f"{key}[{i}].text": value["text"]}, f"{key}[{i}].text")))
    return tuple(turns)


def check_record(record: Record) -> None:
    """Check what the types of a record do not say.

    Raises:
        RecordError: If it has other than four different options (or none, where the query itself lists them), an
            answer that is no letter, evidence that is no turn of the dialogue, or an unknown label.
    """
    if (record.options and len(set(record.options)) != len(LETTERS)) or len(record.options) not in (0, len(LETTERS)):
        raise RecordError(f"'options' must be four different texts, got {len(set(record.options))}")
    if record.answer not in LETTERS:
        raise RecordError(f"'answer' must be one of A, B, C, D, got {record.answer!r}")
    if not record.expected_doc:
        raise RecordError("'expected_doc' must name at least one turn")
    if len(set(record.expected_doc)) != len(record.expected_doc):
        raise RecordError("'expected_doc' names the same turn twice")
    texts = [turn.text for turn in record.dialogue]
    for i, text in enumerate(record.expected_doc):
        if text not in texts:
            raise RecordError(f"expected_doc[{i}] is no turn of the dialogue: {text[:60]!r}")
    for key, values, known in (
        ("stress", record.stress, STRESS_CUES),
        ("overlap", () if record.overlap is None else (record.overlap,), OVERLAPS),
    ):
        bad = [value for value in values if value not in known]
        if bad:
            raise RecordError(f"{key} {bad[0]!r} is not one of {', '.join(known)}")
