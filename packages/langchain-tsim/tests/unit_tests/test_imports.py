"""What the package offers, and what importing it does not import."""

from __future__ import annotations

import subprocess
import sys

import langchain_tsim
import pytest

NAMES = [
    "KeysError",
    "LangChainEmbedder",
    "MessageError",
    "ScopeError",
    "TSIMMemory",
    "TSIMMiddleware",
    "TSIMRetriever",
    "__version__",
    "create_tsim_search_tool",
    "open_memory",
    "to_messages",
    "to_turns",
]


def test_all() -> None:
    assert sorted(langchain_tsim.__all__) == NAMES
    assert set(NAMES) <= set(dir(langchain_tsim))
    with pytest.raises(AttributeError, match="'Nothing'"):
        langchain_tsim.Nothing  # noqa: B018


def imported(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_package_imports_neither_langchain_nor_a_model() -> None:
    modules = imported("import langchain_tsim")
    assert not modules & {
        "langchain_core",
        "langchain",
        "langchain_classic",
        "langgraph",
        "numpy",
        "onnxruntime",
        "faiss",
    }


def test_messages_need_no_agents_and_no_model() -> None:
    modules = imported("from langchain_tsim import to_turns, TSIMRetriever, create_tsim_search_tool")
    assert not modules & {"langchain", "langchain_classic", "langgraph", "onnxruntime"}


def test_a_missing_extra_says_what_to_install() -> None:
    code = (
        "import sys\n"
        "sys.modules['langchain.agents.middleware.types'] = None\n"
        "try:\n    from langchain_tsim import TSIMMiddleware\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'langchain-tsim[agents]'" in out
