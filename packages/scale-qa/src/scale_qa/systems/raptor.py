"""RAPTOR (Sarthi et al., ICLR 2024): a tree of summaries over chunks, searched as one flat collection."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from tsim_core.embedding import Vectors
from tsim_core.types import Turn

from scale_qa.systems import SystemSpec
from scale_qa.systems.base import Footprint, MemorySystem, Resources, Unit, embed_query, embed_texts
from scale_qa.systems.spans import windows
from scale_qa.tokens import estimate_tokens

LEAF_TOKENS = 100
SUMMARY_TOKENS = 150
CLUSTER_SIZE = 8  # children of a summary, on average
JOIN = 0.1  # probability from which a node joins a further cluster
DIMENSIONS = 10  # that clustering works in
LEVELS = 5
SMALLEST_LEVEL = 2 * CLUSTER_SIZE
SEED = 7


class Raptor(MemorySystem):
    """Chunks of 100 tokens, soft clusters (PCA and a Gaussian mixture), summaries, again up to five levels.

    No gold blocks: chunks are cut from the flat thread. The paper reduces with UMAP; PCA is its deterministic
    stand-in here. Without an LLM a summary is extractive: the whole turns nearest to the cluster's mean, up to 150
    tokens. Turns that are written back become leaves; the tree above them is not built again, as in RAPTOR.
    """

    def __init__(self, resources: Resources) -> None:
        self._embedder = resources.embedder
        self._complete = resources.complete
        self._turns: list[Turn] = []
        self._leaves: list[Unit] = []
        self._summaries: list[Unit] = []
        self._leaf_vectors = np.zeros((0, self._embedder.dimension), dtype=np.float32)
        self._summary_vectors = self._leaf_vectors
        notes = ["RAPTOR: PCA stands in for UMAP"]
        if resources.complete is None:
            notes.append("RAPTOR: summaries are the turns nearest to the cluster's mean (no LLM set)")
        self.notes = tuple(notes)

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Make leaves, and the tree on the first call."""
        if not turns:
            return
        start = len(self._turns)
        self._turns += turns
        cut = windows(LEAF_TOKENS)([estimate_tokens(turn.text) for turn in turns])
        new = [Unit(tuple(start + i for i in span)) for span in cut]
        self._leaves += new
        vectors = embed_texts(self._embedder, [self._text(leaf) for leaf in new])
        first = not len(self._leaf_vectors)
        self._leaf_vectors = np.concatenate([self._leaf_vectors, vectors])
        if first:
            self._build()

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """The nearest nodes of all levels (the collapsed tree, which the paper found best)."""
        if not self._leaves:
            return []
        vector = embed_query(self._embedder, query)
        scores = np.concatenate([self._leaf_vectors @ vector, self._summary_vectors @ vector])
        nodes = [*self._leaves, *self._summaries]
        return [nodes[i] for i in np.argsort(-scores, kind="stable")[:k]]

    def footprint(self) -> Footprint:
        """One vector a node."""
        nodes = len(self._leaves) + len(self._summaries)
        return Footprint(nodes, nodes * self._embedder.dimension * 4)

    def _build(self) -> None:
        level, vectors = list(self._leaves), self._leaf_vectors
        for _ in range(LEVELS):
            if len(level) < SMALLEST_LEVEL:
                break
            clusters = soft_clusters(vectors, ceil(len(level) / CLUSTER_SIZE))
            level = [self._summary([level[i] for i in cluster]) for cluster in clusters]
            vectors = embed_texts(self._embedder, [self._text(node) for node in level])
            self._summaries += level
            self._summary_vectors = np.concatenate([self._summary_vectors, vectors])

    def _summary(self, children: Sequence[Unit]) -> Unit:
        if self._complete is not None:
            texts = "\n\n".join(self._text(child) for child in children)
            return Unit((), text=self._complete(f"Summarise, keeping every rule, name and number:\n\n{texts}"))
        turns = sorted({i for child in children for i in child.turns})
        vectors = embed_texts(self._embedder, [self._turns[i].text for i in turns])
        order = np.argsort(-(vectors @ vectors.mean(axis=0)), kind="stable")
        kept: list[int] = []
        length = 0.0
        for place in order:
            cost = estimate_tokens(self._turns[turns[place]].text)
            if length + cost <= SUMMARY_TOKENS:
                kept.append(turns[place])
                length += cost
        kept = sorted(kept) or [turns[order[0]]]
        return Unit(tuple(kept))

    def _text(self, unit: Unit) -> str:
        return unit.text if unit.text is not None else "\n".join(self._turns[i].text for i in unit.turns)


def soft_clusters(vectors: Vectors, count: int) -> list[list[int]]:
    """Clusters of rows under a Gaussian mixture; a row may be in several, and none is empty.

    Args:
        vectors: Shape (n, d).
        count: Components.
    """
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    width = min(DIMENSIONS, len(vectors) - 1, vectors.shape[1])
    reduced = PCA(width, svd_solver="full").fit_transform(vectors.astype(np.float64))
    mixture = GaussianMixture(count, covariance_type="diag", reg_covar=1e-4, max_iter=50, random_state=SEED)
    chances = mixture.fit(reduced).predict_proba(reduced)
    member = chances >= JOIN
    member[np.arange(len(vectors)), chances.argmax(axis=1)] = True
    return [np.flatnonzero(column).tolist() for column in member.T if column.any()]


SPECS = [SystemSpec("raptor", "a tree of cluster summaries over 100-token chunks, no gold blocks", Raptor)]
