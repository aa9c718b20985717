"""What both memories share: the store they open when first used, and episodes as prompt text."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.utils.tsim.embedding import EmbedModel, as_embedder
from llama_index.utils.tsim.messages import episode_text, message_to_turn, without_injected
from tsim_core import Episode, EpisodicMemory, InputError, TSIMConfig, Turn

SYSTEM_ROLES = ("system", "developer")
_RANK = re.compile(r"\[(\d+)\]")


class LazyStore:
    """An `EpisodicMemory` that is opened when it is first used, once, whichever thread comes first.

    Attributes:
        lock: For what its owner does in more than one step.
    """

    def __init__(self, location: str, embed_model: EmbedModel, config: TSIMConfig | None) -> None:
        self._how = location, embed_model, config
        self.lock = threading.RLock()
        self._opening = threading.Lock()
        self._memory: EpisodicMemory | None = None

    @classmethod
    def of(cls, memory: EpisodicMemory) -> LazyStore:
        """One that is open already."""
        store = cls(memory.location, memory.embedder.name, None)
        store._memory = memory
        return store

    def __deepcopy__(self, memo: dict[int, Any]) -> LazyStore:
        return self  # a copy of its owner works on the same store

    def get(self) -> EpisodicMemory:
        """The memory.

        Raises:
            StoreError: If it cannot be opened.
        """
        with self._opening:
            if self._memory is None:
                location, embed_model, config = self._how
                self._memory = EpisodicMemory(location, embedder=as_embedder(embed_model), config=config)
            return self._memory


def checked_namespace(namespace: Sequence[str]) -> list[str]:
    """A namespace as a list.

    Raises:
        InputError: If it is empty or holds something else than non-empty strings.
    """
    if isinstance(namespace, str) or not namespace or not all(isinstance(part, str) and part for part in namespace):
        raise InputError(f"namespace={namespace!r}: expected one or more non-empty strings, such as ['alice']")
    return list(namespace)


def turns_to_store(messages: Sequence[ChatMessage], now: datetime | None) -> list[Turn]:
    """The turns of messages, without the system's own and without text that a memory put into them."""
    turns = []
    for message in messages:
        if message.role.value in SYSTEM_ROLES:
            continue  # instructions are the application's, not part of the talk
        said = without_injected(message)
        if said is not None:
            turns.append(message_to_turn(said, now))
    return turns


def utc_now() -> datetime:
    """The time that a message is stored with."""
    return datetime.now(UTC)


def episode_pieces(episodes: Sequence[Episode]) -> list[str]:
    """Ranked episodes as texts, oldest first; ``[1]`` heads the one that ranks first.

    A rule comes before what overwrote it, and the newest word stands nearest to the question.
    """
    return [f"[{rank}]\n{episode_text(episode)}" for rank, episode in sorted(enumerate(episodes, 1), key=_age)]


def _age(item: tuple[int, Episode]) -> tuple[float, int]:
    episode = item[1]
    times = [turn.timestamp.timestamp() for turn in episode.turns if turn.timestamp is not None]
    return min(times, default=0.0), episode.segments[0].start


def rank_of(piece: str) -> int:
    """The rank that heads an episode's text."""
    match = _RANK.match(piece)
    return int(match[1]) if match else 0
