"""Joining rankings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tsim_core.embedding import Vectors

RRF_K = 60  # Cormack, Clarke and Buettcher (2009)


def reciprocal_ranks(rankings: Sequence[Sequence[int]], constant: int = RRF_K) -> list[tuple[int, float]]:
    """Reciprocal-rank fusion: (item, score), best first; ties go to the lower item."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + 1 / (constant + rank)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def maximal_marginal(relevance: Sequence[float], vectors: Vectors, balance: float) -> list[int]:
    """Order items so that each is relevant and unlike those before it (MMR, Carbonell and Goldstein 1998).

    Args:
        relevance: Of each item, on the scale of a cosine.
        vectors: Unit vectors of the items, shape (n, d).
        balance: Weight of relevance against novelty, 0 to 1.
    """
    value = np.asarray(relevance, dtype=np.float64)
    nearest = np.zeros(len(value))
    left = list(range(len(value)))
    order: list[int] = []
    while left:
        gains = balance * value[left] - (1 - balance) * nearest[left]
        best = left.pop(int(np.argmax(gains)))
        order.append(best)
        nearest = np.maximum(nearest, vectors @ vectors[best])
    return order
