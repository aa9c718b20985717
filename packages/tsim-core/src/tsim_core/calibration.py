"""The default M1: cut where an exchange is no more like what came before than unrelated turns are.

The published rule compares one turn with a fixed threshold that belongs to one embedder. This one compares whole
exchanges and looks one exchange ahead. For the exchange ``v`` with its predecessor ``p`` and its successor ``n`` it
weighs the five ways in which three things can belong together: {p v n}, {p v}{n}, {p}{v n}, {p}{v}{n} and {p n}{v}.
Each pair counts with the log-odds of its similarity under two normal distributions, within a topic and across topics.
The one across is drawn all along from exchanges far apart in the same thread, the one within from exchanges that were
not cut, so the scale fits any embedder and any thread without labels. A cut falls before ``v`` where the ways
that separate it from ``p`` are likely enough; their probability is the strength of the cut. What was decided once is
never revisited.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tsim_core.embedding import Vectors
from tsim_core.errors import ConfigError
from tsim_core.segmentation import MODEL_ROLES, USER_ROLES, ClosedSegment, Fetch, SegTurn
from tsim_core.similarity import Spread, likeness, likenesses, log_odds, representatives, scatter

SILENT_ROLES = MODEL_ROLES | {"tool", "function", "system", "developer"}  # never open an exchange once a user spoke

BEFORE_LAST = 0.4  # weight of the exchange before the last one beside it
SKIPPED = 0.5  # weight of the pair predecessor-successor, which is not independent of the other two
NULL_SIZE = 32  # earlier exchanges that the null distribution is drawn from
NULL_LAG = 4  # exchanges between two that count as unrelated
NULL_PRIOR, SAME_PRIOR, RATE_PRIOR, TIE_PRIOR = 20.0, 40.0, 10.0, 20.0  # weights of what is assumed at the start
SINGLE, RETURN, TIE = 0.05, 0.3, 0.4  # assumed: topics of one exchange; of these, detours; pull of the local level
FLOOR = 1e-4  # of a variance


@dataclass(frozen=True)
class CalibratedSegmentation:
    """Settings of the default segmentation.

    Attributes:
        max_tokens: Estimated tokens that a segment holds at most, unless one exchange alone is longer.
        cut_probability: Probability of a shift from which on a cut is made.
        shift_rate: Assumed probability that a turn starts a new topic, until the thread shows its own.
        null: Assumed mean and standard deviation of the similarity of unrelated exchanges, until the
            thread shows its own.
        same: The same for exchanges of one topic.
    """

    max_tokens: float = 800
    cut_probability: float = 0.4
    shift_rate: float = 0.16
    null: tuple[float, float] = (0.16, 0.13)
    same: tuple[float, float] = (0.45, 0.17)

    def __post_init__(self) -> None:
        if self.max_tokens <= 0:
            raise ConfigError(f"max_tokens {self.max_tokens}: expected a positive number")
        for name, value in (("cut_probability", self.cut_probability), ("shift_rate", self.shift_rate)):
            if not 0 < value < 1:
                raise ConfigError(f"{name} {value}: expected a probability between 0 and 1, both excluded")
        if self.null[1] <= 0 or self.same[1] <= 0 or self.same[0] <= self.null[0]:
            raise ConfigError(
                f"null {self.null} and same {self.same}: a spread is positive, and same has the higher mean"
            )


@dataclass
class Exchange:
    """A turn that opens an exchange and the replies up to the next one: what a cut never divides.

    Attributes:
        start: Position of its first turn.
        end: One more than the position of its last turn.
        tokens: Estimated tokens.
        speaks: Positions of its turns that have a vector; some in the middle are left out.
        vectors: Their vectors, shape (n, d); None before it is complete or where there are none.
        back: Its likeness with the one before and the one before that, as far as there are any.
    """

    start: int
    end: int
    tokens: float
    speaks: list[int] = field(default_factory=list)
    vectors: Vectors | None = None
    back: list[float | None] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """What was found about a cut before an exchange."""

    similarity: float | None
    threshold: float | None
    strength: float


class CalibratedSegmenter:
    """Cuts a stream of turns into segments; see the module's text.

    Args:
        config: Settings.
    """

    def __init__(self, config: CalibratedSegmentation) -> None:
        self.config = config
        self._null = Spread(config.null[0], config.null[1] ** 2, NULL_PRIOR)
        self._same = Spread(config.same[0], config.same[1] ** 2, SAME_PRIOR)
        self._tie = [TIE * TIE_PRIOR * config.same[1] ** 2, TIE_PRIOR * config.same[1] ** 2]  # covariance, variance
        self._rates: list[list[float]] = []  # (yes, no) of: shift, shift after a shift, detour
        self._reservoir: list[tuple[int, list[int], Vectors]] = []  # (number, positions, vectors) of exchanges
        self._seen = 0  # exchanges with a vector
        self._user_spoke = False
        # The exchanges that decisions still need: one or two of the open segment that are decided, then the undecided.
        self._recent: list[Exchange] = []
        self._decided = 0  # how many of them are decided
        self._open: tuple[int, float] | None = None  # start and tokens of the open segment, its decided exchanges only
        self._depth = 0  # decided exchanges of the open segment

    # -- the stream ---------------------------------------------------------------------------------------------------

    def push(self, turn: SegTurn) -> list[ClosedSegment]:
        """Take the next turn; see `Segmenter.push`."""
        closed: list[ClosedSegment] = []
        if not self._recent or self._opens(turn):
            if self._recent:
                self._complete(self._recent[-1])
                closed = self._decide()
            self._recent.append(Exchange(turn.position, turn.position + 1, 0.0))
        self._user_spoke = self._user_spoke or turn.role in USER_ROLES
        exchange = self._recent[-1]
        exchange.end = turn.position + 1
        exchange.tokens += turn.tokens
        if turn.vector is not None:
            rows = [turn.vector] if exchange.vectors is None else [*exchange.vectors, turn.vector]
            exchange.speaks.append(turn.position)
            kept = representatives(range(len(rows)))
            exchange.speaks = [exchange.speaks[i] for i in kept]
            exchange.vectors = np.stack([rows[i] for i in kept])
        return closed

    def open_span(self) -> tuple[int, int] | None:
        """See `Segmenter.open_span`."""
        if not self._recent:
            return None
        start = self._open[0] if self._open else self._recent[0].start
        return start, self._recent[-1].end

    def tail(self) -> list[ClosedSegment]:
        """The open span as it would be cut if the thread ended here. Changes nothing."""
        if not self._recent:
            return []
        twin = CalibratedSegmenter(self.config)
        twin.__dict__.update(self.__dict__)
        twin._null, twin._same = Spread(**vars(self._null)), Spread(**vars(self._same))
        twin._tie, twin._rates = list(self._tie), [list(r) for r in self._rates]
        twin._reservoir = list(self._reservoir)
        twin._recent = list(self._recent)
        last = twin._recent[-1] = replace(self._recent[-1], back=[])
        twin._complete(last)
        closed = twin._decide()
        while twin._decided < len(twin._recent):
            closed += twin._settle(len(twin._recent) == twin._decided + 1)
        start, end = twin._open[0] if twin._open else last.start, last.end
        return [*closed, ClosedSegment(start, end, twin._open[1] if twin._open else last.tokens, "end")]

    def _opens(self, turn: SegTurn) -> bool:
        if turn.vector is None:
            return False
        return turn.role not in SILENT_ROLES or (turn.role in MODEL_ROLES and not self._user_spoke)

    # -- what an exchange tells about the thread ----------------------------------------------------------------------

    def _complete(self, exchange: Exchange) -> None:
        """Measure an exchange against its predecessors and against unrelated ones."""
        place = len(self._recent) - 1
        for step in (1, 2):
            before = self._recent[place - step] if place >= step else None
            if before is None or before.vectors is None or exchange.vectors is None:
                exchange.back.append(None)
            else:
                exchange.back.append(likeness(exchange.vectors, before.vectors))
        if exchange.vectors is None:
            return
        number = self._seen
        far = [vectors for at, _, vectors in self._reservoir if at <= number - NULL_LAG]
        for value in likenesses(exchange.vectors, far):
            self._null.add(value)
        self._seen += 1
        entry = (number, exchange.speaks, exchange.vectors)
        if len(self._reservoir) < NULL_SIZE:
            self._reservoir.append(entry)
        else:
            slot = scatter(number) % (number + 1)  # reservoir sampling: every exchange is equally likely to be kept
            if slot < NULL_SIZE:
                self._reservoir[slot] = entry

    # -- decisions ----------------------------------------------------------------------------------------------------

    def _decide(self) -> list[ClosedSegment]:
        closed: list[ClosedSegment] = []
        while len(self._recent) - self._decided > 1:
            closed += self._settle(False)
        return closed

    def _settle(self, last: bool) -> list[ClosedSegment]:
        """Decide about the first undecided exchange; ``last`` where nothing follows it."""
        at = self._decided
        exchange = self._recent[at]
        closed: list[ClosedSegment] = []
        if self._open is None:
            self._open, self._depth = (exchange.start, 0.0), 0
        else:
            verdict = self._weigh(at, last)
            start, tokens = self._open
            shift = verdict.strength > self.config.cut_probability
            full = tokens + exchange.tokens > self.config.max_tokens
            if shift or full:
                closed.append(
                    ClosedSegment(
                        start,
                        exchange.start,
                        tokens,
                        "shift" if shift else "max",
                        verdict.similarity,
                        verdict.threshold,
                        verdict.strength,
                    )
                )
                self._open, self._depth = (exchange.start, 0.0), 0
        self._open = (self._open[0], self._open[1] + exchange.tokens)
        self._depth += 1
        self._decided += 1
        drop = self._decided - 2  # two decided ones are enough for what follows
        if drop > 0:
            del self._recent[:drop]
            self._decided -= drop
        return closed

    def _weigh(self, at: int, last: bool) -> Verdict:
        """Probability that a topic starts with the exchange at ``at``; teaches the running statistics."""
        exchange = self._recent[at]
        following = None if last else self._recent[at + 1]
        deep = self._depth >= 2
        near = _blend(exchange.back, deep)
        if near is None:  # nothing to compare: blank exchanges stay where they are
            return Verdict(None, None, 0.0)
        ahead = following.back[0] if following else None
        across = _blend([following.back[1]], False) if following else None
        level = [x for x in (ahead,) if x is not None]
        weights = [1.0] * len(level)
        earlier = self._recent[at - 1].back[0] if deep else None
        if earlier is not None:
            level.append(earlier)
            weights.append(0.5)
        local = sum(w * x for w, x in zip(weights, level, strict=True)) / sum(weights) if level else None
        if not self._rates:
            turns = 2 if self._user_spoke else 1
            shift = 1 - (1 - self.config.shift_rate) ** turns
            self._rates = [[RATE_PRIOR * p, RATE_PRIOR * (1 - p)] for p in (shift, SINGLE, RETURN)]
        shift, single, detour = (yes / (yes + no) for yes, no in self._rates)
        null = (self._null.mean, max(self._null.variance, FLOOR))
        same = self._expected(local)
        whole = (self._same.mean, max(self._same.variance, FLOOR))
        if ahead is None:
            together, apart = [math.log(1 - shift)], [math.log(shift)]
        else:
            a_n = log_odds(ahead, whole, null)
            p_n = 0.0 if across is None else SKIPPED * log_odds(across, whole, null)
            together = [2 * math.log(1 - shift) + a_n + p_n, math.log(1 - shift) + math.log(shift)]
            apart = [
                math.log(shift) + math.log(1 - single) + a_n,
                math.log(shift) + math.log(single) + math.log(1 - detour),
                math.log(shift) + math.log(single) + math.log(detour) + p_n,
            ]
        odds = log_odds(near, same, null)
        stay = _logsum(together)
        go = _logsum(apart)
        strength = 1 / (1 + math.exp(stay + odds - go))
        bar = math.log(self.config.cut_probability / (1 - self.config.cut_probability))
        threshold = _solve(same, null, go - stay - bar)
        self._learn(near, local, strength, together, apart, odds, ahead is not None)
        return Verdict(near, threshold, strength)

    def _expected(self, local: float | None) -> tuple[float, float]:
        """Mean and variance of the similarity within this topic, given how alike its other exchanges are."""
        mean, variance = self._same.mean, max(self._same.variance, FLOOR)
        if local is None:
            return mean, variance
        pull = max(0.0, min(0.9, self._tie[0] / self._tie[1]))
        floor = self._null.mean + 0.25 * (mean - self._null.mean)
        return max(mean + pull * (local - mean), floor), max(variance * (1 - pull * pull), FLOOR)

    def _learn(
        self,
        near: float,
        local: float | None,
        strength: float,
        together: Sequence[float],
        apart: Sequence[float],
        odds: float,
        whole: bool,
    ) -> None:
        total = _logsum([x + odds for x in together] + list(apart))
        self._rates[0][0] += strength
        self._rates[0][1] += 1 - strength
        if whole:
            alone, detour = (math.exp(x - total) for x in apart[1:])
            self._rates[1][0] += alone + detour
            self._rates[1][1] += math.exp(apart[0] - total)
            self._rates[2][0] += detour
            self._rates[2][1] += alone
        if local is not None:
            weight = math.exp(together[0] + odds - total)
            self._tie[0] += weight * (near - self._same.mean) * (local - self._same.mean)
            self._tie[1] += weight * (local - self._same.mean) ** 2
        if strength < 1:
            self._same.add(near, 1 - strength)

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """See `Segmenter.state`."""
        return {
            "null": self._null.values(),
            "same": self._same.values(),
            "tie": list(self._tie),
            "rates": [list(pair) for pair in self._rates],
            "reservoir": [[number, list(positions)] for number, positions, _ in self._reservoir],
            "seen": self._seen,
            "user_spoke": self._user_spoke,
            "recent": [[e.start, e.end, e.tokens, list(e.speaks), list(e.back)] for e in self._recent],
            "decided": self._decided,
            "open": None if self._open is None else list(self._open),
            "depth": self._depth,
        }

    def restore(self, state: dict[str, Any], fetch: Fetch) -> None:
        """See `Segmenter.restore`."""
        wanted = {p for _, positions in state["reservoir"] for p in positions}
        wanted |= {p for _, _, _, speaks, _ in state["recent"] for p in speaks}
        turns = fetch(sorted(wanted))
        rows = {p: t.vector for p, t in turns.items() if t.vector is not None}
        for spread, values in ((self._null, state["null"]), (self._same, state["same"])):
            spread.mean, spread.variance, spread.count = values
        self._tie, self._rates = list(state["tie"]), [list(pair) for pair in state["rates"]]
        self._seen, self._user_spoke = state["seen"], state["user_spoke"]
        self._reservoir = []
        for number, positions in state["reservoir"]:
            held = [p for p in positions if p in rows]
            if held:
                self._reservoir.append((number, held, np.stack([rows[p] for p in held])))
        self._recent = []
        for start, end, tokens, speaks, back in state["recent"]:
            held = [p for p in speaks if p in rows]
            vectors = np.stack([rows[p] for p in held]) if held else None
            self._recent.append(Exchange(start, end, tokens, held, vectors, list(back)))
        self._decided, self._depth = state["decided"], state["depth"]
        self._open = None if state["open"] is None else (state["open"][0], state["open"][1])


def _blend(back: Sequence[float | None], deep: bool) -> float | None:
    """Likeness with the last exchange, and with the one before where that is of the same segment."""
    last = back[0]
    if last is None or not deep or len(back) < 2 or back[1] is None:
        return last
    return (last + BEFORE_LAST * back[1]) / (1 + BEFORE_LAST)


def _logsum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values))


def _solve(same: tuple[float, float], null: tuple[float, float], odds: float) -> float:
    """The similarity whose log-odds are ``odds``, by bisection between -1 and 1."""
    low, high = -1.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if log_odds(middle, same, null) < odds:
            low = middle
        else:
            high = middle
    return low
