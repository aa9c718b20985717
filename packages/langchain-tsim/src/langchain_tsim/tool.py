"""A tool with which an agent searches its memory itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from os import PathLike
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field
from tsim_core import EpisodicMemory, Recall

from langchain_tsim.binding import Binding, check_limits, given
from langchain_tsim.documents import to_json
from langchain_tsim.scope import Scope, Source, current_runtime, run_sources

NAME = "search_memory"
DESCRIPTION = (
    "Search earlier conversations with the user. Returns whole episodes with who said what and when. Use it when the "
    "answer may depend on something that was said before."
)
NOTHING = "Nothing was found in memory."
EMPTY = "The memory holds no turns in this scope yet."


class SearchMemory(BaseModel):
    """What the model fills in."""

    query: str = Field(description="What to look for, in plain words.")
    after: datetime | None = Field(None, description="Only what was said at this time or later, ISO 8601.")
    before: datetime | None = Field(None, description="Only what was said before this time, ISO 8601.")


def create_tsim_search_tool(
    memory: EpisodicMemory | str | PathLike[str],
    *,
    scope: Scope = "{thread_id}",
    recall_scope: Scope | None = None,
    k: int | None = None,
    max_tokens: int | None = None,
    name: str = NAME,
    description: str = DESCRIPTION,
) -> BaseTool:
    """Make a tool that searches a memory.

    The model is given the prompt-ready text; the artifact of its tool message is the episodes as JSON data, in the form
    of ``tsim recall --json``. The model cannot choose whose memory it searches. Where the scope holds no turns yet, the
    tool says so, for that is often a scope that was meant otherwise.

    Args:
        memory: The memory, or where it is stored; see `langchain_tsim.open_memory` for another embedder.
        scope: Name of the thread, with ids in braces. They are taken from the run: LangGraph's context,
            ``configurable`` and thread_id, in this order.
        recall_scope: A beginning of ``scope``: recalls from all threads under it. The thread alone when None.
        k: Most episodes; the configuration's value when None.
        max_tokens: Most estimated tokens of the text; the configuration's value when None.
        name: Name of the tool.
        description: What the model is told of it.

    Raises:
        ScopeError: If an id is missing, in a call; if a scope is not usable, at once.
        InputError: If a limit is below 1.
    """
    check_limits(k=k, max_tokens=max_tokens)
    binding = Binding.of(memory, scope, recall_scope)
    limits = given(k=k, max_tokens=max_tokens)

    def search(
        query: str, config: RunnableConfig, after: datetime | None = None, before: datetime | None = None
    ) -> tuple[str, list[dict[str, Any]]]:
        sources = _sources(config)
        return _found(binding.recall(query, sources, after=after, before=before, **limits), binding, sources)

    async def asearch(
        query: str, config: RunnableConfig, after: datetime | None = None, before: datetime | None = None
    ) -> tuple[str, list[dict[str, Any]]]:
        sources = _sources(config)
        recall = await binding.arecall(query, sources, after=after, before=before, **limits)
        return await asyncio.to_thread(_found, recall, binding, sources)

    return StructuredTool.from_function(
        search,
        coroutine=asearch,
        name=name,
        description=description,
        args_schema=SearchMemory,
        response_format="content_and_artifact",
    )


def _sources(config: RunnableConfig) -> list[Source]:
    return run_sources(runtime=current_runtime(), config=config)


def _found(recall: Recall, binding: Binding, sources: Sequence[Source]) -> tuple[str, list[dict[str, Any]]]:
    text = recall.text or (NOTHING if binding.holds_turns(sources) else EMPTY)
    return text, [to_json(episode) for episode in recall.episodes]
