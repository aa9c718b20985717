"""M1: cut a flat stream of turns into segments, online and without look-ahead.

This module holds what every segmenter shares and the published rule (paper equations 1 to 3). The default rule, which
calibrates itself to the embedder and the thread, is in `tsim_core.calibration`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tsim_core.embedding import Vectors
from tsim_core.errors import ConfigError

USER_ROLES = frozenset({"user", "human"})
MODEL_ROLES = frozenset({"assistant", "model", "ai"})


@dataclass(frozen=True, slots=True)
class SegTurn:
    """What a segmenter sees of a turn.

    Attributes:
        position: Its place in the thread; grows strictly, may have gaps.
        role: Its role.
        text: Its text.
        tokens: Its estimated length.
        vector: Its unit embedding, shape (d,); None for a blank text.
        time: Seconds since 1970; None where unknown.
    """

    position: int
    role: str
    text: str
    tokens: float
    vector: Vectors | None
    time: float | None = None


@dataclass(frozen=True, slots=True)
class ClosedSegment:
    """A segment that a rule has cut.

    Attributes:
        start: Position of its first turn.
        end: One more than the position of its last turn.
        tokens: Estimated tokens.
        cut: "shift" or "max"; "end" for the last one of a tail.
        similarity: The statistic that the rule compared at the cut.
        threshold: What it was compared with.
        strength: How clear the cut is, 0 to 1; None where the rule has no grading.
    """

    start: int
    end: int
    tokens: float
    cut: str
    similarity: float | None = None
    threshold: float | None = None
    strength: float | None = None


Fetch = Callable[[Sequence[int]], dict[int, SegTurn]]
"""Turns by position; a position that was forgotten is missing from the answer."""


class Segmenter(Protocol):
    """One rule of segmentation with its state. Decisions depend on the turns pushed so far and on nothing else."""

    def push(self, turn: SegTurn) -> list[ClosedSegment]:
        """Take the next turn; return the segments that are final now, in order."""
        ...

    def tail(self) -> list[ClosedSegment]:
        """The turns that are in no final segment, as they would be cut if the thread ended here. Changes nothing."""
        ...

    def state(self) -> dict[str, Any]:
        """The state as JSON data: numbers and positions of turns, no vectors and no text."""
        ...

    def restore(self, state: dict[str, Any], fetch: Fetch) -> None:
        """Continue exactly where `state` was taken."""
        ...


@dataclass(frozen=True)
class PublishedSegmentation:
    """Constants of the published rule (paper table 18).

    Attributes:
        l_min: Estimated tokens before a shift may cut.
        l_max: Estimated tokens at which a cut is forced.
        recent_window: Turns that the centroid is taken over.
        recent_episodes: Episodes back that these turns may come from; 1 is the current one only.
        theta_s: Similarity below which the topic has shifted.
        b: Bonus where a user turn follows a model turn.
        min_messages: Messages that an episode holds before a boundary may open.
    """

    l_min: float = 120
    l_max: float = 320
    recent_window: int = 4
    recent_episodes: int = 1
    theta_s: float = 0.70
    b: float = 0.03
    min_messages: int = 2

    def __post_init__(self) -> None:
        if not 0 <= self.l_min <= self.l_max:
            raise ConfigError(f"l_min {self.l_min} and l_max {self.l_max}: expected 0 <= l_min <= l_max")
        if self.recent_window < 1 or self.recent_episodes < 1 or self.min_messages < 1:
            raise ConfigError("recent_window, recent_episodes and min_messages must be at least 1")
        if not -1 <= self.theta_s <= 1:
            raise ConfigError(f"theta_s {self.theta_s}: a cosine lies between -1 and 1")


class PublishedSegmenter:
    """The published rule: cut where a turn is unlike the centroid of the recent turns (paper equations 1 to 3)."""

    def __init__(self, config: PublishedSegmentation) -> None:
        self.config = config
        self._start: int | None = None
        self._last = -1
        self._tokens = 0.0
        self._count = 0
        self._previous_role = ""
        # (position, vector, episodes closed since) of turns that the centroid may use
        self._recent: list[tuple[int, Vectors, int]] = []

    def push(self, turn: SegTurn) -> list[ClosedSegment]:
        """Take the next turn; see `Segmenter.push`."""
        closed: list[ClosedSegment] = []
        similarity = self._similarity(turn)
        if self._start is not None and self._count >= self.config.min_messages:
            shift = similarity is not None and similarity < self.config.theta_s
            full = self._tokens >= self.config.l_max
            if full or (shift and self._tokens >= self.config.l_min):
                closed.append(
                    ClosedSegment(
                        self._start,
                        self._last + 1,
                        self._tokens,
                        "max" if full else "shift",
                        similarity,
                        self.config.theta_s,
                    )
                )
                self._recent = [(p, v, age + 1) for p, v, age in self._recent if age + 1 < self.config.recent_episodes]
                self._start, self._tokens, self._count = None, 0.0, 0
        if self._start is None:
            self._start = turn.position
        self._last = turn.position
        self._tokens += turn.tokens
        self._count += 1
        self._previous_role = turn.role
        if turn.vector is not None:
            self._recent.append((turn.position, turn.vector, 0))
            del self._recent[: -self.config.recent_window]
        return closed

    def _similarity(self, turn: SegTurn) -> float | None:
        if turn.vector is None or not self._recent:
            return None
        mean = np.mean([vector for _, vector, _ in self._recent], axis=0, dtype=np.float64)
        norm = float(np.linalg.norm(mean))
        cosine = float(turn.vector @ mean) / norm if norm > 0 else 0.0
        bonus = self._previous_role in MODEL_ROLES and turn.role in USER_ROLES
        return cosine + (self.config.b if bonus else 0.0)

    def tail(self) -> list[ClosedSegment]:
        """See `Segmenter.tail`."""
        return [] if self._start is None else [ClosedSegment(self._start, self._last + 1, self._tokens, "end")]

    def state(self) -> dict[str, Any]:
        """See `Segmenter.state`."""
        return {
            "start": self._start,
            "last": self._last,
            "tokens": self._tokens,
            "count": self._count,
            "previous_role": self._previous_role,
            "recent": [[position, age] for position, _, age in self._recent],
        }

    def restore(self, state: dict[str, Any], fetch: Fetch) -> None:
        """See `Segmenter.restore`."""
        self._start, self._last = state["start"], state["last"]
        self._tokens, self._count = state["tokens"], state["count"]
        self._previous_role = state["previous_role"]
        turns = fetch([position for position, _ in state["recent"]])
        self._recent = [
            (position, vector, age)
            for position, age in state["recent"]
            if position in turns and (vector := turns[position].vector) is not None
        ]
