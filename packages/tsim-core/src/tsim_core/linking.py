"""Which earlier episode a segment continues: a topic that comes back after an interruption stays one episode.

A segment is compared with the most recently active episodes. How likely it continues one before the last, or none, is
learned along the thread; so is how alike unrelated segments are. Whether it continues the last one after all depends on
how clear the cut between them was.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tsim_core.cues import opening_evidence
from tsim_core.embedding import Vectors
from tsim_core.errors import ConfigError
from tsim_core.scale import MINILM, Scale
from tsim_core.segmentation import USER_ROLES, ClosedSegment, Fetch, SegTurn
from tsim_core.similarity import FLOOR, Reservoir, Spread, likeness, log_odds, representatives

KEPT = 8  # turns that stand for an episode
NULL_SIZE = 32  # segments that the null distribution is drawn from
UNDONE = 1.5  # the segmenter's odds against a cut count more now that the segment is complete
AFRESH = 0.7  # its likeness counts less: the segmenter has seen the beginning of it
SUREST = 0.02  # strength of the least sure cut
NULL_PRIOR, SAME_PRIOR, RATE_PRIOR = 20.0, 20.0, 10.0  # weights of the assumptions, in observations


@dataclass(frozen=True)
class Linking:
    """Settings of the linking of segments.

    Attributes:
        reach: Number of the most recently active episodes that a segment may continue.
        link_probability: Probability above which a segment joins an episode.
        link_rate: Assumed share of segments that continue an episode, until the thread shows its own.
        max_episode_tokens: Estimated tokens that linking makes an episode hold at most.
        unlinked: Assumed mean and standard deviation of the likeness of unrelated segments, until the thread
            shows its own; 0 and 1 as in `CalibratedSegmentation`.
        linked: The same for segments of one episode.
    """

    reach: int = 4
    link_probability: float = 0.5
    link_rate: float = 0.2
    max_episode_tokens: float = 2400
    unlinked: tuple[float, float] = (0.2, 0.25)
    linked: tuple[float, float] = (0.95, 0.35)

    def __post_init__(self) -> None:
        if self.reach < 1:
            raise ConfigError(f"reach {self.reach}: expected at least 1; linking=None makes every segment an episode")
        if self.max_episode_tokens <= 0:
            raise ConfigError(f"max_episode_tokens {self.max_episode_tokens}: expected a positive number")
        for name, value in (("link_probability", self.link_probability), ("link_rate", self.link_rate)):
            if not 0 < value < 1:
                raise ConfigError(f"{name} {value}: expected a probability between 0 and 1, both excluded")
        if self.unlinked[1] <= 0 or self.linked[1] <= 0 or self.linked[0] <= self.unlinked[0]:
            raise ConfigError(
                f"unlinked {self.unlinked}, linked {self.linked}: a spread is positive, and linked has the higher mean"
            )


@dataclass(frozen=True)
class Group:
    """A segment, or the episode that it became part of.

    Attributes:
        start: Position of the first turn: the identity of an episode.
        tokens: Estimated tokens.
        speaks: Positions of the turns that stand for it.
        vectors: Their vectors, shape (n, d); None where no turn has one.
    """

    start: int
    tokens: float
    speaks: tuple[int, ...]
    vectors: Vectors | None

    def joined(self, other: Group) -> Group:
        """This episode with another segment at its end."""
        if self.vectors is None or other.vectors is None:
            speaks, vectors = self.speaks + other.speaks, other.vectors if self.vectors is None else self.vectors
        else:
            speaks, vectors = self.speaks + other.speaks, np.concatenate([self.vectors, other.vectors])
        return _standing(self.start, self.tokens + other.tokens, speaks, vectors)


class Linker:
    """Assigns each closed segment to an episode.

    Args:
        config: Settings.
        scale: What the embedder's similarities mean.
    """

    def __init__(self, config: Linking, scale: Scale = MINILM) -> None:
        self.config = config
        null, same = scale.spread(config.unlinked), scale.spread(config.linked)
        self._null = Spread(null[0], null[1] ** 2, NULL_PRIOR)
        self._same = Spread(same[0], same[1] ** 2, SAME_PRIOR)
        # Weights of continuing no episode, the last active one, the one before, ...
        each = RATE_PRIOR * config.link_rate / config.reach
        self._ranks = [RATE_PRIOR * (1 - config.link_rate), *[each] * config.reach]
        self._recent: list[Group] = []  # the last active one at the end
        self._strength: float | None = None  # of the cut that ended the last segment
        self._reservoir = Reservoir(NULL_SIZE)

    def assign(self, segment: ClosedSegment, turns: Sequence[SegTurn]) -> int | None:
        """Decide where a closed segment belongs, and remember it.

        Args:
            segment: The segment.
            turns: Its turns; none where all were forgotten.

        Returns:
            Start of the first segment of the episode that it continues; None where it opens a new one.
        """
        new = _group(segment, turns)
        values = self._values(new)
        shares = self._shares(values, turns)
        self._strength = segment.strength
        if new.vectors is not None:
            for value in self._reservoir.compare(new.vectors, lag=self.config.reach):
                self._null.add(value)
            self._reservoir.offer(new.speaks, new.vectors)
            for rank, share in shares.items():
                self._ranks[rank] += share
                if rank:
                    self._same.add(values[rank], share)
        rank = max(shares, key=lambda r: (shares[r], -r))
        if rank == 0 or shares[rank] <= self.config.link_probability:
            self._recent = [*self._recent, new][-self.config.reach :]
            return None
        joined = self._recent.pop(-rank).joined(new)
        self._recent.append(joined)
        return joined.start

    def guesses(self, tail: Sequence[tuple[ClosedSegment, Sequence[SegTurn]]]) -> list[int | None]:
        """What `assign` would say of segments that are not final yet, in order. Changes nothing."""
        twin = copy.copy(self)
        twin._null, twin._same = copy.copy(self._null), copy.copy(self._same)
        twin._ranks, twin._recent, twin._reservoir = list(self._ranks), list(self._recent), copy.copy(self._reservoir)
        return [twin.assign(segment, turns) for segment, turns in tail]

    def _values(self, new: Group) -> dict[int, float]:
        """Likeness with the episodes that it may continue, by rank: 1 for the last active one."""
        values = {}
        for rank, known in enumerate(reversed(self._recent), start=1):
            if new.vectors is None or known.vectors is None:
                continue
            if known.tokens + new.tokens <= self.config.max_episode_tokens:
                values[rank] = likeness(new.vectors, known.vectors)
        return values

    def _shares(self, values: dict[int, float], turns: Sequence[SegTurn]) -> dict[int, float]:
        """Probability of each rank; 0 stands for a new episode."""
        same = (self._same.mean, max(self._same.variance, FLOOR))
        null = (self._null.mean, max(self._null.variance, FLOOR))
        weights = {0: self._ranks[0]}
        if turns:  # a segment that begins like a reply or a reference back is no new topic
            on_a_par = turns[0].role not in USER_ROLES
            weights[0] *= math.exp(opening_evidence(turns[0].text, False, on_a_par))
        for rank, value in values.items():
            weights[rank] = self._ranks[rank] * math.exp(log_odds(value, same, null))
        if 1 in weights and self._strength is not None:
            odds = (1 - self._strength) / max(self._strength, SUREST)
            weights[1] = weights[0] * UNDONE * odds * math.exp(AFRESH * log_odds(values[1], same, null))
        total = sum(weights.values())
        return {rank: weight / total for rank, weight in weights.items()}

    def state(self) -> dict[str, Any]:
        """The state as JSON data: numbers and positions of turns, no vectors and no text."""
        return {
            "null": self._null.values(),
            "same": self._same.values(),
            "ranks": list(self._ranks),
            "strength": self._strength,
            "recent": [[group.start, group.tokens, list(group.speaks)] for group in self._recent],
            "reservoir": self._reservoir.state(),
        }

    def restore(self, state: dict[str, Any], fetch: Fetch) -> None:
        """Continue exactly where `state` was taken."""
        wanted = {p for _, _, speaks in state["recent"] for p in speaks} | set(Reservoir.positions(state["reservoir"]))
        rows = {p: t.vector for p, t in fetch(sorted(wanted)).items() if t.vector is not None}
        self._null.restore(state["null"])
        self._same.restore(state["same"])
        self._ranks, self._strength = list(state["ranks"]), state["strength"]
        self._recent = []
        for start, tokens, speaks in state["recent"]:
            held = tuple(p for p in speaks if p in rows)
            vectors = np.stack([rows[p] for p in held]) if held else None
            self._recent.append(Group(start, tokens, held, vectors))
        self._reservoir.restore(state["reservoir"], rows)


def _group(segment: ClosedSegment, turns: Sequence[SegTurn]) -> Group:
    rows = [(turn.position, turn.vector) for turn in turns if turn.vector is not None]
    vectors = np.stack([vector for _, vector in rows]) if rows else None
    return _standing(segment.start, segment.tokens, tuple(position for position, _ in rows), vectors)


def _standing(start: int, tokens: float, speaks: tuple[int, ...], vectors: Vectors | None) -> Group:
    kept = representatives(len(speaks), KEPT)
    return Group(start, tokens, tuple(speaks[i] for i in kept), None if vectors is None else vectors[kept])
