"""A memory on the deterministic embedder. What the installed LangChain cannot run is left out and reported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from tsim_core import EpisodicMemory

from .helpers import WordEmbedder

os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"  # read when langgraph is imported


def _has(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


# LangChain 0.3 has no create_agent and no middleware; its chains, retrievers and tools are tested.
NEEDS = {
    "unit_tests/test_middleware.py": "langchain.agents.middleware",
    "unit_tests/test_issues.py": "langchain.agents.middleware",
    "unit_tests/test_standard.py": "langchain_tests",
    "integration_tests/test_openai_embeddings.py": "langchain_openai",
    "integration_tests/test_examples.py": "langchain.agents.middleware",
}
collect_ignore = [file for file, module in NEEDS.items() if not _has(module)]


def pytest_report_header() -> list[str]:
    return [f"langchain-tsim: {file} needs {NEEDS[file]}, which is not installed" for file in collect_ignore]


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def memory(embedder: WordEmbedder) -> Iterator[EpisodicMemory]:
    with EpisodicMemory(embedder=embedder) as memory:
        yield memory
