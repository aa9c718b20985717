"""The one way that turns get into a thread: store, index, segment, link and (in the published form) summarise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tsim_core.clusters import Cluster, assign
from tsim_core.config import TSIMConfig
from tsim_core.embedding import Vectors
from tsim_core.scale import Scale
from tsim_core.segmentation import ClosedSegment, SegTurn
from tsim_core.store.base import ClusterRow, SegmentRow, Store, ThreadRow, TurnRow
from tsim_core.store.columns import Columns
from tsim_core.threads import ThreadIndex
from tsim_core.views import PublishedViews, cluster_text, summary_text

PORTION = 2048  # turns that are written together: memory stays bounded, and progress can be seen
CHECKPOINT_EVERY = 128  # turns; how far a rewind may have to replay beyond what changed

Embed = Callable[[Sequence[str]], Vectors]


class ThreadWriter:
    """Writes to one thread, within transactions that the caller opens.

    Args:
        store: The store.
        row: The thread.
        index: Its index, up to date with the store.
        config: Configuration.
        scale: What the embedder's similarities mean.
        embed: Embeds texts that are made here (summaries and clusters).
    """

    def __init__(
        self, store: Store, row: ThreadRow, index: ThreadIndex, config: TSIMConfig, scale: Scale, embed: Embed
    ) -> None:
        self._store = store
        self._row = row
        self._index = index
        self._config = config
        self._scale = scale
        self._embed = embed
        self._restore(row.state)

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._segmenter = self._config.segmenter(self._scale)
        self._linker = self._config.linker(self._scale)
        self._checkpoint = int(state.get("checkpoint", 0))
        if "segmenter" in state:
            self._segmenter.restore(state["segmenter"], self._fetch)
        if "linker" in state and self._linker is not None:
            self._linker.restore(state["linker"], self._fetch)

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"segmenter": self._segmenter.state(), "checkpoint": self._checkpoint}
        if self._linker is not None:
            state["linker"] = self._linker.state()
        return state

    def _fetch(self, positions: Sequence[int]) -> dict[int, SegTurn]:
        vectors = self._index.vectors_at(positions)
        return {
            row.position: _seg_turn(row, vectors.get(row.position))
            for row in self._store.turns(self._row.key, positions)
        }

    def append(
        self,
        rows: Sequence[TurnRow],
        vectors: Mapping[int, Vectors],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Store and segment new turns.

        Args:
            rows: The turns; their positions continue the thread's.
            vectors: Unit vectors by position; blank turns have none.
            progress: Called with the number of turns done and their total.
        """
        for at in range(0, len(rows), PORTION):
            portion = rows[at : at + PORTION]
            columns = columns_of(portion, vectors)
            self._store.put_turns(self._row.key, portion, columns)
            self._index.append([columns], portion[-1].position + 1)
            self._segment([_seg_turn(row, vectors.get(row.position)) for row in portion])
            if progress is not None:
                progress(at + len(portion), len(rows))
        if rows:
            self._save(next=rows[-1].position + 1)

    def rewind(self, position: int, until: int) -> None:
        """Decide anew from ``position`` on, after the store's turns changed there.

        Args:
            position: First position whose turn changed, moved or went.
            until: Position that the next turn gets.
        """
        checkpoints = self._store.checkpoints(self._row.key)
        start = max((p for p in checkpoints if p <= position), default=0)
        state = checkpoints.get(start, {})
        gone = [s.start for s in self._index.segments if s.closed_at is None or s.closed_at >= start]
        self._store.delete_segments(self._row.key, gone)
        self._store.delete_checkpoints(self._row.key, start + 1)
        self._row = replace(self._row, next=until)
        self._index = ThreadIndex.load(self._store, self._row, self._index.flat.dimension)
        self._restore(state)
        positions = [p for p in self._index.positions.tolist() if p >= start]
        again = list(self._fetch(positions).values())
        if self._config.views is not None:
            kept = {s.episode for s in self._index.segments}
            summaries = {start: v for start, v in self._index.summaries.items() if start in kept}
            self._index.summaries = summaries
            self._index.clusters = []
            self._store.replace_views(self._row.key, summaries, ())
            self._summarise(self._index.segments)
        self._segment(again)
        self._save(next=until, epoch=self._row.epoch + 1)

    def reload(self) -> None:
        """Take over what changed in the store beside the segmentation."""
        self._index = ThreadIndex.load(self._store, self._row, self._index.flat.dimension)
        self._save(epoch=self._row.epoch + 1)

    def forgotten(self, positions: Sequence[int]) -> None:
        """Bring segments, views and state in line after turns were deleted from the store."""
        key = self._row.key
        self._index = ThreadIndex.load(self._store, self._row, self._index.flat.dimension)
        tokens, gone = self._index.tokens, np.sort(np.array(positions))
        changed, empty = [], []
        for segment in self._index.segments:
            first, last = np.searchsorted(self._index.positions, (segment.start, segment.end))
            if first == last:
                empty.append(segment.start)
            elif np.diff(np.searchsorted(gone, (segment.start, segment.end))):
                changed.append(segment._replace(tokens=float(tokens[first:last].sum())))
        self._store.delete_segments(key, empty)
        self._store.put_segments(key, changed)
        self._store.delete_checkpoints(key, 0)
        self._restore(self._row.state)
        self._checkpoint = 0
        self._index.replace_segments(self._store.segments(key))
        if self._config.views is not None:
            self._store.replace_views(key, {}, ())
            self._index.summaries, self._index.clusters = {}, []
            self._summarise(self._index.segments)
        self._save(epoch=self._row.epoch + 1)

    def _segment(self, turns: Sequence[SegTurn]) -> None:
        before = self._index.segments
        last = len(before)
        while last and before[last - 1].closed_at is None:
            last -= 1
        stale = {segment.start for segment in before[last:]}
        before = before[:last]
        closed: list[SegmentRow] = []
        for turn in turns:
            final = self._segmenter.push(turn)
            closed += [self._linked(segment, closed_at=turn.position) for segment in final]
            if final and turn.position + 1 - self._checkpoint >= CHECKPOINT_EVERY:
                self._checkpoint = turn.position + 1
                self._store.put_checkpoint(self._row.key, self._checkpoint, self._state())
        opened = self._tail()
        self._store.delete_segments(self._row.key, sorted(stale - {s.start for s in closed + opened}))
        self._store.put_segments(self._row.key, closed + opened)
        self._index.replace_segments(before + closed + opened)
        if self._config.views is not None:
            self._summarise(closed + opened)

    def _linked(self, segment: ClosedSegment, closed_at: int) -> SegmentRow:
        episode = None
        if self._linker is not None:
            episode = self._linker.assign(segment, self._turns_of(segment))
        return _segment_row(segment, episode, closed_at)

    def _tail(self) -> list[SegmentRow]:
        """What is not final: it may still grow, be cut elsewhere or belong elsewhere."""
        tail = self._segmenter.tail()
        episodes: list[int | None] = [None] * len(tail)
        if self._linker is not None:
            episodes = self._linker.guesses([(segment, self._turns_of(segment)) for segment in tail])
        return [_segment_row(segment, episode, None) for segment, episode in zip(tail, episodes, strict=True)]

    def _turns_of(self, segment: ClosedSegment) -> list[SegTurn]:
        first, last = np.searchsorted(self._index.positions, (segment.start, segment.end))
        positions = self._index.positions[first:last].tolist()
        turns = self._fetch(positions)
        return [turns[p] for p in positions if p in turns]

    def _summarise(self, segments: Sequence[SegmentRow]) -> None:
        """Write summary and cluster views of episodes that are new, grown or shrunk (published form only)."""
        config = self._config.views
        assert config is not None
        key = self._row.key
        texts = {s.start: self._summary(s, config) for s in segments}
        vectors = dict(zip(texts, self._embed(list(texts.values())), strict=True))
        self._store.put_summaries(key, vectors)
        self._index.summaries.update(vectors)
        clusters = {cluster.number: cluster for cluster, _ in self._index.clusters}
        changed: set[int] = set()
        for segment in segments:
            if segment.closed_at is None:
                continue
            now, touched = assign(list(clusters.values()), segment.start, vectors[segment.start], config)
            clusters = {cluster.number: cluster for cluster in now}
            changed |= touched
        old = {cluster.number: vector for cluster, vector in self._index.clusters}
        changed &= clusters.keys()
        by_start = {s.start: s for s in self._index.segments}
        cluster_texts = {
            number: cluster_text(
                [self._summary(by_start[m], config) for m in clusters[number].members[-config.cluster_members :]]
            )
            for number in sorted(changed)
        }
        old |= dict(zip(cluster_texts, self._embed(list(cluster_texts.values())), strict=True))
        rows = [_cluster_row(clusters[number], old[number]) for number in sorted(changed)]
        self._store.put_clusters(key, rows, sorted({c.number for c, _ in self._index.clusters} - clusters.keys()))
        self._index.clusters = [(clusters[number], old[number]) for number in sorted(clusters)]

    def _summary(self, segment: SegmentRow, config: PublishedViews) -> str:
        first, last = np.searchsorted(self._index.positions, (segment.start, segment.end))
        positions = self._index.positions[first:last].tolist()
        turns = [row.turn for row in self._store.turns(self._row.key, positions)]
        return summary_text(segment.start, turns, config)

    def _save(self, next: int | None = None, epoch: int | None = None) -> None:
        row = self._row
        self._row = self._store.put_thread(
            replace(
                row,
                state=self._state(),
                next=row.next if next is None else next,
                epoch=row.epoch if epoch is None else epoch,
            )
        )
        self._index.epoch = self._row.epoch

    def continues(self, row: ThreadRow) -> bool:
        """Whether the thread is still as this writer left it."""
        return (row.key, row.next, row.epoch) == (self._row.key, self._row.next, self._row.epoch)

    @property
    def index(self) -> ThreadIndex:
        """The thread's index, in line with what was written."""
        return self._index


def _seg_turn(row: TurnRow, vector: Vectors | None) -> SegTurn:
    time = None if row.turn.timestamp is None else row.turn.timestamp.timestamp()
    return SegTurn(row.position, row.turn.role, row.turn.text, row.tokens, vector, time)


def columns_of(rows: Sequence[TurnRow], vectors: Mapping[int, Vectors]) -> Columns:
    """What is derived from turns; ``vectors`` by position."""
    in_order = sorted(rows, key=lambda row: row.position)
    return Columns.of({row.position: (row.turn, row.tokens) for row in in_order}, vectors)


def _cluster_row(cluster: Cluster, vector: Vectors) -> ClusterRow:
    return ClusterRow(cluster.number, cluster.members, cluster.centroid, vector)


def _segment_row(segment: ClosedSegment, episode: int | None, closed_at: int | None) -> SegmentRow:
    return SegmentRow(
        segment.start,
        segment.end,
        segment.tokens,
        segment.cut,
        segment.start if episode is None else episode,
        closed_at,
        segment.similarity,
        segment.threshold,
        segment.strength,
    )
