"""What all converters share."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsim_core.types import Turn

from scale_qa.errors import ImportFormatError
from scale_qa.package import GoldUnit, Package, PackageWriter, Question


@dataclass(frozen=True, slots=True)
class Conversation:
    """One thread and what is asked about it.

    Attributes:
        id: The source's name for it.
        turns: The flat stream.
        questions: With evidence as positions in ``turns``.
        gold: The source's sessions or tasks.
        source_ids: The source's id of each turn that has one, by position.
        left_out: Number of questions (or turns) that could not be used, by reason.
    """

    id: str
    turns: Sequence[Turn]
    questions: Sequence[Question]
    gold: Sequence[GoldUnit] = ()
    source_ids: Mapping[int, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)


def write(source: str, conversations: Iterable[Conversation], directory: Path) -> Package:
    """Write a package, one batch a conversation. Conversations without a usable question are counted, not written.

    Raises:
        ImportFormatError: If no question at all could be used.
    """
    writer = PackageWriter(directory)
    left_out: Counter[str] = Counter()
    written = 0
    for conversation in conversations:
        left_out.update(conversation.left_out)
        if not conversation.questions:
            left_out["conversations without a usable question"] += 1
            continue
        writer.write_batch(
            conversation.turns,
            conversation.questions,
            conversation.gold,
            label=conversation.id,
            source_ids=conversation.source_ids,
        )
        written += 1
    if not written:
        raise ImportFormatError(f"no usable question in these files; left out: {dict(left_out) or 'nothing found'}")
    return writer.finish(
        name=source, mode="converted", arrangement="as in the source", noise=[], left_out=dict(sorted(left_out.items()))
    )


def read_json(path: Path) -> Any:
    """Read a JSON file, gzipped or not.

    Raises:
        ImportFormatError: If it is missing or no JSON.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise ImportFormatError(f"{path}: no such file") from error
    except (UnicodeDecodeError, json.JSONDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise ImportFormatError(f"{path}: not readable as JSON: {error}") from error


@contextmanager
def shape_of(source: str, path: Path) -> Iterator[None]:
    """Turn what a wrong shape raises into one clear error."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        if isinstance(error, ImportFormatError):
            raise
        raise ImportFormatError(f"{path}: not in the format of {source}: {error!r}") from error


class UniqueIds:
    """Makes question ids unique by a number where a source repeats one."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def __call__(self, id: str) -> str:
        """``id``, or ``id#2`` and so on when it was given before."""
        self._seen[id] += 1
        return id if self._seen[id] == 1 else f"{id}#{self._seen[id]}"


def spans_of(units: Sequence[str]) -> list[GoldUnit]:
    """Gold units from the unit that each turn belongs to, in stream order; blank names belong to none."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for i, unit in enumerate(units):
        runs = spans.setdefault(unit, [])
        if runs and runs[-1][1] == i:
            runs[-1] = (runs[-1][0], i + 1)
        else:
            runs.append((i, i + 1))
    return [GoldUnit(unit, "session", tuple(runs)) for unit, runs in spans.items() if unit]
