"""Intervals and paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.stats import binomtest

Z_95 = 1.959963984540054
RESAMPLES = 10_000


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; (0, 1) where nothing was counted."""
    if total == 0:
        return 0.0, 1.0
    share, z2 = hits / total, Z_95**2
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = Z_95 * sqrt(share * (1 - share) / total + z2 / (4 * total**2)) / (1 + z2 / total)
    # At 0 and at 1 the formula gives the bound itself but for rounding.
    low = 0.0 if hits == 0 else max(0.0, centre - half)
    high = 1.0 if hits == total else min(1.0, centre + half)
    return low, high


@dataclass(frozen=True, slots=True)
class Paired:
    """Two systems on the same questions.

    Attributes:
        n: Questions.
        first: Share that the first got.
        second: Share that the second got.
        only_first: Questions that only the first got.
        only_second: Questions that only the second got.
        difference: ``first - second``.
        interval: Its 95 % bootstrap interval (percentiles, pairs resampled).
        p_value: Exact two-sided McNemar test.
    """

    n: int
    first: float
    second: float
    only_first: int
    only_second: int
    difference: float
    interval: tuple[float, float]
    p_value: float


def compare_paired(first: Sequence[bool], second: Sequence[bool], seed: int = 7) -> Paired:
    """Compare two systems question by question.

    Args:
        first: Whether the first system got each question.
        second: The same for the second, in the same order.
        seed: Of the bootstrap.

    Raises:
        ValueError: If there are no questions or the lengths differ.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} and {len(second)} outcomes: expected equally many, at least one")
    n = len(first)
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    discordant = only_first + only_second
    p_value = float(binomtest(only_first, discordant).pvalue) if discordant else 1.0
    # A pair is worth +1, 0 or -1: resampling the pairs is drawing the three counts.
    rest = n - discordant
    draws = np.random.default_rng(seed).multinomial(n, [only_first / n, only_second / n, rest / n], size=RESAMPLES)
    low, high = np.percentile((draws[:, 0] - draws[:, 1]) / n, [2.5, 97.5])
    return Paired(
        n=n,
        first=sum(first) / n,
        second=sum(second) / n,
        only_first=only_first,
        only_second=only_second,
        difference=(only_first - only_second) / n,
        interval=(float(low), float(high)),
        p_value=p_value,
    )
