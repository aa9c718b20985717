"""M2, the published cluster view: episodes of one theme, gathered online by centroid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tsim_core.embedding import Vectors
from tsim_core.views import PublishedViews


@dataclass(frozen=True, slots=True)
class Cluster:
    """Episodes of one theme.

    Attributes:
        number: Identity within the thread.
        members: Starts of its episodes, in order of arrival.
        centroid: Sum of the members' summary vectors, shape (d,); its direction is the centroid's.
    """

    number: int
    members: tuple[int, ...]
    centroid: Vectors


def cosine(a: Vectors, b: Vectors) -> float:
    """Cosine of two vectors; 0 where one has no length."""
    norm = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(a @ b) / norm if norm > 0 else 0.0


def assign(
    clusters: Sequence[Cluster], episode: int, vector: Vectors, config: PublishedViews
) -> tuple[list[Cluster], set[int]]:
    """Put an episode into its cluster or clusters, and merge clusters that have become one.

    Args:
        clusters: The clusters so far.
        episode: Start of the episode.
        vector: Its summary vector.
        config: Thresholds.

    Returns:
        The clusters afterwards, by number, and the numbers of those that are new or changed.
    """
    now = {cluster.number: cluster for cluster in clusters}
    similarity = {number: cosine(vector, cluster.centroid) for number, cluster in now.items()}
    best = max(similarity.values(), default=-1.0)
    if best < config.cluster_threshold:
        number = max(now, default=-1) + 1
        now[number] = Cluster(number, (episode,), vector)
        return list(now.values()), {number}
    floor = max(config.cluster_threshold, best - config.soft_margin)
    joined = {number for number, value in similarity.items() if value >= floor}
    for number in joined:
        old = now[number]
        now[number] = Cluster(number, (*old.members, episode), old.centroid + vector)
    changed = set(joined)
    for number in sorted(joined):
        for other in sorted(now):
            if number not in now or other == number:
                continue
            if cosine(now[number].centroid, now[other].centroid) >= config.merge_threshold:
                keep, drop = min(number, other), max(number, other)
                now[keep] = _merged(now[keep], now.pop(drop), {episode: vector})
                changed.add(keep)
                changed.discard(drop)
    return [now[number] for number in sorted(now)], changed


def _merged(a: Cluster, b: Cluster, shared: Mapping[int, Vectors]) -> Cluster:
    """One cluster of two; an episode that both hold counts once (only the newest's vector is at hand)."""
    centroid = a.centroid + b.centroid
    for episode in set(a.members) & set(b.members):
        if episode in shared:
            centroid = centroid - shared[episode]
    return Cluster(a.number, tuple(sorted({*a.members, *b.members})), centroid)
