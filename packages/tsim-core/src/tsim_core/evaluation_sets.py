"""Chats in the shape of two published evaluation sets: conversations of LoCoMo, logs of GoodAI's LTM benchmark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tsim_core.errors import ReaderError
from tsim_core.types import Turn

_SESSION = re.compile(r"session_(\d+)")
_TIME = "%I:%M %p on %d %B, %Y"  # "1:56 pm on 8 May, 2023"
_SAID_BY = {0: "user", 3: "user", 4: "assistant", 5: "assistant"}  # kinds of event: of a task, and between tasks


def is_locomo(data: Mapping[str, Any]) -> bool:
    """Whether an object holds sessions as LoCoMo does: ``session_1``, ``session_1_date_time`` and so on."""
    return any(_SESSION.fullmatch(name) and isinstance(value, list) for name, value in data.items())


def locomo_turns(data: Mapping[str, Any], where: str) -> list[Turn]:
    """The turns of all sessions, in order, each with the time of its session. What was said of pictures is metadata.

    Raises:
        ReaderError: If a message lacks a speaker or a text, or a time is written otherwise.
    """
    numbers = sorted(int(match[1]) for name in data if (match := _SESSION.fullmatch(name)))
    turns = []
    for number in numbers:
        name = f"session_{number}"
        said_at = data.get(f"{name}_date_time")
        try:
            time = None if said_at is None else datetime.strptime(said_at, _TIME).replace(tzinfo=UTC)
        except (TypeError, ValueError):
            raise ReaderError(f"{where}, {name}: the time {said_at!r} is not like '1:56 pm on 8 May, 2023'") from None
        for place, message in enumerate(data[name], start=1):
            try:
                rest = dict(message)
                turns.append(Turn(rest.pop("speaker"), rest.pop("text"), rest.pop("dia_id", None), time, rest or None))
            except (KeyError, TypeError, ValueError):
                raise ReaderError(f"{where}, {name}, item {place}: expected an object with speaker and text") from None
    return turns


def is_goodai_event(data: object) -> bool:
    """Whether an object is an event of such a log: a message, or what the benchmark notes beside them."""
    return isinstance(data, Mapping) and {"type", "test_id", "timestamp", "data"} <= data.keys()


def goodai_turn(data: Mapping[str, Any], where: str) -> Turn | None:
    """The message of an event, with the id of its test as metadata; None for another event.

    Raises:
        ReaderError: If it is a message without a text or a time.
    """
    role = _SAID_BY.get(data["type"])
    if role is None:
        return None
    try:
        text, time = data["data"]["message"], datetime.fromtimestamp(data["timestamp"], UTC)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ReaderError(f"{where}: the message has no text or no time") from None
    return Turn(role, text, None, time, {"test_id": data["test_id"]} if data["test_id"] else None)
