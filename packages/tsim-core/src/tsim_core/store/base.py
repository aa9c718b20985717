"""What the core asks of a store. It is the only truth: every index in memory is derived from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tsim_core.embedding import Vectors
from tsim_core.store.columns import Columns
from tsim_core.types import Turn


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A stored turn.

    Attributes:
        position: Its place in the thread. Positions grow and are never used twice.
        turn: The turn, id always set.
        tokens: Estimated tokens of the text.
        digest: 64-bit digest of the text, for finding equal texts.
        live: False once it was superseded.
    """

    position: int
    turn: Turn
    tokens: float
    digest: int
    live: bool = True


class SegmentRow(NamedTuple):
    """A stored segment; a tuple, since a long thread has many.

    Attributes:
        start: Position of its first turn.
        end: One more than the position of its last turn.
        tokens: Estimated tokens.
        cut: "shift" or "max"; "end" for the last one.
        episode: Start of the first segment of the episode that it belongs to.
        closed_at: Position of the turn on whose arrival it was closed; None for those of the tail, which may change.
        similarity: The statistic at its cut.
        threshold: What it was compared with.
        strength: How clear the cut is, 0 to 1.
    """

    start: int
    end: int
    tokens: float
    cut: str
    episode: int
    closed_at: int | None = None
    similarity: float | None = None
    threshold: float | None = None
    strength: float | None = None


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A stored cluster of episodes (paper M2).

    Attributes:
        number: Identity within the thread.
        members: Starts of its episodes, in order of arrival.
        centroid: Mean of the members' summary vectors, shape (d,), not normalised.
        vector: Embedding of the cluster text, shape (d,).
    """

    number: int
    members: tuple[int, ...]
    centroid: Vectors
    vector: Vectors


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A stored thread.

    Attributes:
        key: Its number in the store.
        name: Its namespace.
        next: Position that the next turn gets.
        epoch: Grows with every change that is not an append.
        state: State of the segmenter and the linker.
    """

    key: int
    name: tuple[str, ...]
    next: int
    epoch: int
    state: dict[str, Any]


class Store(Protocol):
    """A place for threads, turns, segments, vectors and clusters, with transactions."""

    read_only: bool

    def reporting(self) -> AbstractContextManager[None]:
        """What goes wrong with the store within it is a `StoreError` that says what to do."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """A write transaction: all or nothing. Other writers wait."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """A read transaction: what is read within it is of one moment."""
        ...

    def close(self) -> None:
        """Release everything. Harmless when done twice."""
        ...

    def meta(self) -> dict[str, str]: ...
    def set_meta(self, values: Mapping[str, str]) -> None: ...

    def thread(self, name: Sequence[str]) -> ThreadRow | None: ...
    def threads(self, prefix: Sequence[str] = ()) -> list[ThreadRow]: ...
    def put_thread(self, row: ThreadRow) -> ThreadRow:
        """Insert (key 0) or update; returns the row with its key."""
        ...

    def columns(self, thread: int, start: int = 0, superseded: bool = False) -> Iterator[Columns]:
        """What is derived from the live turns from ``start`` on, or from all of them, part by part in order."""
        ...

    def turns(self, thread: int, positions: Sequence[int] | None = None) -> Iterator[TurnRow]:
        """Rows by position, all when None; superseded ones included."""
        ...

    def newest(self, thread: int, count: int | None = None) -> list[TurnRow]:
        """The last live turns, in order; all when ``count`` is None."""
        ...

    def size(self, thread: int, superseded: bool = False) -> int:
        """Number of live turns, or of all."""
        ...

    def outline(self, thread: int) -> list[tuple[int, str, str, int, int, bool]]:
        """Of every turn, superseded ones too: position, id, role, digests of text and content, liveness."""
        ...

    def find_ids(self, thread: int, ids: Sequence[str]) -> dict[str, int]: ...
    def find_vectors(self, texts: Mapping[int, str]) -> dict[str, Vectors]:
        """Vectors of texts that are stored already anywhere; ``texts`` by digest."""
        ...

    def put_turns(self, thread: int, rows: Iterable[TurnRow], columns: Columns) -> None:
        """Insert or replace turns, with what is derived from them."""
        ...

    def annotate(self, thread: int, turns: Mapping[int, Turn]) -> None:
        """Give turns, by position, other metadata."""
        ...

    def move_turns(self, thread: int, moves: Mapping[int, int]) -> None:
        """Give turns new positions."""
        ...

    def set_live(self, thread: int, positions: Sequence[int], live: bool) -> None: ...
    def delete_turns(self, thread: int, positions: Sequence[int]) -> None: ...

    def segments(self, thread: int) -> list[SegmentRow]: ...
    def put_segments(self, thread: int, rows: Iterable[SegmentRow]) -> None: ...
    def delete_segments(self, thread: int, starts: Sequence[int]) -> None: ...

    def checkpoints(self, thread: int) -> dict[int, dict[str, Any]]: ...
    def put_checkpoint(self, thread: int, position: int, state: Mapping[str, Any]) -> None: ...
    def delete_checkpoints(self, thread: int, start: int) -> None:
        """Delete those at ``start`` and behind."""
        ...

    def summaries(self, thread: int) -> dict[int, Vectors]: ...
    def put_summaries(self, thread: int, vectors: Mapping[int, Vectors]) -> None: ...
    def clusters(self, thread: int) -> list[ClusterRow]: ...
    def replace_views(self, thread: int, summaries: Mapping[int, Vectors], clusters: Sequence[ClusterRow]) -> None:
        """Replace all summary and cluster rows of a thread."""
        ...

    def put_clusters(self, thread: int, rows: Iterable[ClusterRow], gone: Sequence[int]) -> None: ...

    def delete_thread(self, thread: int) -> None: ...
    def scrub(self) -> None:
        """Remove deleted content from the bytes on disk."""
        ...

    def counts(self) -> dict[str, int]: ...
    def problems(self) -> list[str]:
        """What is wrong with the file itself; empty when nothing is."""
        ...
