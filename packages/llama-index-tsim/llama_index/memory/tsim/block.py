"""TSIMMemoryBlock: episodes as a block of LlamaIndex's `Memory`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from llama_index.core.base.llms.types import ChatMessage, ContentBlock, TextBlock
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.utils import get_tokenizer
from llama_index.memory.tsim.store import (
    LazyStore,
    checked_namespace,
    episode_pieces,
    rank_of,
    turns_to_store,
    utc_now,
)
from llama_index.utils.tsim.embedding import DEFAULT_EMBED_MODEL, EmbedModelField
from llama_index.utils.tsim.messages import query_text, session_of, without_injected
from llama_index.utils.tsim.settings import KnownSettings, StoreConfigField
from pydantic import Field, PrivateAttr, field_validator
from tsim_core import EpisodicMemory, Turn


class TSIMMemoryBlock(KnownSettings, BaseMemoryBlock[list[ContentBlock]]):
    """Keeps what `Memory` lets go of, and brings back the episodes that bear on the user's message.

    Sessions are kept apart: the session that `Memory` notes in a message names the thread it is stored in, and it
    recalls from that thread, or from all of the namespace with ``recall_from="namespace"``. The block itself holds
    nothing of a session, so one may serve many. When the prompt grows too long, episodes are dropped whole, the
    lowest-ranked first.

    Example:
        >>> from llama_index.core.memory import Memory
        >>> block = TSIMMemoryBlock(store="memory.db", namespace=["alice"])
        >>> memory = Memory.from_defaults(session_id="support", memory_blocks=[block], token_limit=4000)
    """

    name: str = Field(default="episodes", description="Tag around the episodes in the prompt.")
    description: str | None = Field(
        default="Episodes of earlier talk that bear on the message.", description="What the block holds."
    )
    priority: int = Field(default=1, description="0: never shortened; otherwise shortened when the prompt is too long.")
    store: str = Field(default=":memory:", description="Location of the store.")
    namespace: list[str] = Field(default=["llama-index"], description="Begins the name of every session's thread.")
    default_session: str = Field(default="default", description="Session of messages that name none.")
    recall_from: Literal["session", "namespace"] = Field(
        default="session", description="Recall from the session's thread, or from all threads of the namespace."
    )
    embed_model: EmbedModelField = Field(default=DEFAULT_EMBED_MODEL, description="What embeds turns and queries.")
    config: StoreConfigField = Field(
        default=None, description="The core's configuration; what the store was written with when None."
    )
    similarity_top_k: int | None = Field(default=5, description="Most episodes; None for as many as fit.")
    max_tokens: int | None = Field(default=1300, description="Most estimated tokens; None for whole episodes.")
    query_messages: int = Field(default=1, ge=1, description="How many of the latest user messages make the query.")
    _store: LazyStore = PrivateAttr()

    def __init__(self, memory: EpisodicMemory | None = None, **settings: Any) -> None:
        """A block on a store, or on an open memory.

        Args:
            memory: An open memory, instead of ``store``, ``embed_model`` and ``config``.
            settings: The fields of the class.
        """
        if memory is not None:
            settings["store"] = memory.location
        super().__init__(**settings)
        self._store = LazyStore.of(memory) if memory else LazyStore(self.store, self.embed_model, self.config)

    @field_validator("namespace")
    @classmethod
    def _usable(cls, value: list[str]) -> list[str]:
        return checked_namespace(value)

    @property
    def memory(self) -> EpisodicMemory:
        """The store, opened when first asked for."""
        return self._store.get()

    async def _aget(
        self, messages: list[ChatMessage] | None = None, session_id: str | None = None, **block_kwargs: Any
    ) -> list[ContentBlock]:
        """The episodes that bear on the latest user messages, one text block each."""
        said = [m for m in map(without_injected, messages or []) if m is not None]
        query = query_text(_latest_users(said, self.query_messages))
        if not query:
            return []
        limits = {"k": self.similarity_top_k, "max_tokens": self.max_tokens}
        if self.recall_from == "namespace":
            recall = await self.memory.arecall(query, prefix=self.namespace, **limits)
        else:
            thread = self.memory.thread(*self.namespace, session_id or self.default_session)
            recall = await thread.arecall(query, **limits)
        return [TextBlock(text=piece) for piece in episode_pieces(recall.episodes)]

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store messages, each in the thread of the session that is noted in it."""
        sessions: dict[str, list[ChatMessage]] = {}
        for message in messages:
            sessions.setdefault(session_of(message) or self.default_session, []).append(message)
        for session, members in sessions.items():
            turns: list[Turn] = turns_to_store(members, utc_now())
            if turns:
                await self.memory.thread(*self.namespace, session).aextend(turns)

    async def atruncate(self, content: list[ContentBlock], tokens_to_truncate: int) -> list[ContentBlock] | None:
        """Drop whole episodes, the lowest-ranked first, until so many tokens are saved; None when none is left."""
        tokenizer = get_tokenizer()
        kept = list(content)
        while kept and tokens_to_truncate > 0:
            last = max(kept, key=lambda block: rank_of(_text(block)))
            tokens_to_truncate -= len(tokenizer(_text(last)))
            kept.remove(last)
        return kept or None


def _text(block: ContentBlock) -> str:
    return block.text if isinstance(block, TextBlock) else ""


def _latest_users(messages: Sequence[ChatMessage], count: int) -> list[ChatMessage]:
    """The latest distinct user messages, oldest first; of any role where no user spoke."""
    spoken = [m for m in messages if (m.content or "").strip()]
    users = [m for m in spoken if m.role.value == "user"] or spoken
    distinct = list({(m.content or "").strip(): m for m in reversed(users)}.values())
    return distinct[:count][::-1]
