"""MemGPT-style paging (Packer et al. 2023): a queue of recent turns, and pages that are searched when needed."""

from __future__ import annotations

from collections.abc import Sequence

from tsim_core.types import Turn

from scale_qa.lexical import BM25Index, analyse, top
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
from scale_qa.systems.fusion import reciprocal_ranks
from scale_qa.systems.spans import windows
from scale_qa.tokens import estimate_tokens

QUEUE_TOKENS = 900
PAGE_TOKENS = 320
POOL = 50
CORE_WORDS = 100


class MemGPT(MemorySystem):
    """The last 900 tokens (up to 1,220) are always in context; what leaves the queue goes to pages of 320 tokens.

    With ``k`` units the queue is one and the others are pages: those that text search and embedding search agree on
    most. With an LLM, a core memory of 100 words is edited whenever a page is closed and the LLM words the search;
    without one the core memory stays empty and the question itself is the search.
    """

    def __init__(self, resources: Resources) -> None:
        self._embedder = resources.embedder
        self._complete: Complete | None = resources.complete
        self._texts: list[str] = []
        self._tokens: list[float] = []
        self._queue_start = 0
        self._pages: list[Sequence[int]] = []
        self._paged_terms: list[list[str]] = []
        self._bm25 = BM25Index([])
        self._vectors = VectorTable(self._embedder.dimension)
        self._core = ""
        if resources.complete is None:
            self.notes = ("MemGPT: no LLM set, so core memory stays empty and the question itself is the search",)

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Queue turns and page out what no longer fits."""
        self._texts += [turn.text for turn in turns]
        self._tokens += [estimate_tokens(turn.text) for turn in turns]
        start, length = len(self._tokens), 0.0
        while start > self._queue_start and length + self._tokens[start - 1] <= QUEUE_TOKENS:
            start -= 1
            length += self._tokens[start]
        if sum(self._tokens[self._queue_start : start]) < PAGE_TOKENS:  # not worth a page yet
            return
        pages = [
            range(self._queue_start + span[0], self._queue_start + span[-1] + 1)
            for span in windows(PAGE_TOKENS)(self._tokens[self._queue_start : start])
        ]
        texts = ["\n".join(self._texts[i] for i in page) for page in pages]
        self._queue_start = start
        self._pages += pages
        self._paged_terms += [analyse(text) for text in texts]
        self._bm25 = BM25Index(self._paged_terms)
        self._vectors.extend(embed_texts(self._embedder, texts))
        if self._complete is not None:
            for text in texts:
                self._core = self._complete(
                    f"Core memory of an assistant, at most {CORE_WORDS} words:\n{self._core or '(empty)'}\n\n"
                    f"These turns leave the context:\n{text}\n\nWrite the core memory anew, nothing else."
                )

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """The queue with the core memory, and the best pages."""
        if not self._texts:
            return []
        queue = [Unit(tuple(range(self._queue_start, len(self._texts))))]
        if self._core:
            queue.append(Unit((), text=f"Core memory: {self._core}"))
        if not self._pages or k <= len(queue):
            return queue[:k]
        search = query
        if self._complete is not None:
            search = self._complete(f"Write one search query for a chat history that settles this:\n{query}")
        nearest = self._vectors.rows @ embed_query(self._embedder, search)
        depth = max(POOL, k)
        fused = reciprocal_ranks([top(nearest, depth), top(self._bm25.scores(search), depth)])
        pages = [Unit(tuple(self._pages[page]), score) for page, score in fused[: k - len(queue)]]
        return [*queue, *pages]

    def footprint(self) -> Footprint:
        """One vector a page, and the postings."""
        return Footprint(len(self._pages), self._vectors.rows.nbytes + self._bm25.bytes)


SPECS = [SystemSpec("memgpt", "a queue of recent turns and searched pages (MemGPT-style)", MemGPT)]
