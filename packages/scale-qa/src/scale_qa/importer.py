"""Read the published runtime packages, which are Python files from the outside: parsed as literals, never executed.

``D/runtime/<mode>/test_cases.py`` assigns ``GROUND_TRUTH_HISTORY`` and ``EVALUATION_QUERIES``, ``processed_noise.py``
assigns ``NOISE``. A file that holds anything but assignments of literals is refused.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scale_qa.errors import ImportFormatError
from scale_qa.noise_readers import alternating
from scale_qa.records import LETTERS, Message, NoiseDialogue, Record, check_record

_ROLES = {"user": "user", "model": "assistant", "assistant": "assistant"}
_MARKER = re.compile(r"(?:(?<=\s)|^)\(?([A-D])[).:]\s+")
NOISE_SOURCE = "published"
NOISE_LICENCE = "as published"


@dataclass
class Imported:
    """What a published package held.

    Attributes:
        records: One for each question.
        noise: Its noise, and the dialogues that no question asks about.
        notes: Counts of what a reader must know, by description.
    """

    records: list[Record] = field(default_factory=list)
    noise: list[NoiseDialogue] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)


def import_package(directory: Path) -> Imported:
    """Read a published runtime package.

    Args:
        directory: The folder D that holds ``runtime/``, or one mode's folder. Several modes are read together;
            records that come in more than one are taken once.

    Raises:
        ImportFormatError: If there is none, a file holds code, or an entry is not of the format.
    """
    cases = sorted(directory.glob("runtime/*/test_cases.py")) or sorted(directory.glob("test_cases.py"))
    if not cases:
        raise ImportFormatError(f"{directory}: neither runtime/<mode>/test_cases.py nor test_cases.py in it")
    imported = Imported()
    seen: dict[str, Record] = {}
    for path in cases:
        _read_cases(path, imported, seen)
        noise = path.with_name("processed_noise.py")
        if noise.is_file():
            _read_noise(noise, imported)
        else:
            imported.notes["modes without processed_noise.py"] += 1
    imported.records = list(seen.values())
    return imported


def read_literals(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Read module-level assignments of literals.

    Raises:
        ImportFormatError: If the file is no Python, holds any other statement or a value that is no literal, or lacks
            one of ``names``. Nothing of it is executed in any case.
    """
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OSError) as error:
        raise ImportFormatError(f"{path}: not readable as Python literals: {error}") from error
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if value is None or len(targets) != 1 or not isinstance(targets[0], ast.Name):
            raise ImportFormatError(
                f"{path}:{node.lineno}: {type(node).__name__} is code, not data; the file was not executed. "
                "A runtime package holds only NAME = literal"
            )
        try:
            found[targets[0].id] = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
            raise ImportFormatError(
                f"{path}:{node.lineno}: {targets[0].id} is no literal ({error}); the file was not executed"
            ) from error
    missing = [name for name in names if name not in found]
    if missing:
        known = ", ".join(found) or "nothing"
        raise ImportFormatError(f"{path}: does not assign {', '.join(missing)}; it assigns {known}")
    return found


def split_options(query: str) -> tuple[str, tuple[str, ...]]:
    """Split a query that lists its options, ``... A) this B) that C) ... D) ...``, into the question and the four.

    Returns:
        The query as it is and no options where there is no such list.
    """
    marks = list(_MARKER.finditer(query))
    for i in range(len(marks) - len(LETTERS), -1, -1):
        run = marks[i : i + len(LETTERS)]
        if tuple(mark[1] for mark in run) == LETTERS:
            ends = [mark.start() for mark in run[1:]] + [len(query)]
            options = tuple(query[mark.end() : end].strip() for mark, end in zip(run, ends, strict=True))
            stem = re.sub(r"\s*(options|choices)\s*:?\s*$", "", query[: run[0].start()].strip(), flags=re.IGNORECASE)
            if stem and all(options) and len(set(options)) == len(LETTERS):
                return stem, options
    return query, ()


