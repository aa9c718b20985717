"""Baselines whose units are runs of whole turns: fixed windows, single turns, a turn with its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from tsim_core.embedding import Vectors, unit_rows
from tsim_core.types import Turn

from scale_qa.lexical import BM25Index, Scores, analyse, top, z_scores
from scale_qa.systems.base import (
    Footprint,
    MemorySystem,
    Resources,
    Unit,
    VectorTable,
    embed_query,
    embed_texts,
)
from scale_qa.tokens import estimate_tokens

Span = Sequence[int]
"""Positions of the turns of one unit, ascending; most are runs."""
Spanner = Callable[[Sequence[float]], list[Span]]
"""From the tokens of every turn to the units."""


def single_turns(tokens: Sequence[float]) -> list[Span]:
    """Every turn by itself."""
    return [range(i, i + 1) for i in range(len(tokens))]


def windows(limit: float) -> Spanner:
    """Runs of whole turns of at most ``limit`` estimated tokens; a longer turn stands alone."""

    def spans(tokens: Sequence[float]) -> list[Span]:
        cut: list[Span] = []
        start, length = 0, 0.0
        for i, count in enumerate(tokens):
            if i > start and length + count > limit:
                cut.append(range(start, i))
                start, length = i, 0.0
            length += count
        return [*cut, range(start, len(tokens))] if len(tokens) > start else cut

    return spans


def with_neighbours(reach: int) -> Spanner:
    """Every turn with ``reach`` turns on each side; the runs overlap."""

    def spans(tokens: Sequence[float]) -> list[Span]:
        n = len(tokens)
        return [range(max(0, i - reach), min(n, i + reach + 1)) for i in range(n)]

    return spans


class SpanMemory(MemorySystem):
    """Holds turns, the spans over them and their terms; subclasses score the spans."""

    def __init__(self, resources: Resources, spanner: Spanner) -> None:
        self._embedder = resources.embedder
        self._spanner = spanner
        self._texts: list[str] = []
        self._tokens: list[float] = []
        self.spans: list[Span] = []

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Append turns and index again what they change."""
        if not turns:
            return
        self._texts += [turn.text for turn in turns]
        self._tokens += [estimate_tokens(turn.text) for turn in turns]
        self.spans = self._spanner(self._tokens)
        self._index()

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """The best spans."""
        if not self.spans:
            return []
        scores = self._scores(query)
        return [Unit(tuple(self.spans[i]), float(scores[i])) for i in top(scores, k)]

    def _span_text(self, span: Span) -> str:
        return "\n".join(self._texts[i] for i in span)

    def _index(self) -> None:
        raise NotImplementedError

    def _scores(self, query: str) -> Scores:
        raise NotImplementedError


class LexicalSpans(SpanMemory):
    """BM25 over spans."""

    def __init__(self, resources: Resources, spanner: Spanner) -> None:
        super().__init__(resources, spanner)
        self._terms: list[list[str]] = []
        self._bm25 = BM25Index([])

    def _index(self) -> None:
        self._terms += [analyse(text) for text in self._texts[len(self._terms) :]]
        self._bm25 = BM25Index(span_terms(self._terms, self.spans))

    def _scores(self, query: str) -> Scores:
        return self._bm25.scores(query)

    def footprint(self) -> Footprint:
        """The postings."""
        return Footprint(0, self._bm25.bytes)


class DenseSpans(SpanMemory):
    """Cosine between the query and the text of each span, embedded as one text."""

    def __init__(self, resources: Resources, spanner: Spanner) -> None:
        super().__init__(resources, spanner)
        self._rows: dict[str, int] = {}
        self._vectors = VectorTable(self._embedder.dimension)
        self._row_of_span = np.zeros(0, dtype=np.int64)

    def _index(self) -> None:
        texts = [self._span_text(span) for span in self.spans]
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        self._vectors.extend(embed_texts(self._embedder, new))
        for text in new:
            self._rows[text] = len(self._rows)
        self._row_of_span = np.array([self._rows[text] for text in texts], dtype=np.int64)

    def _scores(self, query: str) -> Scores:
        cosines = self._vectors.rows @ embed_query(self._embedder, query)
        return np.asarray(cosines[self._row_of_span], dtype=np.float32)

    def footprint(self) -> Footprint:
        """One vector a span."""
        return Footprint(len(self.spans), len(self.spans) * self._embedder.dimension * 4)


class HybridSpans(LexicalSpans):
    """The sum of four z-scores: BM25 of the span, its best turn's BM25, its best turn's cosine, its mean's cosine.

    Over a turn with one neighbour each side this is the strongest span baseline known on LoCoMo.
    """

    def __init__(self, resources: Resources, spanner: Spanner) -> None:
        super().__init__(resources, spanner)
        self._vectors = VectorTable(self._embedder.dimension)
        self._turn_bm25 = BM25Index([])
        self._means = self._vectors.rows

    def _index(self) -> None:
        known = len(self._vectors.rows)
        super()._index()
        self._vectors.extend(embed_texts(self._embedder, self._texts[known:]))
        self._turn_bm25 = BM25Index(self._terms)
        self._means = unit_rows(span_sum(self._vectors.rows, self.spans))

    def _scores(self, query: str) -> Scores:
        vector = embed_query(self._embedder, query)
        total = z_scores(self._bm25.scores(query))
        total += z_scores(span_max(self._turn_bm25.scores(query), self.spans))
        total += z_scores(span_max(self._vectors.rows @ vector, self.spans))
        total += z_scores(self._means @ vector)
        return total

    def footprint(self) -> Footprint:
        """One vector a turn and one a span, and both postings."""
        vectors = len(self._vectors.rows) + len(self.spans)
        postings = self._bm25.bytes + self._turn_bm25.bytes
        return Footprint(vectors, vectors * self._embedder.dimension * 4 + postings)


def span_terms(terms: Sequence[list[str]], spans: Sequence[Span]) -> list[list[str]]:
    """The terms of every span."""
    return [[term for i in span for term in terms[i]] for span in spans]


def span_max(values: NDArray[np.float32], spans: Sequence[Span]) -> Scores:
    """The highest value within each span, shape (spans,). No span may be empty."""
    members, starts = _flat(spans)
    return np.asarray(np.maximum.reduceat(values[members], starts), dtype=np.float32)


def span_sum(rows: Vectors, spans: Sequence[Span]) -> Vectors:
    """The sum of the rows of each span, shape (spans, d). No span may be empty."""
    members, starts = _flat(spans)
    return np.asarray(np.add.reduceat(rows[members], starts), dtype=np.float32)


def _flat(spans: Sequence[Span]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The members of all spans in one row, and where each span begins."""
    lengths = [len(span) for span in spans]
    members = np.fromiter((i for span in spans for i in span), dtype=np.int64, count=sum(lengths))
    return members, np.cumsum([0, *lengths[:-1]])
