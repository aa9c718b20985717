"""The data that flows through the core: turns in, episodes out. Frozen and typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a thread.

    Attributes:
        role: "user", "assistant", "system" or "tool"; other roles are kept verbatim.
        text: What was said. May be empty (a bare tool call): such a turn belongs to its episode and is not embedded.
        id: Identity within the thread; given by the thread where None.
        timestamp: When it was said. A naive time is taken as UTC.
        metadata: JSON data that travels with the turn and is returned unchanged.
    """

    role: str
    text: str
    id: str | None = None
    timestamp: datetime | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """A contiguous run of turns that M1 cut out.

    Attributes:
        start: Position of its first turn in the thread.
        end: Position behind its last turn.
        tokens: Estimated tokens of its text.
        cut: Why it ends: "shift", "max", or "end" for the last one.
        episode: Identity of the episode that it belongs to.
        similarity: The statistic at the cut that ended it; None where the cut has none.
        threshold: What the statistic was compared with.
        strength: How clear the cut is, 0 to 1, where the rule grades it.
        closed: Whether it is final; the last ones of a thread may still change.
    """

    start: int
    end: int
    tokens: int
    cut: str
    episode: str
    similarity: float | None = None
    threshold: float | None = None
    strength: float | None = None
    closed: bool = True


@dataclass(frozen=True, slots=True)
class Episode:
    """One segment, or several linked ones, of a thread.

    Attributes:
        id: Stable identity within the store.
        turns: In thread order. In a recall, those that were handed over: under a token budget perhaps not all, and
            perhaps some more from around it that may belong to it, such as an exception that came up later.
        segments: The contiguous runs that make it up; in a recall, those from around it too, each with the episode that
            it was counted to when it came in.
        thread: Names of the thread it belongs to.
        score: Relevance to the query of a recall; 0 outside of one.
        evidence: What each view adds to the score; sums to it.
        omitted: Number of its turns that a budget left out of ``turns``.
    """

    id: str
    turns: tuple[Turn, ...]
    segments: tuple[Segment, ...]
    thread: tuple[str, ...] = ()
    score: float = 0.0
    evidence: Mapping[str, float] = field(default_factory=dict)
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class Recall:
    """What a query brought back.

    Attributes:
        query: The query as given.
        episodes: Ranked, best first.
        text: Prompt-ready: the episodes with speakers and dates.
        tokens: Estimated tokens of ``text``.
    """

    query: str
    episodes: tuple[Episode, ...]
    text: str
    tokens: int
