"""One thread in memory: arrays and indices derived from the store, extended as the thread grows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tsim_core.clusters import Cluster
from tsim_core.embedding import Vectors
from tsim_core.errors import StoreFormatError
from tsim_core.fusion import UNKNOWN_CUT, TurnTable
from tsim_core.index.flat import FlatIndex
from tsim_core.index.growing import Growing
from tsim_core.index.lexical import LexicalIndex
from tsim_core.labels import Labels
from tsim_core.store.base import SegmentRow, Store, ThreadRow
from tsim_core.store.columns import Columns


class EpisodeMap:
    """Which episode each row of a thread is in.

    Args:
        positions: Positions of the thread's rows, in order, shape (n,).
        segments: The thread's segments, in order.

    Attributes:
        starts: Position that names each episode, by episode number; the numbers follow the first appearance.
        of_row: Number of the episode of each row, shape (n,).
        cuts: How clear the cut before each row is, 0 within a segment, shape (n,).
    """

    def __init__(self, positions: NDArray[np.int64], segments: Sequence[SegmentRow]) -> None:
        self.starts: list[int] = list(dict.fromkeys(segment.episode for segment in segments))
        number = {start: i for i, start in enumerate(self.starts)}
        self._owner = np.array([number[segment.episode] for segment in segments], dtype=np.int64)
        self._segments = segments
        bounds = np.searchsorted(positions, [segment.start for segment in segments])
        if len(positions) and (not len(bounds) or bounds[0] > 0 or bool(np.any(np.diff(bounds) < 0))):
            raise StoreFormatError("the store is damaged: its segments do not cover a thread; see `tsim check`")
        place = np.repeat(np.arange(len(segments)), np.diff(bounds, append=len(positions)))
        self.of_row: NDArray[np.int64] = self._owner[place]
        clear = [UNKNOWN_CUT if segment.strength is None else segment.strength for segment in segments]
        self.cuts = np.where(np.diff(place, prepend=0) > 0, np.array([0.0, *clear[:-1]])[place], 0.0)

    def segments(self, number: int) -> list[SegmentRow]:
        """Segments of an episode, by its number."""
        return [self._segments[i] for i in np.flatnonzero(self._owner == number).tolist()]


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
        self._positions, self._tokens, self._timestamps = Growing(np.int64), Growing(np.float64), Growing(np.float64)
        self._labels = Growing(np.uint32)
        self._number: dict[str, int] = {}  # of each label

    @classmethod
    def load(cls, store: Store, row: ThreadRow, dimension: int) -> ThreadIndex:
        """Read a whole thread."""
        index = cls(row, dimension)
        index.read_on(store, row)
        return index

    def read_on(self, store: Store, row: ThreadRow) -> None:
        """Take over what was appended to the store since the last time."""
        self.flat.reserve(row.next - self.next)
        self.append(store.columns(self.key, self.next), row.next)
        self.segments = store.segments(self.key)
        self.summaries = store.summaries(self.key)
        self.clusters = [(Cluster(c.number, c.members, c.centroid), c.vector) for c in store.clusters(self.key)]

    def append(self, parts: Iterable[Columns], until: int) -> None:
        """Take in turns.

        Args:
            parts: Their columns, in order.
            until: Position that the next turn of the thread gets.
        """
        terms, lengths = [], []
        for part in parts:
            self._positions.extend(part.positions)
            self._tokens.extend(part.tokens)
            self._timestamps.extend(part.timestamps)
            self._labels.extend(part.labels.renumbered(self._number))
            self.flat.add(part.matrix(self.flat.dimension))
            terms.append(part.terms)
            lengths.append(part.lengths)
        if lengths:
            self.lexical.add(np.concatenate(terms), np.concatenate(lengths))
        self.next = until
        self._forget_cached()

    def _forget_cached(self) -> None:
        for name in ("episodes", "table"):
            self.__dict__.pop(name, None)

    def replace_segments(self, segments: list[SegmentRow]) -> None:
        """Take over the thread's segments."""
        self.segments = segments
        self._forget_cached()

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def positions(self) -> NDArray[np.int64]:
        """Position of each row, shape (n,)."""
        return self._positions.rows

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Estimated tokens of each row, shape (n,)."""
        return self._tokens.rows

    @property
    def timestamps(self) -> NDArray[np.float64]:
        """Seconds since 1970 of each row, NaN where unknown, shape (n,)."""
        return self._timestamps.rows

    @property
    def labels(self) -> Labels:
        """Who spoke."""
        return Labels(tuple(self._number), self._labels.rows)

    @cached_property
    def episodes(self) -> EpisodeMap:
        """Which episode each row is in."""
        return EpisodeMap(self.positions, self.segments)

    @cached_property
    def table(self) -> TurnTable:
        """What ranking and assembly see of the turns."""
        episodes = self.episodes
        return TurnTable(episodes.of_row, self.tokens, self.labels, self.timestamps, cuts=episodes.cuts)

    def vectors_at(self, positions: Sequence[int]) -> Mapping[int, Vectors]:
        """Vectors of turns by position; blank turns and unknown positions are missing."""
        rows = np.searchsorted(self.positions, positions)
        matrix = self.flat.rows
        found: dict[int, Vectors] = {}
        for position, row in zip(positions, rows.tolist(), strict=True):
            if row < len(self) and self.positions[row] == position and matrix[row].any():
                found[position] = matrix[row].copy()
        return found
