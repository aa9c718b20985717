"""Chunk RAG in three strengths: standard, hybrid with rank fusion, and tuned with HyDE and reranking."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import log

import numpy as np
from tsim_core.types import Turn

from scale_qa.lexical import BM25Index, Scores, analyse, top, z_scores
from scale_qa.systems import SystemSpec
from scale_qa.systems.base import (
    Complete,
    Footprint,
    MemorySystem,
    Resources,
    Unit,
    VectorTable,
    embed_query,
    embed_texts,
)
from scale_qa.systems.fusion import maximal_marginal, reciprocal_ranks
from scale_qa.systems.spans import DenseSpans, span_max, span_terms, windows

POOL = 50  # hits that each ranking brings to a fusion
_PIECE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\\s\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")


def split_text(text: str, words: int, overlap: int) -> list[str]:
    """Cut a text into pieces of at most ``words`` words that share ``overlap`` words; a CJK character is a word."""
    found = list(_PIECE.finditer(text))
    if len(found) <= words:
        return [text]
    starts = range(0, len(found) - overlap, words - overlap)
    return [text[found[at].start() : found[min(at + words, len(found)) - 1].end()] for at in starts]


class StandardRAG(MemorySystem):
    """Messages cut into chunks of 200 tokens, embedded, the nearest returned. No chunk crosses a message.

    The paper's chunks hold 186 tokens on average (930 tokens for five) and hardly ever two evidence turns.
    """

    words, overlap = 150, 15

    def __init__(self, resources: Resources) -> None:
        self._embedder = resources.embedder
        self._chunks: list[Unit] = []
        self._vectors = VectorTable(self._embedder.dimension)
        self._turns = 0

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Chunk and embed."""
        texts: list[str] = []
        for position, turn in enumerate(turns, self._turns):
            pieces = split_text(turn.text, self.words, self.overlap)
            whole = len(pieces) == 1
            self._chunks += [Unit((position,), text=None) if whole else Unit((), text=piece) for piece in pieces]
            texts += pieces
        self._vectors.extend(embed_texts(self._embedder, texts))
        self._turns += len(turns)

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """The nearest chunks."""
        return [self._chunks[i] for i in top(self._vectors.rows @ embed_query(self._embedder, query), k)]

    def footprint(self) -> Footprint:
        """One vector a chunk."""
        return Footprint(len(self._chunks), self._vectors.rows.nbytes)


class HybridChunks(DenseSpans):
    """Windows with dense vectors and BM25; what both tuned systems start from."""

    def __init__(self, resources: Resources, tokens: float) -> None:
        super().__init__(resources, windows(tokens))
        self._terms: list[list[str]] = []
        self._bm25 = BM25Index([])

    def _index(self) -> None:
        super()._index()
        self._terms += [analyse(text) for text in self._texts[len(self._terms) :]]
        self._bm25 = BM25Index(span_terms(self._terms, self.spans))

    def _with_neighbours(self, chunk: int, score: float) -> Unit:
        around = self.spans[max(0, chunk - 1) : chunk + 2]
        return Unit(tuple(i for span in around for i in span), score)

    def footprint(self) -> Footprint:
        """Vectors and postings."""
        dense = super().footprint()
        return Footprint(dense.vectors, dense.bytes + self._bm25.bytes)


class HybridRRF(HybridChunks):
    """Chunks of 128 tokens, dense and BM25 ranks fused with equal weights, neighbours added, 1,200 tokens at most."""

    context_cap = 1_200

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources, 128)

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """The best chunks, each with its neighbours."""
        if not self.spans:
            return []
        depth = max(POOL, k)
        fused = reciprocal_ranks([top(self._scores(query), depth), top(self._bm25.scores(query), depth)])
        return [self._with_neighbours(chunk, score) for chunk, score in fused[:k]]


