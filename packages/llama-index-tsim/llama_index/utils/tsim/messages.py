"""LlamaIndex messages as turns of the core and back, without loss."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock
from tsim_core import Episode, InputError, Turn

_BLOCKS, _KWARGS, _ROLE = "llama_index_blocks", "llama_index_kwargs", "llama_index_role"
_SESSION = "session_id"
# Turn.role has one name for each; the message's own is kept beside it.
_ROLES = {"chatbot": "assistant", "model": "assistant", "function": "tool", "developer": "system"}

OPEN, CLOSE = "<episodic_memory>", "</episodic_memory>"
# What a memory put into a prompt: ours, and what LlamaIndex's `Memory` wraps around its blocks.
_INJECTED = re.compile(rf"\s*(?:{OPEN}.*{CLOSE}|<memory>.*</memory>)\s*", re.DOTALL)


def message_to_turn(message: ChatMessage, timestamp: datetime | None = None) -> Turn:
    """A message as a turn. Its text blocks are the text; whatever else it holds travels as metadata.

    The session that LlamaIndex notes in ``additional_kwargs`` is left out: the thread's name says it.

    Args:
        message: Any message; content None is an empty text.
        timestamp: When it was said, where known.

    Raises:
        InputError: If the message holds something that is no JSON data.
    """
    metadata: dict[str, Any] = {}
    role = message.role.value
    if role in _ROLES:
        metadata[_ROLE] = role
    extra = {key: value for key, value in message.additional_kwargs.items() if key != _SESSION}
    if len(message.blocks) != 1 or type(message.blocks[0]) is not TextBlock or extra:
        try:
            data = message.model_copy(update={"additional_kwargs": extra}).model_dump(mode="json")
            json.dumps(data)
        except (TypeError, ValueError) as error:
            raise InputError(f"a {role} message holds something that is no JSON data: {error}") from error
        metadata |= {_BLOCKS: data["blocks"], _KWARGS: data["additional_kwargs"]}
    return Turn(_ROLES.get(role, role), message.content or "", None, timestamp, metadata or None)


def turn_to_message(turn: Turn) -> ChatMessage:
    """The message that `message_to_turn` took; a turn from elsewhere becomes a text message.

    A role that LlamaIndex does not know (a speaker's name) becomes a user message that names the speaker.
    """
    metadata = turn.metadata or {}
    role = metadata.get(_ROLE, turn.role)
    if _BLOCKS in metadata:
        return ChatMessage(role=role, blocks=metadata[_BLOCKS], additional_kwargs=dict(metadata[_KWARGS]))
    if role not in _MESSAGE_ROLES:
        return ChatMessage(role="user", content=f"{role}: {turn.text}")
    return ChatMessage(role=role, content=turn.text)


_MESSAGE_ROLES = frozenset({"system", "developer", "user", "assistant", "function", "tool", "chatbot", "model"})


def session_of(message: ChatMessage) -> str | None:
    """The session that LlamaIndex noted in a message, if it did."""
    session = message.additional_kwargs.get(_SESSION)
    return None if session is None else str(session)


def without_injected(message: ChatMessage) -> ChatMessage | None:
    """The message without text that a memory injected; None when nothing else was in it.

    Only whole text blocks count, so a user who writes about such a tag loses nothing.
    """
    kept = [b for b in message.blocks if not (isinstance(b, TextBlock) and _INJECTED.fullmatch(b.text))]
    if len(kept) == len(message.blocks):
        return message
    return message.model_copy(update={"blocks": kept}) if kept else None


def query_text(messages: Sequence[ChatMessage]) -> str:
    """The texts of some messages as one query, equal ones once: agents hand the user's message over twice."""
    texts = ((message.content or "").strip() for message in messages)
    return "\n".join(dict.fromkeys(text for text in texts if text))


def same_message(turn: Turn, other: Turn) -> bool:
    """Whether two turns hold the same message, whenever it was said."""
    return replace(turn, id=None, timestamp=None) == replace(other, id=None, timestamp=None)


# turns as text


def speaker(turn: Turn) -> str:
    """Who speaks: the name in the turn's metadata, or its role."""
    name = (turn.metadata or {}).get("name")
    return name if isinstance(name, str) and name else turn.role


def turn_text(turn: Turn) -> str:
    """A turn as one line of a transcript."""
    return f"{speaker(turn)}: {turn.text}"


def episode_text(episode: Episode) -> str:
    """An episode as lines of a transcript, with its day where known and a note on what a budget left out."""
    lines = [turn_text(turn) for turn in episode.turns if turn.text.strip()]
    times = [turn.timestamp for turn in episode.turns if turn.timestamp is not None]
    if times:
        lines.insert(0, f"[{min(times):%Y-%m-%d}]")
    if episode.omitted:
        lines.append(f"[{episode.omitted} more turns of this episode are left out]")
    return "\n".join(lines)
