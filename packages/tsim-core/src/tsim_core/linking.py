"""Which earlier episode a segment continues: a topic that comes back after an interruption is one episode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tsim_core.embedding import Vectors
from tsim_core.errors import ConfigError
from tsim_core.segmentation import ClosedSegment, Fetch, SegTurn
from tsim_core.similarity import Spread, likeness, likenesses, log_odds, scatter

KEPT = 8  # turns that stand for an episode: its first and its last ones
NULL_SIZE = 32  # earlier episodes that the null distribution is drawn from
NULL_PRIOR, SAME_PRIOR, RATE_PRIOR = 20.0, 20.0, 10.0  # weights of what is assumed at the start
FLOOR = 1e-4  # of a variance


@dataclass(frozen=True)
class Linking:
    """Settings of the linking of segments.

    Attributes:
        reach: Number of the most recently active episodes that a segment may continue.
        link_probability: Probability of being one topic from which on a segment joins an episode.
        link_rate: Assumed share of segments that continue an episode, until the thread shows its own.
        max_tokens: Estimated tokens that a linked episode holds at most.
        null: Assumed mean and standard deviation of the similarity of unrelated segments.
        same: The same for segments of one topic.
    """

    reach: int = 4
    link_probability: float = 0.5
    link_rate: float = 0.2
    max_tokens: float = 2400
    null: tuple[float, float] = (0.18, 0.10)
    same: tuple[float, float] = (0.50, 0.14)

    def __post_init__(self) -> None:
        if self.reach < 1:
            raise ConfigError(f"reach {self.reach}: expected at least 1; use linking=None for an episode a segment")
        for name, value in (("link_probability", self.link_probability), ("link_rate", self.link_rate)):
            if not 0 < value < 1:
                raise ConfigError(f"{name} {value}: expected a probability between 0 and 1, both excluded")
        if self.null[1] <= 0 or self.same[1] <= 0 or self.same[0] <= self.null[0]:
            raise ConfigError(
                f"null {self.null} and same {self.same}: a spread is positive, and same has the higher mean"
            )


@dataclass
class Known:
    """An episode that may be continued, or that unrelated ones are drawn from.

    Attributes:
        start: Position of its first turn: its identity.
        tokens: Estimated tokens.
        speaks: Positions of the turns that stand for it.
        vectors: Their vectors, shape (n, d).
    """

    start: int
    tokens: float
    speaks: list[int] = field(default_factory=list)
    vectors: Vectors | None = None


class Linker:
    """Assigns each closed segment to an episode.

    Args:
        config: Settings.
    """

    def __init__(self, config: Linking) -> None:
        self.config = config
        self._null = Spread(config.null[0], config.null[1] ** 2, NULL_PRIOR)
        self._same = Spread(config.same[0], config.same[1] ** 2, SAME_PRIOR)
        self._rate = [RATE_PRIOR * config.link_rate, RATE_PRIOR * (1 - config.link_rate)]
        self._recent: list[Known] = []  # the last active one at the end
        self._reservoir: list[Known] = []
        self._seen = 0

    def assign(self, segment: ClosedSegment, turns: Sequence[SegTurn]) -> int | None:
        """Decide where a closed segment belongs, and remember it.

        Args:
            segment: The segment.
            turns: Its turns.

        Returns:
            Start of the first segment of the episode that it continues; None where it opens a new one.
        """
        new = _known(segment, turns)
        best, probability = self._best(new)
        if new.vectors is not None:
            far = [
                k.vectors for k in self._reservoir if k.vectors is not None and all(k is not r for r in self._recent)
            ]
            for value in likenesses(new.vectors, far):
                self._null.add(value)
            self._rate[0] += probability
            self._rate[1] += 1 - probability
        if best is not None and probability > self.config.link_probability:
            known = self._recent.pop(best)
            joined = _merge(known, new)
            self._recent.append(joined)
            self._reservoir = [joined if k.start == joined.start else k for k in self._reservoir]
            return joined.start
        self._recent.append(new)
        del self._recent[: -self.config.reach]
        if new.vectors is not None:
            if len(self._reservoir) < NULL_SIZE:
                self._reservoir.append(new)
            else:
                slot = scatter(self._seen) % (self._seen + 1)
                if slot < NULL_SIZE:
                    self._reservoir[slot] = new
            self._seen += 1
        return None

    def guess(self, segment: ClosedSegment, turns: Sequence[SegTurn]) -> int | None:
        """What `assign` would say now, about a segment that is still open. Changes nothing."""
        best, probability = self._best(_known(segment, turns))
        if best is None or probability <= self.config.link_probability:
            return None
        return self._recent[best].start

    def _best(self, new: Known) -> tuple[int | None, float]:
        if new.vectors is None:
            return None, 0.0
        same = (self._same.mean, max(self._same.variance, FLOOR))
        null = (self._null.mean, max(self._null.variance, FLOOR))
        best, top = None, -math.inf
        for i, known in enumerate(self._recent):
            if known.vectors is None or known.tokens + new.tokens > self.config.max_tokens:
                continue
            value = likeness(new.vectors, known.vectors)
            if value > top:
                best, top = i, value
        if best is None:
            return None, 0.0
        yes, no = self._rate
        odds = log_odds(top, same, null) + math.log(yes / no)
        return best, 1 / (1 + math.exp(-odds))

    def state(self) -> dict[str, Any]:
        """The state as JSON data: numbers and positions of turns."""
        return {
            "null": self._null.values(),
            "same": self._same.values(),
            "rate": list(self._rate),
            "seen": self._seen,
            "recent": [[k.start, k.tokens, list(k.speaks)] for k in self._recent],
            "reservoir": [[k.start, k.tokens, list(k.speaks)] for k in self._reservoir],
        }

    def restore(self, state: dict[str, Any], fetch: Fetch) -> None:
        """Continue exactly where `state` was taken."""
        wanted = sorted({p for name in ("recent", "reservoir") for _, _, speaks in state[name] for p in speaks})
        turns = fetch(wanted)
        rows = {p: t.vector for p, t in turns.items() if t.vector is not None}
        for spread, values in ((self._null, state["null"]), (self._same, state["same"])):
            spread.mean, spread.variance, spread.count = values
        self._rate, self._seen = list(state["rate"]), state["seen"]
        recent: dict[int, Known] = {}
        self._recent, self._reservoir = [], []
        for name, target in (("recent", self._recent), ("reservoir", self._reservoir)):
            for start, tokens, speaks in state[name]:
                held = [p for p in speaks if p in rows]
                known = Known(start, tokens, held, np.stack([rows[p] for p in held]) if held else None)
                known = recent.setdefault(start, known)
                target.append(known)


def _known(segment: ClosedSegment, turns: Sequence[SegTurn]) -> Known:
    rows = [(t.position, t.vector) for t in turns if t.vector is not None]
    return _stand(segment.start, segment.tokens, rows)


def _merge(known: Known, new: Known) -> Known:
    rows = [row for k in (known, new) if k.vectors is not None for row in zip(k.speaks, k.vectors, strict=True)]
    return _stand(known.start, known.tokens + new.tokens, rows)


def _stand(start: int, tokens: float, rows: Sequence[tuple[int, Vectors]]) -> Known:
    if len(rows) > KEPT:
        rows = [*rows[: KEPT // 2], *rows[-(KEPT // 2) :]]
    vectors = np.stack([vector for _, vector in rows]) if rows else None
    return Known(start, tokens, [position for position, _ in rows], vectors)
