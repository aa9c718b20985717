"""One component's hold on a memory: which, whose, and over which threads a recall goes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from tsim_core import EpisodicMemory, InputError, Recall, Thread

from langchain_tsim.embeddings import LangChainEmbedder
from langchain_tsim.scope import Scope, Source, check_recall_scope, check_scope, resolve_scope


@dataclass(frozen=True, slots=True)
class Binding:
    """A memory and a scope.

    Attributes:
        memory: The memory.
        scope: Name of the thread, with the names of ids in braces; see `langchain_tsim.scope`.
        recall_scope: The beginning of ``scope`` whose threads are recalled from; None for the thread alone.
    """

    memory: EpisodicMemory
    scope: tuple[str, ...]
    recall_scope: tuple[str, ...] | None = None

    @classmethod
    def of(cls, memory: EpisodicMemory | str | PathLike[str], scope: Scope, recall_scope: Scope | None) -> Binding:
        """Check what a user passed. A location is opened with the default embedder.

        Raises:
            ScopeError: If a scope is not usable.
            StoreError: If the store cannot be opened.
        """
        parts = check_scope(scope)
        beginning = check_recall_scope(parts, recall_scope)
        return cls(memory if isinstance(memory, EpisodicMemory) else EpisodicMemory(memory), parts, beginning)

    def thread(self, sources: Sequence[Source] = ()) -> Thread:
        """The thread to write to.

        Raises:
            ScopeError: If an id is missing.
        """
        return self.memory.thread(*resolve_scope(self.scope, sources))

    def recall(self, query: str, sources: Sequence[Source] = (), shown: Collection[str] = (), **options: Any) -> Recall:
        """Recall from the scope.

        Args:
            query: What to look for.
            sources: Where ids are.
            shown: Ids of turns of the thread that the prompt holds anyway.
            options: Those of `Thread.recall`.
        """
        embedder = self.memory.embedder
        if isinstance(embedder, LangChainEmbedder) and query.strip() and options.get("query_vector") is None:
            options["query_vector"] = embedder.embed_query(query)
        if self.recall_scope is None:
            return self.thread(sources).recall(query, exclude=shown, **options)
        exclude = {self.thread(sources).name: shown} if shown else None
        prefix = resolve_scope(self.recall_scope, sources)
        return self.memory.recall(query, prefix=prefix, exclude=exclude, **options)

    def holds_turns(self, sources: Sequence[Source] = ()) -> bool:
        """Whether there is any turn where a recall looks."""
        if self.recall_scope is None:
            return len(self.thread(sources)) > 0
        names = self.memory.threads(resolve_scope(self.recall_scope, sources))
        return any(len(self.memory.thread(*name)) for name in names)

    async def arecall(
        self, query: str, sources: Sequence[Source] = (), shown: Collection[str] = (), **options: Any
    ) -> Recall:
        """Async twin of `recall`."""
        embedder = self.memory.embedder
        if isinstance(embedder, LangChainEmbedder) and query.strip():
            options["query_vector"] = await embedder.aembed_query(query)
        return await asyncio.to_thread(self.recall, query, sources, shown, **options)


def given(**options: Any) -> dict[str, Any]:
    """Those that are not None: the rest is the configuration's."""
    return {name: value for name, value in options.items() if value is not None}


def check_limits(**limits: int | None) -> None:
    """Check limits where they are set, rather than in the first recall.

    Raises:
        InputError: If one is no whole number of at least 1.
    """
    for name, value in limits.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InputError(f"{name}={value!r}: expected a whole number of at least 1, or None")
