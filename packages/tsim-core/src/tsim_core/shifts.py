"""How likely a new topic starts, given a few similarities: the probabilistic half of the default segmentation.

For an exchange ``v`` with its predecessor ``p`` and its successor ``n`` there are five ways in which the three can
belong together: {p v n}, {p v}{n}, {p}{v n}, {p}{v}{n} and {p n}{v}. Each pair of a way counts with the log-odds of its
likeness under two normal distributions, within a topic and across topics; how often each way occurs is learned too.
Everything is learned from the thread itself, by weighing each exchange with the probabilities found for it (online EM).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tsim_core.similarity import FLOOR, Spread, log_odds

SKIPPED = 0.5  # weight of the pair p-n, which is not independent of the other two
ON_A_PAR = 0.5  # weight of all pairs where exchanges are single turns, whose similarities say less
EARLIER = 3.0  # bound of the log-odds of an earlier run: a hint, not a proof
PAUSES = (60.0, 600.0, 3600.0, 8 * 3600.0, 48 * 3600.0)  # seconds that part short pauses from longer ones
PAUSE_PRIOR = 10.0  # weight of the lengths of all pauses beside those before shifts, or before all else
PAUSE_LIMIT = 1.5  # bound of the log-odds of a pause: a topic may be taken up again the next day
NULL_PRIOR, SAME_PRIOR, RATE_PRIOR, PULL_PRIOR = 20.0, 40.0, 10.0, 20.0  # weights of the assumptions, in observations
SHIFT, SINGLE, DETOUR, RESUMED = range(
    4
)  # rates: a shift; of these, a topic of one exchange; of these, a detour; resumed
SINGLE_RATE, DETOUR_RATE, RESUMED_RATE, PULL = 0.05, 0.3, 0.2, 0.2  # assumed until the thread shows its own


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a possible cut before an exchange.

    Attributes:
        near: Likeness with what comes before.
        ahead: Likeness with the next exchange; None where there is none yet.
        across: Likeness between the next exchange and the one before.
        local: Usual likeness around here.
        earlier: Likeness with runs before the current one, which the exchange may resume.
        cue: Log-odds of an opening, from words.
        pressure: Log-odds of a cut, from the length of the segment.
        pause: Seconds since the exchange before; None where a time is not known.
        on_a_par: Whether exchanges are single turns.
    """

    near: float
    ahead: float | None
    across: float | None
    local: float | None
    earlier: Sequence[float]
    cue: float
    pressure: float
    pause: float | None
    on_a_par: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """What `ShiftModel.weigh` found.

    Attributes:
        seen: The evidence.
        strength: Probability of a shift.
        whole: Probability that predecessor, exchange and successor all belong together.
        go: Probabilities of the ways to part from the predecessor: with the successor, alone, as a detour.
        resumed: Share of a shift that goes back to an earlier topic.
        even: Log-odds of staying that would balance all else.
        trust: Weight of the pairs.
        same: Mean and variance of likeness expected within this topic.
        null: The same for unrelated exchanges.
    """

    seen: Evidence
    strength: float
    whole: float
    go: tuple[float, ...]
    resumed: float
    even: float
    trust: float
    same: tuple[float, float]
    null: tuple[float, float]

    def threshold(self, probability: float) -> float:
        """The likeness with what comes before under which a shift is more likely than ``probability``."""
        wanted = self.even - math.log(probability / (1 - probability)) / self.trust
        low, high = -1.0, 1.0
        for _ in range(40):  # bisection: log_odds is monotone but has no inverse at its bounds
            middle = (low + high) / 2
            low, high = (middle, high) if log_odds(middle, self.same, self.null) < wanted else (low, middle)
        return high


