"""M3 as published: score episodes by what their views say of the query (paper equations 4 to 8)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tsim_core.embedding import Vectors
from tsim_core.errors import ConfigError
from tsim_core.index.flat import FlatIndex


@dataclass(frozen=True)
class PublishedRanking:
    """Constants of the published ranking (paper table 18).

    Attributes:
        k_r: Raw hits.
        k_s: Summary hits.
        k_l: Cluster hits.
        w_r: Weight of the raw view.
        w_s: Weight of the summary view.
        w_l: Weight of the cluster view.
        lambda_sem: Weight of semantic expansion.
        lambda_l: Attenuation by rank within a cluster.
        cluster_expansion: Episodes that a cluster hit brings in.
        expansion: Seeds of semantic expansion, and episodes that each brings in.
        temporal_hops: Neighbours in time, each side, that an episode shares its score with.
        temporal_decay: Attenuation by hop.
    """

    k_r: int = 28
    k_s: int = 20
    k_l: int = 2
    w_r: float = 1.15
    w_s: float = 1.20
    w_l: float = 0.75
    lambda_sem: float = 0.55
    lambda_l: float = 0.70
    cluster_expansion: int = 2
    expansion: int = 2
    temporal_hops: int = 0
    temporal_decay: float = 0.5

    def __post_init__(self) -> None:
        for name in ("k_r", "k_s", "k_l", "cluster_expansion", "expansion", "temporal_hops"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} {getattr(self, name)}: expected at least 0")
        if self.k_r + self.k_s + self.k_l == 0:
            raise ConfigError("k_r, k_s and k_l are all 0: nothing would ever be found")


@dataclass(slots=True)
class RankedEpisode:
    """An episode with its score.

    Attributes:
        episode: Its number in the arrays that were ranked.
        evidence: What each view adds; the score is their sum.
        turn_scores: Relevance of its rows, and of those of episodes around it that may be part of it; in what is handed
            to assembly, of all that may be handed over.
    """

    episode: int
    evidence: dict[str, float]
    turn_scores: dict[int, float] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """Sum of the evidence."""
        return sum(self.evidence.values())


def rank_published(
    query: Vectors,
    raw: FlatIndex,
    episode_of_row: NDArray[np.int64],
    summaries: Vectors,
    clusters: Sequence[tuple[Sequence[int], Vectors]],
    config: PublishedRanking,
    allowed: NDArray[np.bool_] | None = None,
) -> list[RankedEpisode]:
    """Rank the episodes of one thread, best first.

    Args:
        query: Unit vector of the query, shape (d,).
        raw: Vectors of the turns.
        episode_of_row: Number of the episode that each row of ``raw`` belongs to, shape (n,).
        summaries: Summary vectors by episode number, shape (m, d).
        clusters: Of each cluster its episodes' numbers and the vector of its text.
        config: Constants.
        allowed: Rows that may be found; an episode without one is out. All when None.

    Returns:
        Every episode that some view found. Ties go to the newer episode.
    """
    evidence: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    turn_scores: dict[int, dict[int, float]] = defaultdict(dict)
    if not len(raw):
        return []
    rows, cosines = raw.search(query, config.k_r, allowed)
    for row, similarity in zip(rows.tolist(), cosines.tolist(), strict=True):
        episode = int(episode_of_row[row])
        evidence[episode]["raw"] += config.w_r * similarity  # (5)
        turn_scores[episode][row] = similarity
    to_query = summaries @ query
    if allowed is not None:
        out = np.ones(len(summaries), dtype=np.bool_)
        out[episode_of_row[allowed]] = False
        to_query[out] = -np.inf
    for episode in _top(to_query, config.k_s):
        evidence[episode]["summary"] += config.w_s * float(to_query[episode])  # (6)
    for members, similarity in _cluster_hits(query, clusters, config.k_l):
        inside = [e for e in members if np.isfinite(to_query[e])]
        best = sorted(inside, key=lambda e: (-to_query[e], -e))[: config.cluster_expansion]
        for place, episode in enumerate(best):
            evidence[episode]["cluster"] += config.w_l * config.lambda_l**place * similarity  # (7)
    local = {episode: sum(parts.values()) for episode, parts in evidence.items()}
    seeds = sorted(local, key=lambda e: (-local[e], -e))[: config.expansion if config.lambda_sem else 0]
    for seed in seeds:
        to_seed = summaries @ summaries[seed]
        to_seed[seed] = -np.inf
        to_seed[~np.isfinite(to_query)] = -np.inf
        for episode in _top(to_seed, config.expansion):
            boost = config.lambda_sem * float(to_query[seed]) * float(to_seed[episode])
            evidence[episode]["semantic"] += boost  # (8)
    if config.temporal_hops:
        for episode, score in local.items():
            for hop in range(1, config.temporal_hops + 1):
                for neighbour in (episode - hop, episode + hop):
                    if neighbour in local:
                        evidence[neighbour]["temporal"] += config.temporal_decay**hop * score
    ranked = [RankedEpisode(e, dict(parts), turn_scores.get(e, {})) for e, parts in evidence.items()]
    return sorted(ranked, key=lambda r: (-r.score, -r.episode))


def _top(scores: Vectors, k: int) -> list[int]:
    """Numbers of the ``k`` highest finite scores, best first; ties go to the lower number."""
    order = np.argsort(-scores, kind="stable")[:k].tolist()
    return [i for i in order if np.isfinite(scores[i])]


def _cluster_hits(
    query: Vectors, clusters: Sequence[tuple[Sequence[int], Vectors]], k: int
) -> list[tuple[Sequence[int], float]]:
    scored = [(members, float(vector @ query)) for members, vector in clusters]
    return sorted(scored, key=lambda hit: -hit[1])[:k]
