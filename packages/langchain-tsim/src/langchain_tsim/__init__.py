"""Episodic long-term memory for LangChain."""

from langchain_tsim._version import __version__
from langchain_tsim.errors import KeysError, MessageError, ScopeError
from langchain_tsim.messages import to_messages, to_turns

__all__ = ["KeysError", "MessageError", "ScopeError", "__version__", "to_messages", "to_turns"]
