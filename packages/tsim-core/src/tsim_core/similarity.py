"""How alike two groups of turns are, and how alike unrelated and related groups are: a scale that fits any embedder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tsim_core.embedding import Vectors

KEPT = 4  # vectors that stand for a group: its first and its last ones


def representatives(positions: Sequence[int]) -> list[int]:
    """At most `KEPT` of a group's positions, the first half from its head and the rest from its tail."""
    if len(positions) <= KEPT:
        return list(positions)
    return [*positions[: KEPT // 2], *positions[-(KEPT - KEPT // 2) :]]


def likeness(a: Vectors, b: Vectors) -> float:
    """Mean cosine of each turn with its best match in the other group, both ways (Chamfer similarity).

    Args:
        a: Unit rows, shape (n, d).
        b: Unit rows, shape (m, d).
    """
    cosines = a @ b.T
    return float((cosines.max(axis=0).mean() + cosines.max(axis=1).mean()) / 2)


def likenesses(a: Vectors, groups: Sequence[Vectors]) -> list[float]:
    """`likeness` of ``a`` with each of several groups, in one product."""
    if not groups:
        return []
    starts = np.cumsum([0, *(len(g) for g in groups[:-1])])
    cosines = np.concatenate(groups) @ a.T
    towards = np.maximum.reduceat(cosines, starts, axis=0).mean(axis=1)
    sizes = np.array([len(g) for g in groups])
    back = np.add.reduceat(cosines.max(axis=1), starts) / sizes
    return [float(x) for x in (towards + back) / 2]


@dataclass
class Spread:
    """Running mean and variance that start from a prior and follow drift.

    Attributes:
        mean: Current mean.
        variance: Current variance.
        count: Weight of what was seen so far, the prior included.
        cap: Weight that old values keep at most; beyond it they fade.
    """

    mean: float
    variance: float
    count: float
    cap: float = 2000.0

    def add(self, value: float, weight: float = 1.0) -> None:
        """Take one more value."""
        self.count = min(self.count + weight, self.cap)
        share = weight / self.count
        delta = value - self.mean
        self.mean += share * delta
        self.variance += share * (delta * (value - self.mean) - self.variance)

    def values(self) -> list[float]:
        """As JSON data."""
        return [self.mean, self.variance, self.count]


def log_odds(value: float, same: tuple[float, float], other: tuple[float, float], limit: float = 6.0) -> float:
    """Log-odds that a similarity stems from one topic and not from two, under two normal distributions.

    The tails are made monotone: beyond the point where the quotient of two normal densities turns back, it stays flat.

    Args:
        value: The similarity.
        same: Mean and variance within a topic.
        other: Mean and variance across topics.
        limit: Bound of the result, so that no single pair decides alone.
    """
    (m1, v1), (m0, v0) = same, other
    if v1 != v0:
        turning = (m1 * v0 - m0 * v1) / (v0 - v1)
        value = max(value, turning) if v1 > v0 else min(value, turning)
    odds = (value - m0) ** 2 / (2 * v0) - (value - m1) ** 2 / (2 * v1) + 0.5 * math.log(v0 / v1)
    return max(-limit, min(limit, odds))


def scatter(number: int) -> int:
    """A fixed pseudo-random 64-bit number for each integer (SplitMix64)."""
    z = (number + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return z ^ (z >> 31)
