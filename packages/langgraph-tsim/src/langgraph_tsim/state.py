"""The state that memory nodes work on, and how a model gets to see what was recalled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_tsim.messages import as_messages
from langgraph.graph import MessagesState
from typing_extensions import TypedDict

from langgraph_tsim.errors import StateError

PREAMBLE = (
    "What follows was said in earlier conversations, whole episodes, best match first. Use what bears on the request; "
    "where two statements differ, the later one holds."
)


def _latest(old: str, new: str) -> str:
    return new


class MemoryState(TypedDict):
    """Mixin for a graph's state: ``class State(MessagesState, MemoryState)``.

    Attributes:
        memory_context: What was recalled for the last request, prompt-ready; empty where nothing was.
    """

    memory_context: Annotated[str, _latest]


class MessagesMemoryState(MessagesState, MemoryState):
    """Messages and what was recalled for them."""


def with_memory(
    state: object, *, messages_key: str = "messages", context_key: str = "memory_context"
) -> list[BaseMessage]:
    """The messages of a state for a model, what was recalled in a system message in front.

    The result is for the model alone: it does not belong into the state, where it would be remembered as said.

    Args:
        state: The graph's state, a mapping or an object.
        messages_key: Where the messages are.
        context_key: Where the recalled text is.

    Raises:
        StateError: If the state has no such messages.
    """
    messages = read_messages(state, messages_key)
    context = read(state, context_key)
    if not context:
        return messages
    return prepend(messages, str(context))


def prepend(messages: Sequence[BaseMessage], context: str) -> list[BaseMessage]:
    """Messages with recalled text in front, as part of the system message where there is one."""
    text = f"{PREAMBLE}\n\n<memory>\n{context}\n</memory>"
    if messages and isinstance(messages[0], SystemMessage):
        content = messages[0].content
        joined = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
        return [messages[0].model_copy(update={"content": joined}), *messages[1:]]
    return [SystemMessage(text), *messages]


def read(state: object, key: str) -> Any:
    """A value of a state that is a mapping or an object; None where it has none."""
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def read_messages(state: object, key: str) -> list[BaseMessage]:
    """The messages of a state; dicts and (role, text) pairs become messages.

    Raises:
        StateError: If there are none under that key.
        MessageError: If one is no message.
    """
    messages = read(state, key)
    if messages is None:
        raise StateError(
            f"the state has no {key!r}: declare it, as in class State(MessagesState, MemoryState), or say where the "
            "messages are with messages_key="
        )
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise StateError(f"{key!r} of the state is {type(messages).__name__}; expected a list of messages")
    return as_messages(messages)
