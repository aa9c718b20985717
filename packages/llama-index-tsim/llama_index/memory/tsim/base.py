"""TSIMMemory: a chat memory that never forgets and hands over what bears on the message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import LLM
from llama_index.core.memory import BaseMemory
from llama_index.core.utils import get_tokenizer
from llama_index.memory.tsim.store import (
    SYSTEM_ROLES,
    LazyStore,
    checked_namespace,
    episode_pieces,
    turns_to_store,
    utc_now,
)
from llama_index.memory.tsim.window import recall_before, window_start
from llama_index.utils.tsim.embedding import DEFAULT_EMBED_MODEL, EmbedModelField, LlamaIndexEmbedder
from llama_index.utils.tsim.messages import CLOSE, OPEN, query_text, same_message, turn_to_message, without_injected
from llama_index.utils.tsim.settings import KnownSettings, StoreConfigField
from pydantic import Field, PrivateAttr, field_validator
from tsim_core import Episode, EpisodicMemory, Thread, Turn
from tsim_core.readers import parse_time
from tsim_core.transfer import turn_dict

IN_MEMORY = ":memory:"
INTRODUCTION = "Next comes what was said earlier and may bear on the message, oldest first; [1] is the closest match."
Saved = list[tuple[list[str], list[dict[str, Any]]]]
"""The turns of each thread."""


class TSIMMemory(KnownSettings, BaseMemory):
    """A chat memory for engines and agents: the latest messages, and the earlier episodes that bear on what is asked.

    Everything that is put in is stored, each session as a thread of its own. `get` returns the latest messages that fit
    ``token_limit``, beginning with a user's so that no tool result stands alone, and before them a system message with
    the episodes from before that bear on the input. That message is never stored, nor are other system messages. A
    user message handed over twice in a row, as agents do, is stored once.

    `set` makes the chat history equal the messages: what they share with it is kept, what they contradict is out of
    recall, and what is older than they reach stays remembered. `reset` deletes the session.

    The memory travels with an agent's context (`Context.to_dict`): as the location of its store, or with its turns
    where the store is in memory.

    Example:
        >>> memory = TSIMMemory.from_defaults(store="memory.db", namespace=["alice"], session_id="support")
    """

    store: str = Field(default=IN_MEMORY, description="Location of the store.")
    namespace: list[str] = Field(default=["llama-index"], description="Begins the name of every session's thread.")
    session_id: str = Field(default_factory=lambda: uuid4().hex, min_length=1, description="Name of the session.")
    recall_from: Literal["session", "namespace"] = Field(
        default="session", description="Recall from the session, or from all sessions of the namespace."
    )
    embed_model: EmbedModelField = Field(default=DEFAULT_EMBED_MODEL, description="What embeds turns and queries.")
    config: StoreConfigField = Field(
        default=None, description="The core's configuration; what the store was written with when None."
    )
    token_limit: int = Field(default=3000, ge=1, description="Most tokens of the latest messages.")
    similarity_top_k: int | None = Field(default=5, description="Most episodes; None for as many as fit.")
    max_tokens: int | None = Field(default=1300, description="Most estimated tokens of episodes; None for no limit.")
    history_after: str | None = Field(default=None, description="Id of the turn before the chat history, if any.")
    system_messages: list[ChatMessage] = Field(
        default_factory=list, description="System messages of the application: handed over, never stored or recalled."
    )
    _store: LazyStore = PrivateAttr()
    _last: Turn | None = PrivateAttr(default=None)  # the turn put in last, by this object

    def __init__(self, memory: EpisodicMemory | None = None, turns: Saved | None = None, **settings: Any) -> None:
        """A memory on a store, or on an open one.

        Args:
            memory: An open memory, instead of ``store``, ``embed_model`` and ``config``.
            turns: What `to_dict` took along of a store in memory.
            settings: The fields of the class.
        """
        if memory is not None:
            settings["store"] = memory.location
            embedder = memory.embedder
            settings.setdefault(
                "embed_model", embedder.model if isinstance(embedder, LlamaIndexEmbedder) else embedder.name
            )
        super().__init__(**settings)
        self._store = LazyStore.of(memory) if memory else LazyStore(self.store, self.embed_model, self.config)
        for name, members in turns or []:
            self.memory.thread(*name).extend(
                Turn(**{**turn, "timestamp": parse_time(turn.get("timestamp"), "the saved memory")}) for turn in members
            )

    @field_validator("namespace")
    @classmethod
    def _usable(cls, value: list[str]) -> list[str]:
        return checked_namespace(value)

    @classmethod
    def class_name(cls) -> str:
        """Name in serialised data."""
        return "TSIMMemory"

    @classmethod
    def from_defaults(
        cls,
        memory: EpisodicMemory | None = None,
        session_id: str | None = None,
        chat_history: list[ChatMessage] | None = None,
        llm: LLM | None = None,
        token_limit: int | None = None,
        **settings: Any,
    ) -> TSIMMemory:
        """A memory with the usual settings.

        Args:
            memory: An open memory, instead of ``store``, ``embed_model`` and ``config``.
            session_id: Name of the session; a new one when None.
            chat_history: Messages to begin with; see `set`.
            llm: Model whose context the latest messages may fill by a half, where ``token_limit`` is None.
            token_limit: Most tokens of the latest messages.
            settings: The other fields of the class.
        """
        if token_limit is None and llm is not None:
            token_limit = llm.metadata.context_window // 2
        if session_id is not None:
            settings["session_id"] = session_id
        if token_limit is not None:
            settings["token_limit"] = token_limit
        made = cls(memory, **settings)
        if chat_history:
            made.set(chat_history)
        return made

    @property
    def memory(self) -> EpisodicMemory:
        """The store, opened when first asked for."""
        return self._store.get()

    @property
    def thread(self) -> Thread:
        """The session's thread in the store."""
        return self.memory.thread(*self.namespace, self.session_id)

    # what engines and agents call

    def get(self, input: str | ChatMessage | None = None, **kwargs: Any) -> list[ChatMessage]:
        """The prompt's messages: system messages with the episodes that bear on the input, then the latest messages.

        Args:
            input: The user's message, a ChatMessage too; the latest user message when None.
            kwargs: ``initial_token_count`` is taken off ``token_limit``; others have no meaning here.
        """
        history = self._history()
        messages = [turn_to_message(turn) for turn in history]
        room = max(0, self.token_limit - int(kwargs.get("initial_token_count") or 0))
        start = window_start(messages, room, get_tokenizer())
        episodes = self._episodes(self._query(input, messages), history[start:])
        return [*self._system(episodes), *messages[start:]]

    def get_all(self) -> list[ChatMessage]:
        """All messages of the chat history, the system's first."""
        return [*self.system_messages, *map(turn_to_message, self._history())]

    def put(self, message: ChatMessage) -> None:
        """Store a message; see `put_messages`."""
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Store messages, all or none.

        Raises:
            InputError: If a message holds something that is no JSON data.
        """
        with self._store.lock:
            self._keep_system(messages)
            fresh: list[Turn] = []
            last = self._last
            for turn in turns_to_store(messages, utc_now()):
                if turn.role == "user" and last is not None and same_message(turn, last):
                    continue  # agents hand the user's message over twice
                fresh.append(turn)
                last = turn
            self.thread.extend(fresh)
            self._last = last

    def set(self, messages: list[ChatMessage]) -> None:
        """Make the chat history equal some messages; see the class."""
        turns = turns_to_store(messages, None)
        with self._store.lock:
            self.system_messages = []
            self._keep_system(messages)
            self.thread.reconcile(turns)
            self._last = turns[-1] if turns else None
            stored = self.thread.turns()
            at = len(stored)
            for turn in reversed(turns):
                said = turn.role, turn.text
                at = next(i for i in range(at - 1, -1, -1) if (stored[i].role, stored[i].text) == said)
            self.history_after = stored[at - 1].id if at else None

    def reset(self) -> None:
        """Delete the session from the store, and its system messages."""
        with self._store.lock:
            self.thread.clear()
            self.system_messages, self.history_after, self._last = [], None, None

    # parts

    def _history(self) -> list[Turn]:
        """The turns of the chat history."""
        turns = self.thread.turns()
        before = next((i for i, turn in enumerate(turns) if turn.id == self.history_after), -1)
        return turns[before + 1 :]

    def _keep_system(self, messages: Sequence[ChatMessage]) -> None:
        for message in messages:
            said = without_injected(message) if message.role.value in SYSTEM_ROLES else None
            if said is not None and said not in self.system_messages:
                self.system_messages = [*self.system_messages, said]

    def _query(self, input: str | ChatMessage | None, messages: Sequence[ChatMessage]) -> str:
        if isinstance(input, str):
            return input.strip()
        if isinstance(input, ChatMessage):
            return query_text([input])
        users = [message for message in messages if message.role.value == "user" and (message.content or "").strip()]
        return query_text(users[-1:])

    def _episodes(self, query: str, window: Sequence[Turn]) -> list[Episode]:
        if not query:
            return []
        own = (*self.namespace, self.session_id)
        prefix = own if self.recall_from == "session" else tuple(self.namespace)
        return recall_before(self.memory, query, prefix, own, window, self.similarity_top_k, self.max_tokens)

    def _system(self, episodes: Sequence[Episode]) -> list[ChatMessage]:
        """The system messages, and behind them one with the episodes.

        It never stands first, for a ReActAgent takes a system message that does for its own and drops it.
        """
        if not episodes:
            return list(self.system_messages)
        before = self.system_messages or [_injected(INTRODUCTION)]
        return [*before, _injected("\n\n".join(episode_pieces(episodes)))]

    # serialisation

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """As JSON data; a store in memory travels with its turns."""
        data = self.model_dump(mode="json", **kwargs)
        if self.store == IN_MEMORY:
            threads = self.memory.threads(self.namespace)
            data["turns"] = [[list(n), [turn_dict(t) for t in self.memory.thread(*n).turns()]] for n in threads]
        return data

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickle: `to_dict`, for a store in memory has to travel with its turns."""
        return {"__dict__": self.to_dict()}


def _injected(text: str) -> ChatMessage:
    return ChatMessage(role="system", content=f"{OPEN}\n{text}\n{CLOSE}")
