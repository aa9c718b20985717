"""One thread in memory: arrays and indices derived from the store, extended as the thread grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tsim_core.clusters import Cluster
from tsim_core.embedding import Vectors
from tsim_core.fusion import UNKNOWN_CUT, TurnTable
from tsim_core.index.flat import FlatIndex
from tsim_core.index.lexical import LexicalIndex
from tsim_core.store.base import Columns, SegmentRow, Store, ThreadRow

TERM_TYPE = "<u4"


class EpisodeMap:
    """Which episode each row of a thread is in.

    Args:
        positions: Positions of the thread's rows, in order, shape (n,).
        segments: The thread's segments, in order.

    Attributes:
        starts: Position that names each episode, by episode number; the numbers follow the first appearance.
        of_row: Number of the episode of each row, shape (n,).
        cuts: How clear the cut before each row is, 0 within a segment, shape (n,).
        segments: Segments of each episode, by episode number.
    """

    def __init__(self, positions: NDArray[np.int64], segments: Sequence[SegmentRow]) -> None:
        self.starts: list[int] = list(dict.fromkeys(segment.episode for segment in segments))
        number = {start: i for i, start in enumerate(self.starts)}
        self.segments: list[list[SegmentRow]] = [[] for _ in self.starts]
        for segment in segments:
            self.segments[number[segment.episode]].append(segment)
        if segments:
            bounds = np.array([segment.start for segment in segments])
            owner = np.array([number[segment.episode] for segment in segments])
            place = np.searchsorted(bounds, positions, side="right") - 1
            self.of_row: NDArray[np.int64] = owner[place]
            clear = [UNKNOWN_CUT if segment.strength is None else segment.strength for segment in segments]
            self.cuts = np.where(np.diff(place, prepend=0) > 0, np.array([0.0, *clear[:-1]])[place], 0.0)
        else:
            self.of_row, self.cuts = np.zeros(0, dtype=np.int64), np.zeros(0)


class ThreadIndex:
    """The live turns of a thread as columns, with their indices. Row i of every column is one turn.

    Args:
        row: The thread.
        dimension: Width of a vector.
    """

    def __init__(self, row: ThreadRow, dimension: int) -> None:
        self.key = row.key
        self.name = row.name
        self.epoch = row.epoch
        self.next = 0
        self.flat = FlatIndex(dimension)
        self.lexical = LexicalIndex()
        self.segments: list[SegmentRow] = []
        self.summaries: dict[int, Vectors] = {}
        self.clusters: list[tuple[Cluster, Vectors]] = []
        self._columns = Columns([], [], [], [], [], [])

    @classmethod
    def load(cls, store: Store, row: ThreadRow, dimension: int) -> ThreadIndex:
        """Read a whole thread."""
        index = cls(row, dimension)
        index.read_on(store, row)
        return index

    def read_on(self, store: Store, row: ThreadRow) -> None:
        """Take over what was appended to the store since the last time."""
        positions, vectors = store.vectors(self.key, self.next)
        self.append(store.columns(self.key, self.next), positions, vectors, row.next)
        self.segments = store.segments(self.key)
        self.summaries = store.summaries(self.key)
        self.clusters = [(Cluster(c.number, c.members, c.centroid), c.vector) for c in store.clusters(self.key)]
        self._forget_cached()

    def append(self, columns: Columns, embedded: Sequence[int], vectors: Vectors, until: int) -> None:
        """Take in turns.

        Args:
            columns: Their columns.
            embedded: Positions that have a vector; ones that are not in ``columns`` are passed over.
            vectors: Those vectors, shape (len(embedded), d).
            until: Position that the next turn of the thread gets.
        """
        mine = self._columns
        for name in Columns.__slots__:
            getattr(mine, name).extend(getattr(columns, name))
        self.next = until
        rows = len(columns.positions)
        if list(embedded) == columns.positions:
            self.flat.add(vectors)
        elif rows:
            matrix = np.zeros((rows, self.flat.dimension), dtype=np.float32)
            at = np.searchsorted(columns.positions, embedded)
            known = np.isin(embedded, columns.positions)
            if known.any():
                matrix[at[known]] = vectors[known]
            self.flat.add(matrix)
        self.lexical.add([np.frombuffer(blob, dtype=TERM_TYPE) for blob in columns.terms])
        columns.terms.clear()
        mine.terms.clear()  # the lexical index holds them now
        self._forget_cached()

    def _forget_cached(self) -> None:
        for name in ("positions", "tokens", "timestamps", "episodes", "table"):
            self.__dict__.pop(name, None)

    def replace_segments(self, segments: list[SegmentRow]) -> None:
        """Take over the thread's segments."""
        self.segments = segments
        self._forget_cached()

    def __len__(self) -> int:
        return len(self._columns.positions)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """Position of each row, shape (n,)."""
        return np.array(self._columns.positions, dtype=np.int64)

    @cached_property
    def tokens(self) -> NDArray[np.float64]:
        """Estimated tokens of each row, shape (n,)."""
        return np.array(self._columns.tokens, dtype=np.float64)

    @cached_property
    def timestamps(self) -> NDArray[np.float64]:
        """Seconds since 1970 of each row, NaN where unknown, shape (n,)."""
        return np.array(self._columns.timestamps, dtype=np.float64)

    @property
    def roles(self) -> list[str]:
        """Role of each row."""
        return self._columns.roles

    @property
    def speakers(self) -> list[str | None]:
        """Name of who spoke in each row, where known."""
        return self._columns.speakers

    @cached_property
    def episodes(self) -> EpisodeMap:
        """Which episode each row is in."""
        return EpisodeMap(self.positions, self.segments)

    @cached_property
    def table(self) -> TurnTable:
        """What ranking and assembly see of the turns. Of the roles and speakers, a copy: these grow."""
        return TurnTable(
            self.episodes.of_row,
            self.tokens,
            tuple(self.roles),
            tuple(self.speakers),
            self.timestamps,
            cuts=self.episodes.cuts,
        )

    def vectors_at(self, positions: Sequence[int]) -> Mapping[int, Vectors]:
        """Vectors of turns by position; blank turns and unknown positions are missing."""
        rows = np.searchsorted(self.positions, positions)
        matrix = self.flat.rows
        found: dict[int, Vectors] = {}
        for position, row in zip(positions, rows.tolist(), strict=True):
            if row < len(self) and self.positions[row] == position and matrix[row].any():
                found[position] = matrix[row].copy()
        return found
