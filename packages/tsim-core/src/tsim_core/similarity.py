"""How alike two groups of turns are, and what such a likeness says about their topics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsim_core.embedding import Vectors

FLOOR = 1e-4  # of a variance
REPEATED = 0.9999  # cosine of a text with itself, as far as floats tell


def representatives(size: int, kept: int = 4) -> list[int]:
    """Which of ``size`` rows stand for all: at most ``kept``, half of them the first and half the last ones."""
    if size <= kept:
        return list(range(size))
    return [*range(kept // 2), *range(size - (kept - kept // 2), size)]


def likeness(a: Vectors, b: Vectors) -> float:
    """Mean cosine of each turn with its best match in the other group, both ways (Chamfer similarity).

    What is said word for word in both ("Noted.") tells nothing about their topics and is left out, unless nothing
    else is said.

    Args:
        a: Unit rows, shape (n, d).
        b: Unit rows, shape (m, d).
    """
    cosines = a @ b.T
    repeated = cosines > REPEATED
    if repeated.any():
        own = cosines[~repeated.any(axis=1)][:, ~repeated.any(axis=0)]
        cosines = own if own.size else cosines
    return float((cosines.max(axis=0).mean() + cosines.max(axis=1).mean()) / 2)


def likenesses(a: Vectors, groups: Sequence[Vectors]) -> list[float]:
    """`likeness` of ``a`` with each of several groups, in one product."""
    return Stack.of(groups).likenesses(a)


@dataclass(frozen=True)
class Stack:
    """Groups of turns below each other, so that all are compared at once.

    Attributes:
        rows: Their unit rows, shape (n, d).
        sizes: Rows of each group, at least one, shape (groups,).
    """

    rows: Vectors
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, groups: Sequence[Vectors]) -> Stack:
        """A stack of these groups."""
        rows = np.concatenate(groups) if groups else np.zeros((0, 0), dtype=np.float32)
        return cls(rows, np.array([len(group) for group in groups], dtype=np.int64))

    def likenesses(self, a: Vectors) -> list[float]:
        """`likeness` of ``a`` with each group."""
        if not len(self.sizes):
            return []
        starts = self._starts
        cosines = self.rows @ a.T
        if (cosines > REPEATED).any():
            return [likeness(a, group) for group in np.split(self.rows, starts[1:])]
        towards = np.maximum.reduceat(cosines, starts, axis=0).mean(axis=1)
        back = np.add.reduceat(cosines.max(axis=1), starts) / self.sizes
        return [float(x) for x in (towards + back) / 2]

    def pairwise(self) -> NDArray[np.float64]:
        """`likeness` of each group with each, shape (groups, groups)."""
        if not len(self.sizes):
            return np.zeros((0, 0))
        starts = self._starts
        cosines = self.rows @ self.rows.T
        best = np.maximum.reduceat(cosines, starts, axis=1)
        towards = np.add.reduceat(best, starts, axis=0) / self.sizes[:, None]
        alike: NDArray[np.float64] = (towards + towards.T) / 2
        groups, owner = np.split(self.rows, starts[1:]), np.repeat(np.arange(len(starts)), self.sizes)
        for i, j in np.unique(owner[np.argwhere(cosines > REPEATED)], axis=0).tolist():
            if i < j:
                alike[i, j] = alike[j, i] = likeness(groups[i], groups[j])
        return alike

    @property
    def _starts(self) -> NDArray[np.int64]:
        starts: NDArray[np.int64] = np.cumsum(self.sizes) - self.sizes
        return starts


@dataclass
class Spread:
    """Running mean and variance that start from an assumption and follow drift.

    Attributes:
        mean: Current mean.
        variance: Current variance.
        count: Weight of what was seen so far, the assumption included.
        cap: Weight that old values keep at most; beyond it they fade.
    """

    mean: float
    variance: float
    count: float
    cap: float = 2000.0

    def add(self, value: float, weight: float = 1.0) -> None:
        """Take in a value."""
        self.count = min(self.count + weight, self.cap)
        share = weight / self.count
        delta = value - self.mean
        self.mean += share * delta
        self.variance += share * (delta * (value - self.mean) - self.variance)

    def values(self) -> list[float]:
        """As JSON data."""
        return [self.mean, self.variance, self.count]

    def restore(self, values: Sequence[float]) -> None:
        """Continue where `values` was taken."""
        self.mean, self.variance, self.count = values


def log_odds(value: float, same: tuple[float, float], other: tuple[float, float], limit: float = 6.0) -> float:
    """Log-odds that a likeness stems from one topic and not from two, under two normal distributions.

    Where the quotient of the two densities would turn back far out in a tail, it stays flat: more alike never counts
    less.

    Args:
        value: The likeness.
        same: Mean and variance within a topic.
        other: Mean and variance across topics.
        limit: Bound of the result, so that no pair decides alone.
    """
    (m1, v1), (m0, v0) = same, other
    if v1 != v0:
        turning = (m1 * v0 - m0 * v1) / (v0 - v1)
        value = max(value, turning) if v1 > v0 else min(value, turning)
    odds = (value - m0) ** 2 / (2 * v0) - (value - m1) ** 2 / (2 * v1) + 0.5 * math.log(v0 / v1)
    return max(-limit, min(limit, odds))


class Reservoir:
    """A bounded, uniform sample of all groups offered so far. Deterministic.

    Args:
        size: Groups that it holds at most.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._offered = 0
        self._held: list[tuple[int, list[int], Vectors]] = []  # number, positions, vectors
        self._stack: Stack | None = None  # of what is held, once it was compared

    def __copy__(self) -> Reservoir:
        twin = Reservoir(self._size)
        twin._offered, twin._held, twin._stack = self._offered, list(self._held), self._stack
        return twin

    def offer(self, positions: Sequence[int], vectors: Vectors) -> None:
        """Offer a group; every group so far is equally likely to be held (algorithm R)."""
        entry = (self._offered, list(positions), vectors)
        slot = len(self._held) if len(self._held) < self._size else _scatter(self._offered) % (self._offered + 1)
        if slot < self._size:
            self._held[slot : slot + 1] = [entry]
            self._stack = None
        self._offered += 1

    def compare(self, vectors: Vectors, lag: int = 0) -> list[float]:
        """`likeness` with each group held that was offered at least ``lag`` groups before the next one."""
        if self._stack is None:
            self._stack = Stack.of([held for *_, held in self._held])
        found = zip(self._held, self._stack.likenesses(vectors), strict=True)
        return [value for (number, *_), value in found if number <= self._offered - lag]

    def state(self) -> list[Any]:
        """As JSON data: numbers and positions."""
        return [self._offered, [[number, list(positions)] for number, positions, _ in self._held]]

    @staticmethod
    def positions(state: Sequence[Any]) -> Iterable[int]:
        """Positions whose vectors `restore` needs."""
        return (position for _, positions in state[1] for position in positions)

    def restore(self, state: Sequence[Any], rows: Mapping[int, Vectors]) -> None:
        """Continue where `state` was taken; what was forgotten since is left out."""
        self._offered = state[0]
        self._held, self._stack = [], None
        for number, positions in state[1]:
            held = [p for p in positions if p in rows]
            if held:
                self._held.append((number, held, np.stack([rows[p] for p in held])))


def _scatter(number: int) -> int:
    """A fixed pseudo-random 64-bit number for each integer (SplitMix64)."""
    z = (number + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return z ^ (z >> 31)
