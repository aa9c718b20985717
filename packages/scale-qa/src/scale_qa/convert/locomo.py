"""LoCoMo (Maharana et al. 2024) and REALTALK (Lee et al. 2025), which shares its format: two people over months.

The first speaker becomes the user, the second the assistant; a turn's text begins with the speaker's name, since the
questions are about people by name, and ends with the caption of a shared picture.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tsim_core.types import Turn

from scale_qa.convert.base import Conversation, UniqueIds, read_json, shape_of, spans_of
from scale_qa.package import Question

_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_REALTALK_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "commonsense"}
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_TIMES = ("%I:%M %p on %d %B, %Y", "%d.%m.%Y, %H:%M:%S", "%d.%m.%Y, %H:%M", "%Y-%m-%d %H:%M:%S")


def read_locomo(path: Path) -> Iterator[Conversation]:
    """Read a LoCoMo file: a list of conversations with their questions.

    Raises:
        ImportFormatError: If it is none.
    """
    yield from _read(path, "locomo", _CATEGORIES)


def read_realtalk(path: Path) -> Iterator[Conversation]:
    """Read a REALTALK file: one chat, or a list of them.

    Raises:
        ImportFormatError: If it is none.
    """
    yield from _read(path, "realtalk", _REALTALK_CATEGORIES)


def _read(path: Path, source: str, categories: Mapping[int, str]) -> Iterator[Conversation]:
    data = read_json(path)
    with shape_of(source, path):
        for number, sample in enumerate(data if isinstance(data, list) else [data]):
            name = sample.get("sample_id") or (path.stem if isinstance(data, dict) else f"{path.stem}-{number}")
            yield _conversation(str(name), sample, categories)


def _conversation(name: str, sample: Mapping[str, Any], categories: Mapping[int, str]) -> Conversation:
    talk = sample.get("conversation", sample)
    first = talk["speaker_a"] if "speaker_a" in talk else talk["name"]["speaker_1"]
    turns: list[Turn] = []
    units: list[str] = []
    places: dict[tuple[int, int], int] = {}
    ids: dict[int, str] = {}
    numbers = sorted(int(key.removeprefix("session_")) for key in talk if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        began = talk.get(f"session_{number}_date_time")
        for message in talk[f"session_{number}"]:
            match = _EVIDENCE.fullmatch(message["dia_id"])
            if match is None:
                raise ValueError(f"dia_id {message['dia_id']!r} is not of the form D1:2")
            places[int(match[1]), int(match[2])] = len(turns)
            ids[len(turns)] = message["dia_id"]
            role = "user" if message["speaker"] == first else "assistant"
            turns.append(Turn(role, _text(message), timestamp=_time(message.get("date_time") or began)))
            units.append(f"session_{number}")
    questions: list[Question] = []
    left_out: Counter[str] = Counter()
    unique = UniqueIds()
    for number, asked in enumerate(sample["qa"]):
        wanted = asked["evidence"]
        wanted = [wanted] if isinstance(wanted, str) else wanted
        pairs = [(int(a), int(b)) for text in wanted for a, b in _EVIDENCE.findall(text)]
        known = sorted({places[pair] for pair in pairs if pair in places})
        if not known:
            left_out["questions without evidence" if not wanted else "questions with no evidence turn that exists"] += 1
            continue
        if len({*pairs}) > len(known) or any(not _EVIDENCE.search(text) for text in wanted):
            left_out["evidence ids that are no turn (the question is kept with its others)"] += 1
        answer = asked.get("answer", "not mentioned in the conversation")
        questions.append(
            Question(
                id=unique(f"{name}:{number}"),
                query=asked["question"],
                evidence=tuple(known),
                answer=str(answer),
                topic=categories.get(asked.get("category", 0), "other"),
            )
        )
    return Conversation(name, turns, questions, spans_of(units), ids, left_out)


def _text(message: Mapping[str, Any]) -> str:
    text = str(message["text"] if message.get("text") else message.get("clean_text") or "").strip()
    caption = message.get("blip_caption")
    if caption:
        text = f"{text} [shares a picture: {caption}]".strip()
    return f"{message['speaker']}: {text}" if text else ""


def _time(value: str | None) -> datetime | None:
    if not value:
        return None
    for form in _TIMES:
        try:
            return datetime.strptime(value.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"a time of unknown form: {value!r}")
