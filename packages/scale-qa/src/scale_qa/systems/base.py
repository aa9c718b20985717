"""What a memory must be able to do to be measured, and what it may use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from tsim_core.embedding import Embedder, Vectors
from tsim_core.types import Turn

Complete = Callable[[str], str]
"""An LLM as a function from a prompt to its answer."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of what a query brought back.

    Attributes:
        turns: Positions in the ingested stream of the turns that this piece hands over *whole*.
        score: Its relevance; for information.
        text: What the reader gets. None where it is the turns, verbatim and in order; the benchmark then counts a
            turn that two units share once. Where a text is given, a turn counts only if its text is really in there.
        views: What each view of the memory added to the score, where it has several.
    """

    turns: tuple[int, ...]
    score: float = 0.0
    text: str | None = None
    views: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a memory keeps: number of vectors, and bytes of vectors and indices."""

    vectors: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Resources:
    """What the run lends to a system.

    Attributes:
        embedder: Shared by all systems; it caches, so embed freely.
        complete: The run's LLM for memories that want one; None means: use a stand-in and name it in ``notes``.
        cross_encoder: Name of a sentence-transformers cross-encoder; None as above.
    """

    embedder: Embedder
    complete: Complete | None = None
    cross_encoder: str | None = None


class MemorySystem(ABC):
    """A memory under test: one thread, from empty. Each batch of a package gets a new one.

    Attributes:
        notes: Stand-ins and settings that a reader of the results must know.
        context_cap: Estimated tokens that the system hands over at most, whatever ``k`` is; None for no cap.
        depth: Units that are ranked for filling a budget and for view hits; 2,600 tokens hold far fewer.
        wants_gold: Whether the run tells it the true dialogues before it ingests: diagnostics only.
    """

    notes: tuple[str, ...] = ()
    context_cap: float | None = None
    depth: int = 1_000
    wants_gold: bool = False

    @abstractmethod
    def ingest(self, turns: Sequence[Turn]) -> None:
        """Append turns, oldest first. The first turn ever ingested has position 0."""

    @abstractmethod
    def retrieve(self, query: str, k: int) -> Sequence[Unit]:
        """Return at most ``k`` units, best first."""

    def retrieve_budget(self, query: str, max_tokens: int) -> Sequence[Unit] | None:
        """Return what the memory would hand over under a token budget.

        None, as here, lets the benchmark fill the budget greedily from `retrieve`, skipping what does not fit.
        """
        return None

    def prompt(self, query: str, units: Sequence[Unit]) -> str | None:
        """The context for an answer model, for ``units`` just retrieved; None lets the benchmark write it."""
        return None

    def take_gold(self, units: Sequence[Sequence[int]]) -> None:  # noqa: B027
        """The turns of every source dialogue; called only where ``wants_gold`` is set."""

    def footprint(self) -> Footprint:
        """What is kept right now."""
        return Footprint()

    def close(self) -> None:  # noqa: B027
        """Release files and connections."""


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Unit vectors of texts, shape (n, d); blank texts, which no model takes, get zero rows."""
    vectors = np.zeros((len(texts), embedder.dimension), dtype=np.float32)
    filled = [i for i, text in enumerate(texts) if text.strip()]
    if filled:
        vectors[filled] = embedder.embed([texts[i] for i in filled])
    return vectors


def embed_query(embedder: Embedder, query: str) -> Vectors:
    """Unit vector of a query, shape (d,)."""
    return np.asarray(embedder.embed([query])[0], dtype=np.float32)


class VectorTable:
    """Rows of vectors that grow by batches."""

    def __init__(self, dimension: int) -> None:
        self._parts: list[Vectors] = [np.zeros((0, dimension), dtype=np.float32)]

    def extend(self, rows: Vectors) -> None:
        """Append rows, shape (m, d)."""
        self._parts.append(rows)

    @property
    def rows(self) -> Vectors:
        """All rows, shape (n, d)."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0]
