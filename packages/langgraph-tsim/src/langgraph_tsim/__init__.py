"""Episodic long-term memory for LangGraph: whole episodes, recalled across threads.

`add_memory` puts a `RecallNode` and a `RememberNode` around the model node of a graph. The state declares where the
recalled text goes, ``class State(MessagesState, MemoryState)``, and the model node shows it to the model:
``llm.invoke(with_memory(state))``.
"""

from langchain_tsim.errors import MessageError, ScopeError

from langgraph_tsim._version import __version__
from langgraph_tsim.errors import MemoryWarning, StateError, WiringError
from langgraph_tsim.nodes import RecallNode, RememberNode, TSIMMemoryNode
from langgraph_tsim.scope import Scope, resolve
from langgraph_tsim.state import MemoryState, MessagesMemoryState, with_memory
from langgraph_tsim.store import TSIMStore
from langgraph_tsim.wiring import add_memory, pre_model_hook

__all__ = [
    "MemoryState",
    "MemoryWarning",
    "MessageError",
    "MessagesMemoryState",
    "RecallNode",
    "RememberNode",
    "Scope",
    "ScopeError",
    "StateError",
    "TSIMMemoryNode",
    "TSIMStore",
    "WiringError",
    "__version__",
    "add_memory",
    "pre_model_hook",
    "resolve",
    "with_memory",
]