class ShiftModel:
    """Running statistics of a thread, and the probability of a shift that follows from them.

    Args:
        null: Assumed mean and standard deviation of the likeness of unrelated exchanges.
        same: The same for neighbouring exchanges of one topic.
        shift_rate: Assumed probability that an exchange starts a topic.
    """

    def __init__(self, null: tuple[float, float], same: tuple[float, float], shift_rate: float) -> None:
        self.null = Spread(null[0], null[1] ** 2, NULL_PRIOR)
        self.same = Spread(same[0], same[1] ** 2, SAME_PRIOR)
        # Covariance and variance of near and local: how far the local level tells what to expect.
        self._pull = [PULL * PULL_PRIOR * same[1] ** 2, PULL_PRIOR * same[1] ** 2]
        # Exchanges that are no shift, and those that are, by the length of the pause before them.
        self._pauses = [[0.0] * (len(PAUSES) + 1) for _ in range(2)]
        assumed = (shift_rate, SINGLE_RATE, DETOUR_RATE, RESUMED_RATE)
        self._rates = [[RATE_PRIOR * p, RATE_PRIOR * (1 - p)] for p in assumed]

    def weigh(self, seen: Evidence) -> Finding:
        """Weigh the evidence; changes nothing."""
        shift, single, detour, resumed = (yes / (yes + no) for yes, no in self._rates)
        same, null, expected = self._same(), self._null(), self._expected(seen.local)
        trust = ON_A_PAR if seen.on_a_par else 1.0
        # A topic that comes back is a shift without the words of an opening; earlier runs hint at it.
        back = 1.0
        if seen.earlier:
            back = sum(math.exp(log_odds(x, same, null, EARLIER)) for x in seen.earlier) / len(seen.earlier)
        opened, back = (1 - resumed) * math.exp(seen.cue), resumed * back
        opening = math.log(opened + back) + math.log(shift) + seen.pressure + self._pause_odds(seen.pause)
        if seen.ahead is None:
            stay = [math.log(1 - shift)]
            go = [opening]
        else:
            ahead = trust * log_odds(seen.ahead, same, null)
            across = 0.0 if seen.across is None else trust * SKIPPED * log_odds(seen.across, same, null)
            stay = [2 * math.log(1 - shift) + ahead + across, math.log(1 - shift) + math.log(shift)]
            go = [
                opening + math.log(1 - single) + ahead,
                opening + math.log(single) + math.log(1 - detour),
                opening + math.log(single) + math.log(detour) + across,
            ]
        near = trust * log_odds(seen.near, expected, null)
        even = log_sum(go) - log_sum(stay)
        total = log_sum([*(x + near for x in stay), *go])
        return Finding(
            seen=seen,
            strength=1 / (1 + math.exp(near - even)),
            whole=math.exp(stay[0] + near - total),
            go=tuple(math.exp(x - total) for x in go),
            resumed=back / (opened + back),
            even=even / trust,
            trust=trust,
            same=expected,
            null=null,
        )

    def learn(self, found: Finding) -> None:
        """Take in what was found."""
        strength, local, near = found.strength, found.seen.local, found.seen.near
        self._count(SHIFT, strength, 1 - strength)
        if found.seen.pause is not None:
            length = bisect_right(PAUSES, found.seen.pause)
            self._pauses[0][length] += 1 - strength
            self._pauses[1][length] += strength
        self._count(RESUMED, strength * found.resumed, strength * (1 - found.resumed))
        if len(found.go) == 3:
            pair, alone, detour = found.go
            self._count(SINGLE, alone + detour, pair)
            self._count(DETOUR, detour, alone)
        if local is not None:
            off = local - self.same.mean
            self._pull[0] += found.whole * (near - self.same.mean) * off
            self._pull[1] += found.whole * off * off
        self.same.add(near, 1 - strength)

    def _null(self) -> tuple[float, float]:
        return self.null.mean, max(self.null.variance, FLOOR)

    def _same(self) -> tuple[float, float]:
        return self.same.mean, max(self.same.variance, FLOOR)

    def _expected(self, local: float | None) -> tuple[float, float]:
        """Mean and variance of the likeness within this topic, given how alike its other exchanges are."""
        mean, variance = self._same()
        if local is None:
            return mean, variance
        pull = max(0.0, min(0.9, self._pull[0] / self._pull[1]))
        least = self.null.mean + (mean - self.null.mean) / 4  # a loose topic is still a topic
        return max(mean + pull * (local - mean), least), max(variance * (1 - pull * pull), FLOOR)

    def _pause_odds(self, pause: float | None) -> float:
        """Log-odds of a shift from the pause before it; 0 as long as shifts come after the same pauses as all else."""
        if pause is None:
            return 0.0
        length = bisect_right(PAUSES, pause)
        stayed, shifted = (counts[length] for counts in self._pauses)
        stays, shifts = (sum(counts) for counts in self._pauses)
        usual = PAUSE_PRIOR * (stayed + shifted + 1) / (stays + shifts + 1)
        odds = math.log((shifted + usual) / (shifts + PAUSE_PRIOR)) - math.log((stayed + usual) / (stays + PAUSE_PRIOR))
        return max(-PAUSE_LIMIT, min(PAUSE_LIMIT, odds))

    def _count(self, rate: int, yes: float, no: float) -> None:
        self._rates[rate][0] += yes
        self._rates[rate][1] += no

    def state(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "null": self.null.values(),
            "same": self.same.values(),
            "pull": list(self._pull),
            "pauses": [list(counts) for counts in self._pauses],
            "rates": [list(pair) for pair in self._rates],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where `state` was taken."""
        self.null.restore(state["null"])
        self.same.restore(state["same"])
        self._pull = list(state["pull"])
        self._pauses = [list(counts) for counts in state["pauses"]]
        self._rates = [list(pair) for pair in state["rates"]]


def log_sum(values: Sequence[float]) -> float:
    """Logarithm of the sum of exponentials."""
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values))
