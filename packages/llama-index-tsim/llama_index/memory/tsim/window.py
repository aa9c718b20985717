"""The latest messages of a chat, and the earlier episodes that go with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.base.llms.types import (
    CachePoint,
    ChatMessage,
    DocumentBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.memory.tsim.store import episode_pieces
from tsim_core import Episode, EpisodicMemory, Recall, Turn

Tokenizer = Callable[[str], Sequence[Any]]
_MEDIUM, _DOCUMENT = 256, 2048  # tokens of an image, sound or film, and of a file, as LlamaIndex's `Memory` counts them
_ROUNDS = 3


def message_tokens(message: ChatMessage, tokenizer: Tokenizer) -> int:
    """Tokens of a message: its texts, tool calls, media, and what a model's adapter keeps beside them."""
    count = 0
    for block in message.blocks:
        if isinstance(block, TextBlock):
            count += len(tokenizer(block.text))
        elif isinstance(block, ToolCallBlock | ThinkingBlock):
            count += len(tokenizer(block.model_dump_json()))
        elif isinstance(block, DocumentBlock):
            count += _DOCUMENT
        elif not isinstance(block, CachePoint):
            count += _MEDIUM
    if message.additional_kwargs:
        count += len(tokenizer(json.dumps(message.additional_kwargs, default=str)))
    return count


def window_start(messages: Sequence[ChatMessage], token_limit: int, tokenizer: Tokenizer) -> int:
    """Where the latest messages begin that fit a limit.

    They begin with a user's message, so that no tool result or answer stands alone. The last user message and what
    follows it are always among them, even beyond the limit.
    """
    start = len(messages)
    tokens = 0
    while start > 0:
        tokens += message_tokens(messages[start - 1], tokenizer)
        if tokens > token_limit:
            break
        start -= 1
    users = [i for i, message in enumerate(messages) if message.role.value == "user"]
    if not users:  # a greeting, say: only results without their call must not come first
        while start < len(messages) and messages[start].role.value in ("tool", "function"):
            start += 1
        return start
    if start == 0 and messages[0].role.value not in ("tool", "function"):
        return 0
    return next((i for i in users if i >= start), users[-1])


def recall_before(
    memory: EpisodicMemory,
    query: str,
    prefix: Sequence[str],
    thread: tuple[str, ...],
    window: Sequence[Turn],
    k: int | None,
    max_tokens: int | None,
) -> list[Episode]:
    """The episodes that bear on a query, without the turns that the prompt holds anyway.

    Those turns take room in the core's answer that they do not need, so it is asked again with that room added.

    Args:
        memory: The store.
        query: What to look for.
        prefix: Threads to look in.
        thread: Thread of the window.
        window: The turns that the prompt holds.
        k: Most episodes; None for as many as fit.
        max_tokens: Most estimated tokens; None for whole episodes.
    """
    held = {turn.id for turn in window}
    estimate = memory.config.estimator
    vector = memory.embed([query])[0]
    extra, room = 0, 0
    left: list[Episode] = []
    for _ in range(_ROUNDS):
        recall = memory.recall(
            query,
            prefix=prefix,
            k=None if k is None else k + extra,
            max_tokens=None if max_tokens is None else max_tokens + room,
            query_vector=vector,
        )
        left, spent = _without(recall, thread, held, estimate)
        gone = len(recall.episodes) - len(left)
        if (gone, spent) == (extra, room):
            break
        extra, room = gone, spent
    left = left[:k]
    while max_tokens is not None and len(left) > 1 and estimate("\n\n".join(episode_pieces(left))) > max_tokens:
        left.pop()
    return left


def _without(
    recall: Recall, thread: tuple[str, ...], held: set[str | None], estimate: Callable[[str], float]
) -> tuple[list[Episode], int]:
    """The episodes without the turns held already, and how many tokens those take."""
    left: list[Episode] = []
    spent = 0.0
    for episode in recall.episodes:
        if episode.thread == thread:
            spent += sum(estimate(turn.text) for turn in episode.turns if turn.id in held)
            episode = replace(episode, turns=tuple(turn for turn in episode.turns if turn.id not in held))
        if any(turn.text.strip() for turn in episode.turns):
            left.append(episode)
    return left, round(spent)
