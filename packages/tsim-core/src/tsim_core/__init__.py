"""TSIM: the episode is the memory.

A flat chat thread goes in; whole episodes come out.

    from tsim_core import EpisodicMemory

    memory = EpisodicMemory("memory.db")
    thread = memory.thread("alice", "support")
    thread.add("user", "New projects run on a single consumer GPU.")
    print(thread.recall("Which GPU may I use?").text)
"""

from tsim_core._version import __version__
from tsim_core.config import TSIMConfig
from tsim_core.embedding import CallableEmbedder, Embedder, MiniLMEmbedder
from tsim_core.errors import (
    ConfigError,
    DuplicateTurnError,
    EmbedderError,
    InputError,
    ReaderError,
    ReadOnlyError,
    StoreClosedError,
    StoreError,
    StoreFormatError,
    StoreMismatchError,
    StoreNotFoundError,
    TSIMError,
)
from tsim_core.memory import EpisodicMemory
from tsim_core.readers import read_turns
from tsim_core.reconcile import Reconciled
from tsim_core.thread import Thread
from tsim_core.types import Episode, Recall, Segment, Turn

__all__ = [
    "CallableEmbedder",
    "ConfigError",
    "DuplicateTurnError",
    "Embedder",
    "EmbedderError",
    "Episode",
    "EpisodicMemory",
    "InputError",
    "MiniLMEmbedder",
    "ReadOnlyError",
    "ReaderError",
    "Recall",
    "Reconciled",
    "Segment",
    "StoreClosedError",
    "StoreError",
    "StoreFormatError",
    "StoreMismatchError",
    "StoreNotFoundError",
    "TSIMConfig",
    "TSIMError",
    "Thread",
    "Turn",
    "__version__",
    "read_turns",
]
