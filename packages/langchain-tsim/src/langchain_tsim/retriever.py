"""TSIMRetriever: episodes as documents, wherever LangChain takes a retriever."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from os import PathLike
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from pydantic import ConfigDict, PrivateAttr
from tsim_core import EpisodicMemory

from langchain_tsim.binding import Binding, check_limits
from langchain_tsim.documents import to_document
from langchain_tsim.scope import Scope, Source, current_runtime, run_sources


class TSIMRetriever(BaseRetriever):
    """Retrieves whole episodes of a memory, best first.

    Every field but ``memory`` can be set by ``configurable_fields``, and every one below ``recall_scope`` for a single
    call: ``retriever.invoke("which GPU?", k=3, where={"project": "p"}, ids={"user_id": "alice"})``.

    Attributes:
        memory: The memory, or where it is stored; see `langchain_tsim.open_memory` for another embedder.
        scope: Name of the thread, such as ``("alice", "support")``; names of ids stand in braces: ``"{user_id}"``.
        recall_scope: A beginning of ``scope``: recalls from all threads under it. The thread alone when None.
        k: Most episodes.
        max_tokens: Most estimated tokens of all documents; None for whole episodes without limit.
        after: Only turns of this time or later.
        before: Only turns earlier than this.
        where: Only turns whose metadata has these values.
        ids: Ids to put into the scope. Those of the run (LangGraph's context, ``configurable``) when missing here.

    Raises:
        ScopeError: If an id is missing, in a call; if a scope is not usable, on construction.
        InputError: If ``k`` or ``max_tokens`` is below 1.

    Example:
        >>> memory = EpisodicMemory()
        >>> _ = memory.thread("alice").add("user", "New projects run on a single consumer GPU.")
        >>> TSIMRetriever(memory=memory, scope="alice").invoke("Which GPU may I use?")[0].page_content
        'user: New projects run on a single consumer GPU.'
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    memory: EpisodicMemory | str | PathLike[str]
    scope: Scope
    recall_scope: Scope | None = None
    k: int = 5
    max_tokens: int | None = None
    after: datetime | None = None
    before: datetime | None = None
    where: dict[str, Any] | None = None
    ids: dict[str, Any] | None = None
    _binding: Binding = PrivateAttr()

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        check_limits(k=self.k, max_tokens=self.max_tokens)
        self._binding = Binding.of(self.memory, self.scope, self.recall_scope)
        self.memory = self._binding.memory

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Retrieve; ``configurable`` of the config may hold ids."""
        return super().invoke(input, config, **kwargs, run=ensure_config(config))

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Async twin of `invoke`."""
        return await super().ainvoke(input, config, **kwargs, run=ensure_config(config))

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        run: RunnableConfig | None = None,
        **options: Any,
    ) -> list[Document]:
        sources, options = self._options(run, options)
        return [to_document(episode) for episode in self._binding.recall(query, sources, **options).episodes]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        run: RunnableConfig | None = None,
        **options: Any,
    ) -> list[Document]:
        sources, options = self._options(run, options)
        recall = await self._binding.arecall(query, sources, **options)
        return [to_document(episode) for episode in recall.episodes]

    def _options(self, run: RunnableConfig | None, given: Mapping[str, Any]) -> tuple[list[Source], dict[str, Any]]:
        """Where ids are, and the options of a recall: the fields, overridden by what the call was given."""
        options = {name: getattr(self, name) for name in ("k", "max_tokens", "after", "before", "where")}
        if unknown := given.keys() - options.keys() - {"ids"}:
            raise TypeError(f"TSIMRetriever got unknown arguments {sorted(unknown)}; it takes {[*options, 'ids']}")
        ids = {**(self.ids or {}), **(given.get("ids") or {})}
        options.update((name, value) for name, value in given.items() if name != "ids")
        return run_sources(given=ids, runtime=current_runtime(), config=run), options

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        return LangSmithRetrieverParams(
            ls_retriever_name="tsim",
            ls_vector_store_provider="tsim",
            ls_embedding_provider=self._binding.memory.embedder.name,
        )
