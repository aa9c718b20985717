"""Episodic long-term memory for LangChain, on TSIM: the episode is the memory.

TSIMMemory                ``memory=`` of a chain
TSIMRetriever             whole episodes as documents
TSIMMiddleware            memory of an agent that ``create_agent`` makes
create_tsim_search_tool   a tool that searches the memory
LangChainEmbedder         any LangChain ``Embeddings`` object as embedder; `open_memory` for short
to_turns, to_messages     messages to turns and back, without loss

Nothing is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from langchain_tsim._version import __version__

if TYPE_CHECKING:
    from langchain_tsim.embeddings import LangChainEmbedder, open_memory
    from langchain_tsim.errors import KeysError, MessageError, ScopeError
    from langchain_tsim.memory import TSIMMemory
    from langchain_tsim.messages import to_messages, to_turns
    from langchain_tsim.middleware import TSIMMiddleware
    from langchain_tsim.retriever import TSIMRetriever
    from langchain_tsim.tool import create_tsim_search_tool

_MODULES = {
    "KeysError": "errors",
    "LangChainEmbedder": "embeddings",
    "MessageError": "errors",
    "ScopeError": "errors",
    "TSIMMemory": "memory",
    "TSIMMiddleware": "middleware",
    "TSIMRetriever": "retriever",
    "create_tsim_search_tool": "tool",
    "open_memory": "embeddings",
    "to_messages": "messages",
    "to_turns": "messages",
}

_EXTRAS = {"TSIMMemory": "memory", "TSIMMiddleware": "agents"}

__all__ = [
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


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'langchain_tsim' has no attribute {name!r}")
    try:
        module = import_module(f"langchain_tsim.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        if name not in _EXTRAS:
            raise
        raise ModuleNotFoundError(
            f"{name}: {error}. Install it: pip install 'langchain-tsim[{_EXTRAS[name]}]'"
        ) from error
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
