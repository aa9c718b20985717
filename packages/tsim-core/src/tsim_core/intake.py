"""What happens to a turn before it is stored: it is checked, named and digested."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b

from tsim_core.errors import InputError
from tsim_core.types import Turn


def text_digest(text: str) -> int:
    """A signed 64-bit digest of a text, the same on every machine."""
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


def content_digest(turn: Turn) -> int:
    """A digest of what a framework may change in a turn: role, text and metadata, not the time it was first seen."""
    metadata = json.dumps(dict(turn.metadata or {}), sort_keys=True)
    return text_digest("\0".join((turn.role, metadata, turn.text)))


def checked_turn(turn: Turn) -> Turn:
    """A turn that can be stored, its time with a zone.

    Raises:
        InputError: If a field has the wrong type, a role or id is empty, or the metadata is no JSON data.
    """
    if not isinstance(turn, Turn):
        raise InputError(f"{type(turn).__name__} is no Turn; use Turn(role=..., text=...)")
    if not isinstance(turn.text, str):
        raise InputError(f"the text of a turn is {type(turn.text).__name__}; expected str")
    for name, value in (("role", turn.role), ("id", turn.id)):
        if value is None and name == "id":
            continue
        if not isinstance(value, str) or not value:
            raise InputError(f"the {name} of a turn is {value!r}; expected a non-empty string")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"the {name} {value!r} of a turn holds a lone surrogate") from None
    if turn.timestamp is not None:
        if not isinstance(turn.timestamp, datetime):
            raise InputError(f"the timestamp {turn.timestamp!r} of a turn is no datetime")
        if turn.timestamp.tzinfo is None:
            turn = replace(turn, timestamp=turn.timestamp.replace(tzinfo=UTC))
    if turn.metadata is not None:
        try:
            json.dumps(dict(turn.metadata), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"the metadata of a turn is no JSON data: {error}") from error
    return turn


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked turn with the digest of its text."""

    turn: Turn
    digest: int


def prepare(turns: Iterable[Turn]) -> list[Prepared]:
    """Check turns before anything is done with them; see `checked_turn`."""
    return [Prepared(turn, text_digest(turn.text)) for turn in map(checked_turn, turns)]


def named(turn: Turn, position: int, taken: set[str]) -> Turn:
    """The turn with an id of its own."""
    if turn.id is not None:
        return turn
    name, n = f"t{position}", 0
    while name in taken:
        n += 1
        name = f"t{position}+{n}"
    taken.add(name)
    return replace(turn, id=name)


def unseen(stored: Sequence[Turn], transcript: Sequence[Turn]) -> list[Turn]:
    """What of a transcript a thread has not taken in yet, so that one that has grown is read again without doubling.

    A turn with an id is told by it, and returned: whether it is stored, and what with, is for `Thread.extend` to see.
    Turns without one are passed over where they begin the transcript and stand in the thread in the same order, role,
    text and time, up to the end of either.

    Args:
        stored: The thread's turns.
        transcript: Turns as they were read, oldest first.

    Raises:
        InputError: If more than half of the turns are stored, but not so: adding them would double most of them.
    """
    lengths = (min(len(stored) - start, len(transcript)) for start in range(len(stored)))
    known = next(  # the first is the longest
        (
            length
            for start, length in enumerate(lengths)
            if all(_same(stored[start + i], transcript[i]) for i in range(length))
        ),
        0,
    )
    nameless = [_said(turn) for turn in transcript if turn.id is None]
    double = (Counter(nameless) & Counter(map(_said, stored))).total()
    if not known and 2 * double > len(nameless):
        raise InputError(f"{double} of its {len(transcript)} turns are in the thread already, but not in one piece")
    return [turn for i, turn in enumerate(transcript) if i >= known or turn.id is not None]


def _said(turn: Turn) -> tuple[str, str, datetime | None]:
    return turn.role, turn.text, turn.timestamp


def _same(stored: Turn, new: Turn) -> bool:
    return stored.id == new.id if new.id is not None else _said(stored) == _said(new)
