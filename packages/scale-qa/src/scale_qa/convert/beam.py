"""BEAM (Tavakoli et al. 2025): long chats with one assistant and probing questions of ten kinds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tsim_core.types import Turn

from scale_qa.convert.base import Conversation, read_json, shape_of, spans_of
from scale_qa.errors import ImportFormatError
from scale_qa.package import Question

_ARTEFACT = re.compile(r"\s*->->\s*[\d, ]*\s*$")
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
_PROBING = "probing_questions.json"


def read_beam(path: Path) -> Iterator[Conversation]:
    """Read one chat.

    Args:
        path: A ``chat.json`` or ``chat.json.gz``, with ``probing_questions/probing_questions.json`` (or just the file)
            beside it; or the folder of them.

    Raises:
        ImportFormatError: If one of the two is missing or of another shape.
    """
    folder = path if path.is_dir() else path.parent
    if path.is_dir():
        path = next((path / name for name in ("chat.json", "chat.json.gz") if (path / name).is_file()), path)
        if path == folder:
            raise ImportFormatError(f"{folder}: no chat.json or chat.json.gz in it")
    probing = folder / "probing_questions" / _PROBING
    if not probing.is_file():
        probing = folder / _PROBING
    chat, asked = read_json(path), read_json(probing)
    with shape_of("beam", path):
        yield _conversation("-".join(folder.resolve().parts[-2:]), chat, asked)


def _conversation(name: str, chat: list[Any], asked: Mapping[str, list[Any]]) -> Conversation:
    turns: list[Turn] = []
    units: list[str] = []
    places: dict[int, int] = {}
    ids: dict[int, str] = {}
    when: datetime | None = None
    for batch in chat:
        for group in batch["turns"]:
            for message in group:
                when = _time(message.get("time_anchor")) or when
                places[int(message["id"])] = len(turns)
                ids[len(turns)] = str(message["id"])
                turns.append(Turn(message["role"], _ARTEFACT.sub("", message["content"]), timestamp=when))
                units.append(f"batch-{batch['batch_number']}")
    questions: list[Question] = []
    left_out: Counter[str] = Counter()
    for category, entries in sorted(asked.items()):
        for number, entry in enumerate(entries):
            wanted = set(_ids(entry.get("source_chat_ids", [])))
            known = sorted(places[i] for i in wanted if i in places)
            if not known:
                what = "abstention questions" if category == "abstention" else "questions without evidence ids"
                left_out[what] += 1
                continue
            if len(known) < len(wanted):
                left_out["evidence ids that are no turn (the question is kept with its others)"] += 1
            questions.append(
                Question(
                    id=f"{name}:{category}-{number}",
                    query=entry["question"],
                    evidence=tuple(known),
                    answer=str(next((entry[key] for key in _ANSWERS if key in entry), "")),
                    topic=category,
                )
            )
    return Conversation(name, turns, questions, spans_of(units), ids, left_out)


def _ids(value: Any) -> Iterator[int]:
    """Every id in a list, or in lists that a mapping names."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _ids(part)
    else:
        yield int(value)


def _time(anchor: str | None) -> datetime | None:
    if anchor is None or anchor == "None":
        return None
    return datetime.strptime(anchor.strip(), "%B-%d-%Y").replace(tzinfo=UTC)
