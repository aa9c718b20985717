"""LangChain messages as turns and back, without loss.

The text of a message becomes the text of the turn: it is what gets embedded and searched. All else (tool calls and
their ids, artifacts, images and other content blocks, usage, provider metadata) travels in the turn's metadata under
the key ``langchain`` and is never embedded. A turn that came from elsewhere becomes a message that carries what a
message has no field for in ``additional_kwargs["tsim"]``, and becomes the same turn again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    MessageLikeRepresentation,
    convert_to_messages,
    messages_from_dict,
)
from tsim_core import Turn
from tsim_core.readers import parse_time

from langchain_tsim._json import decode, encode
from langchain_tsim.errors import MessageError

METADATA_KEY = "langchain"  # in Turn.metadata: what a message has beside its text
FOREIGN_KEY = "tsim"  # in additional_kwargs: what a turn has that a message has not
TIMESTAMP_KEY = "timestamp"  # in additional_kwargs: when it was said, by whoever made the message

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}


def to_turns(
    messages: Iterable[MessageLikeRepresentation],
    *,
    timestamp: datetime | None = None,
    metadata: Mapping[str, Any] | None = None,
    artifacts: bool = True,
) -> list[Turn]:
    """Messages as turns, one each, in order.

    Args:
        messages: Messages, or what LangChain takes for them: text, pairs of role and text, or mappings.
        timestamp: The time of messages that do not carry one in ``additional_kwargs["timestamp"]`` (ISO 8601 text or
            seconds since 1970).
        metadata: JSON data to put beside the message's own, to filter by in a recall.
        artifacts: Whether artifacts of tool messages are kept. Documents, messages, pydantic models and JSON data can
            be; others are an error.

    Raises:
        MessageError: If a message holds what cannot be stored. The message says which.
    """
    return [
        to_turn(message, timestamp=timestamp, metadata=metadata, artifacts=artifacts)
        for message in as_messages(messages)
    ]


def to_turn(
    message: BaseMessage,
    *,
    timestamp: datetime | None = None,
    metadata: Mapping[str, Any] | None = None,
    artifacts: bool = True,
) -> Turn:
    """One message as a turn; see `to_turns`."""
    text = message_text(message)
    where = f"the {message.type} message {message.id or text[:40]!r}"
    given = message.additional_kwargs.get(FOREIGN_KEY)
    if isinstance(given, Mapping):  # it was made by `to_message` of a foreign turn
        when = parse_time(given.get("timestamp"), where)
        return Turn(given.get("role") or _role(message), text, message.id or None, when, given.get("metadata"))
    try:
        data = message_data(message, artifacts)
    except MessageError as error:
        raise MessageError(f"{where}: {error}") from error
    if data.get("content") == text:
        del data["content"]
    if message.id:
        data.pop("id", None)
    own: dict[str, Any] = {**(metadata or {}), METADATA_KEY: data}
    if message.name:
        own["name"] = message.name
    said = parse_time(message.additional_kwargs.get(TIMESTAMP_KEY), where)
    return Turn(_role(message), text, message.id or None, said or timestamp, own)


def to_messages(turns: Iterable[Turn]) -> list[BaseMessage]:
    """Turns as messages, one each, in order: what `to_turns` was given.

    Raises:
        MessageError: If the stored data of a turn is malformed.
    """
    return [to_message(turn) for turn in turns]


def to_message(turn: Turn) -> BaseMessage:
    """One turn as a message; see `to_messages`."""
    metadata = turn.metadata or {}
    data = metadata.get(METADATA_KEY)
    try:
        if isinstance(data, Mapping):
            return message_from_data({"content": turn.text, **({"id": turn.id} if turn.id else {}), **data})
        return _foreign(turn, metadata)
    except (KeyError, TypeError, ValueError) as error:
        raise MessageError(f"the turn {turn.id!r} cannot be read as a message: {error}") from error


def message_data(message: BaseMessage, artifacts: bool = True) -> dict[str, Any]:
    """A message as JSON data: its type and every field that is not at its default."""
    defaults = _defaults(type(message))
    data: dict[str, Any] = {"type": message.type}
    for name, value in message:
        if name == "type" or (name == "artifact" and not artifacts):
            continue
        if name in defaults and _equal(value, defaults[name]):
            continue
        data[name] = encode(value)
    return data


@cache  # pydantic looks at the signature of a default's factory each time
def _defaults(kind: type[BaseMessage]) -> dict[str, Any]:
    return {name: field.get_default(call_default_factory=True) for name, field in kind.model_fields.items()}


def message_from_data(data: Mapping[str, Any]) -> BaseMessage:
    """What `message_data` was given."""
    fields = {name: decode(value) for name, value in data.items() if name != "type"}
    return messages_from_dict([{"type": data["type"], "data": fields}])[0]


def as_messages(messages: Iterable[MessageLikeRepresentation]) -> list[BaseMessage]:
    """Whatever LangChain takes for messages as messages.

    Raises:
        MessageError: If one of them is none.
    """
    try:
        return convert_to_messages(list(messages))
    except (NotImplementedError, ValueError) as error:
        raise MessageError(f"not a list of messages: {error}") from error


def message_text(message: BaseMessage) -> str:
    """The text of a message without images, files, reasoning and tool calls."""
    content = message.content
    if isinstance(content, str):
        return str.__str__(content)
    parts = [block if isinstance(block, str) else block.get("text") for block in content if _is_text(block)]
    # A model's blocks may break within a sentence; blocks of others are paragraphs.
    return ("" if isinstance(message, AIMessage) else "\n").join(str(part) for part in parts if part)


def whole_tail(turns: Sequence[Turn], most: int) -> list[Turn]:
    """The last turns, and as many before them as it takes not to part a tool's answer from its call.

    Args:
        turns: In thread order.
        most: How many are wanted.
    """
    start = max(0, len(turns) - most)
    while 0 < start < len(turns) and turns[start].role == "tool":
        start -= 1
    return list(turns[start:])


def _is_text(block: str | Mapping[str, Any]) -> bool:
    return isinstance(block, str) or block.get("type") == "text"


def _role(message: BaseMessage) -> str:
    if isinstance(message, ChatMessage):
        return message.role
    kind = message.type.removesuffix("MessageChunk").lower()
    return ROLES.get(kind, kind)


def _equal(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _foreign(turn: Turn, metadata: Mapping[str, Any]) -> BaseMessage:
    """A turn that no LangChain message became: the nearest message, with all that is left in ``additional_kwargs``."""
    given = {
        "role": turn.role,
        "timestamp": turn.timestamp and turn.timestamp.isoformat(),
        "metadata": None if turn.metadata is None else dict(turn.metadata),
    }
    common: dict[str, Any] = {"content": turn.text, "id": turn.id}
    if isinstance(name := metadata.get("name"), str) and name:
        common["name"] = name
    if turn.role == "tool" and "tool_call_id" in metadata:
        common["tool_call_id"] = metadata["tool_call_id"]
    if turn.role == "assistant" and metadata.get("tool_calls"):
        common["tool_calls"] = metadata["tool_calls"]
    if turn.role in ("user", "assistant", "system") or "tool_call_id" in common:
        message = convert_to_messages([{"role": turn.role, **common}])[0]
    else:
        message = ChatMessage(role=turn.role, **common)
    message.additional_kwargs = {FOREIGN_KEY: {key: value for key, value in given.items() if value is not None}}
    return message