class HybridRerank(HybridChunks):
    """Chunks of 200 tokens: dense, HyDE and BM25 ranks fused, reranked, MMR, and their neighbours as parent window.

    Without an LLM the hypothetical document of HyDE is the best BM25 chunk; without a cross-encoder the reranker adds
    two z-scores: the share of the query's information (idf) that a chunk holds, and the cosine of its best turn.
    """

    context_cap = 3_000
    rerank_depth = 40
    balance = 0.7

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources, 200)
        self._complete: Complete | None = resources.complete
        self._turn_vectors = VectorTable(self._embedder.dimension)
        self._document_terms: list[set[str]] = []
        self._frequency: dict[str, int] = {}
        self._cross = None
        notes = []
        if resources.complete is None:
            notes.append("HyDE stand-in: the best BM25 chunk is the hypothetical document (no LLM set)")
        if resources.cross_encoder is None:
            notes.append("reranker stand-in: idf coverage and best-turn cosine (no cross-encoder set)")
        else:
            from sentence_transformers import CrossEncoder

            self._cross = CrossEncoder(resources.cross_encoder)
        self.notes = tuple(notes)

    def _index(self) -> None:
        known = len(self._turn_vectors.rows)
        super()._index()
        self._turn_vectors.extend(embed_texts(self._embedder, self._texts[known:]))
        self._document_terms = [set(terms) for terms in span_terms(self._terms, self.spans)]
        self._frequency = {}
        for terms in self._document_terms:
            for term in terms:
                self._frequency[term] = self._frequency.get(term, 0) + 1

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """The best chunks after reranking, each with its neighbours."""
        if not self.spans:
            return []
        lexical = self._bm25.scores(query)
        chunk_vectors = self._vectors.rows[self._row_of_span]
        rankings = [
            top(self._scores(query), POOL),
            top(chunk_vectors @ self._hypothetical(query, lexical), POOL),
            top(lexical, POOL),
        ]
        pool = [chunk for chunk, _ in reciprocal_ranks(rankings)[: self.rerank_depth]]
        reranked = [pool[i] for i in top(self._rerank(query, pool), len(pool))]
        fused = reciprocal_ranks([pool, reranked])
        best = max(score for _, score in fused)
        order = maximal_marginal(
            [score / best for _, score in fused], chunk_vectors[[chunk for chunk, _ in fused]], self.balance
        )
        return [self._with_neighbours(*fused[i]) for i in order[:k]]

    def _hypothetical(self, query: str, lexical: Scores) -> Scores:
        """Vector of a document that would answer the query (HyDE, Gao et al. 2023)."""
        if self._complete is not None:
            document = self._complete(
                f"Write one short chat message in which a user states what would settle this question:\n{query}"
            )
        else:
            document = self._span_text(self.spans[top(lexical, 1)[0]])
        vectors = embed_texts(self._embedder, [query, document])
        return np.asarray(vectors.mean(axis=0), dtype=np.float32)

    def _rerank(self, query: str, pool: Sequence[int]) -> Scores:
        if self._cross is not None:
            pairs = [(query, self._span_text(self.spans[chunk])) for chunk in pool]
            return np.asarray(self._cross.predict(pairs, show_progress_bar=False), dtype=np.float32)
        n = len(self.spans)
        weights = {t: log(1 + n / (1 + self._frequency.get(t, 0))) for t in set(analyse(query))}
        total = sum(weights.values()) or 1.0
        coverage = [
            sum(w for term, w in weights.items() if term in self._document_terms[chunk]) / total for chunk in pool
        ]
        turns = self._turn_vectors.rows @ embed_query(self._embedder, query)
        nearest = span_max(turns, [self.spans[chunk] for chunk in pool])
        return z_scores(np.array(coverage, dtype=np.float32)) + z_scores(nearest)


SPECS = [
    SystemSpec("standard-rag", "200-token chunks within a message, dense (the paper's Standard RAG)", StandardRAG),
    SystemSpec("hybrid-rrf", "128-token chunks, dense and BM25 by rank fusion, neighbours, 1,200 tokens", HybridRRF),
    SystemSpec("hybrid-rerank", "dense, HyDE and BM25 fused, reranked, parent windows, MMR", HybridRerank),
]