def _read_cases(path: Path, imported: Imported, seen: dict[str, Record]) -> None:
    data = read_literals(path, ("GROUND_TRUTH_HISTORY", "EVALUATION_QUERIES"))
    dialogues = [
        _dialogue(value, f"{path}: GROUND_TRUTH_HISTORY[{i}]") for i, value in enumerate(data["GROUND_TRUTH_HISTORY"])
    ]
    texts = [{turn.text for turn in dialogue} for dialogue in dialogues]
    asked_about: Counter[int] = Counter()
    for i, entry in enumerate(data["EVALUATION_QUERIES"]):
        where = f"{path}: EVALUATION_QUERIES[{i}]"
        try:
            record, home = _record(entry, dialogues, texts, i)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ImportFormatError(f"{where}: {error}") from error
        if home is None:
            imported.notes["questions whose evidence is in no dialogue (left out)"] += 1
            continue
        asked_about[home] += 1
        if home != i:
            imported.notes["questions that do not stand at their dialogue's place (matched by evidence)"] += 1
        if record.id in seen:
            if seen[record.id] != record:
                raise ImportFormatError(f"{where}: id {record.id!r} was already used by another question")
            imported.notes["questions that an earlier mode held already"] += 1
        if not record.options:
            imported.notes["questions that list no options A to D (kept, options left in the query)"] += 1
        seen[record.id] = record
    imported.notes["dialogues with more than one question"] += sum(n > 1 for n in asked_about.values())
    for i, dialogue in enumerate(dialogues):
        if i not in asked_about:
            imported.notes["dialogues without a question (added to the noise)"] += 1
            imported.noise.append(
                NoiseDialogue(f"{path.parent.name}-truth-{i:05d}", NOISE_SOURCE, NOISE_LICENCE, dialogue)
            )
    imported.notes = +imported.notes


def _record(
    entry: dict[str, Any], dialogues: Sequence[tuple[Message, ...]], texts: Sequence[set[str]], place: int
) -> tuple[Record, int | None]:
    """The record, and which dialogue it belongs to: the one at its own place, else the first with its evidence."""
    evidence = tuple(dict.fromkeys(entry["expected_doc"]))
    holders = [i for i, held in enumerate(texts) if held.issuperset(evidence)]
    home = place if place in holders else next(iter(holders), None)
    answer = entry["expected_answer_keywords"]
    letter = answer[0] if isinstance(answer, list | tuple) and len(answer) == 1 else answer
    query, options = split_options(entry["query"])
    record = Record(
        id=str(entry.get("global_id") or entry["name"]),
        topic=str(entry["topic"]),
        dialogue=dialogues[home] if home is not None else (),
        query=query,
        options=options,
        answer=str(letter).strip(),
        expected_doc=evidence,
    )
    if home is not None:
        check_record(record)
    return record, home


def _dialogue(value: Any, where: str) -> tuple[Message, ...]:
    try:
        return tuple(Message(_ROLES[role], _nonblank(text)) for text, role in value)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ImportFormatError(f"{where}: expected (text, role) pairs with role user or model: {error!r}") from error


def _nonblank(text: str) -> str:
    if not text.strip():
        raise ValueError("a blank turn")
    return text


def _read_noise(path: Path, imported: Imported) -> None:
    for i, value in enumerate(read_literals(path, ("NOISE",))["NOISE"]):
        try:
            turns = alternating((role, text) for text, role in value)
        except (TypeError, ValueError, AttributeError) as error:
            raise ImportFormatError(f"{path}: NOISE[{i}]: expected (text, role) pairs: {error!r}") from error
        if len(turns) < 2:
            imported.notes["noise dialogues of less than one exchange (left out)"] += 1
            continue
        imported.noise.append(NoiseDialogue(f"{path.parent.name}-{i:06d}", NOISE_SOURCE, NOISE_LICENCE, turns))
