"""One lexical analyser and one BM25 for every system and for the definition of *hard*."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from threading import local

import numpy as np
from bm25s import BM25
from bm25s.stopwords import STOPWORDS_EN
from numpy.typing import NDArray
from Stemmer import Stemmer

from scale_qa.similarity import terms

Scores = NDArray[np.float32]
_STOPWORDS = frozenset(STOPWORDS_EN)
_THREAD = local()  # a stemmer is not thread-safe


def analyse(text: str) -> list[str]:
    """Index terms of a text: case-folded, English stopwords and single letters dropped, English stems.

    CJK text comes as pairs of neighbouring characters; words of other languages pass the English stemmer, which
    hardly touches them. Stemming is worth .02 recall and more on LoCoMo, so no baseline goes without it.
    """
    kept = [t for t in terms(text) if t not in _STOPWORDS and not (len(t) == 1 and t.isascii() and t.isalpha())]
    return [_stem(term) for term in kept]


@lru_cache(maxsize=200_000)
def _stem(term: str) -> str:
    if not hasattr(_THREAD, "stemmer"):
        _THREAD.stemmer = Stemmer("english")
    stemmed: str = _THREAD.stemmer.stemWord(term)
    return stemmed


class BM25Index:
    """BM25 (bm25s: Lucene's variant, k1 1.5, b 0.75) over texts that are already analysed.

    Args:
        documents: The terms of each document; a document may be empty.
    """

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        corpus = [list(document) for document in documents]
        self._size = len(corpus)
        self._index: BM25 | None = None
        if any(corpus):
            self._index = BM25()
            self._index.index(corpus, show_progress=False)

    def scores(self, query: str) -> Scores:
        """Score of every document, shape (n,); zero where it shares no term with the query."""
        known = [] if self._index is None else [t for t in analyse(query) if t in self._index.vocab_dict]
        if self._index is None or not known:
            return np.zeros(self._size, dtype=np.float32)
        return np.asarray(self._index.get_scores(known), dtype=np.float32)

    @property
    def bytes(self) -> int:
        """Size of the postings in memory."""
        if self._index is None:
            return 0
        return sum(int(array.nbytes) for array in self._index.scores.values() if isinstance(array, np.ndarray))


def top(scores: Scores, k: int) -> list[int]:
    """Positions of the ``k`` highest scores, best first; ties go to the earlier one, on every machine."""
    return [int(i) for i in np.argsort(-scores, kind="stable")[:k]]


def z_scores(scores: Scores) -> Scores:
    """Scores in standard deviations from their mean; zeros where all are equal."""
    spread = float(scores.std())
    if spread == 0.0:
        return np.zeros_like(scores)
    return np.asarray((scores - scores.mean()) / spread, dtype=np.float32)
