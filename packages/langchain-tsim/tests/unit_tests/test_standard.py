"""LangChain's own standard tests."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from langchain_tsim import TSIMRetriever, create_tsim_search_tool
from tsim_core import EpisodicMemory, Turn

from ..helpers import WordEmbedder

TOPICS = ["cat basket sleeps", "boat sails regatta", "rye bread oven", "violin strings bow", "tax form deadline"]


@pytest.fixture(scope="module")
def stored() -> EpisodicMemory:
    memory = EpisodicMemory(embedder=WordEmbedder())
    for n, topic in enumerate(TOPICS):
        memory.thread("alice", str(n)).extend([Turn("user", f"{topic} and what of {topic}?"), Turn("assistant", topic)])
    return memory


class TestTSIMRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _stored(self, stored: EpisodicMemory) -> None:
        self.memory = stored

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return TSIMRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory, "scope": ("alice", "new"), "recall_scope": "alice"}

    @property
    def retriever_query_example(self) -> str:
        return "what of the cat, the boat and the bread?"


class _SearchTool:
    @pytest.fixture(autouse=True)
    def _stored(self, stored: EpisodicMemory) -> None:
        self.memory = stored

    @property
    def tool_constructor(self) -> BaseTool:
        return create_tsim_search_tool(self.memory, scope=("alice", "new"), recall_scope="alice")

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": "where does the cat sleep?"}


class TestSearchToolUnit(_SearchTool, ToolsUnitTests):
    pass


class TestSearchToolIntegration(_SearchTool, ToolsIntegrationTests):
    pass
