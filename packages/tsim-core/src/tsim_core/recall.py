"""From a query to episodes: gather the evidence, rank, and hand over what fits."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tsim_core.assembly import Portion, assemble
from tsim_core.config import TSIMConfig
from tsim_core.embedding import Vectors
from tsim_core.errors import InputError, StoreFormatError
from tsim_core.fusion import TurnTable, rank_fused
from tsim_core.index.lexical import Matches
from tsim_core.labels import Labels
from tsim_core.lexical import query_terms
from tsim_core.ranking import PublishedRanking, RankedEpisode, rank_published
from tsim_core.store.base import SegmentRow, Store, TurnRow
from tsim_core.threads import ThreadIndex
from tsim_core.types import Episode, Recall, Segment, Turn

LEAST_EPISODE = 8  # tokens that any episode takes up: a budget holds no more of them


class _Default(Enum):
    DEFAULT = "the configuration's value"


DEFAULT: Final = _Default.DEFAULT
Limit = int | None | _Default
"""A limit: a number of at least 1, None for no limit, or the configuration's value."""


def limit(name: str, given: Limit, configured: int | None) -> int | None:
    """The limit in force.

    Raises:
        InputError: If it is no whole number of at least 1.
    """
    value = configured if isinstance(given, _Default) else given
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InputError(f"{name}={value!r}: expected a whole number of at least 1, or None for no limit")
    return value


@dataclass(frozen=True, slots=True)
class Filter:
    """Which turns may be recalled.

    Attributes:
        after: Those of this time or later.
        before: Those earlier than this.
        where: Those whose metadata has these values.
        exclude: Ids of those that may not, by the name of their thread.

    Raises:
        InputError: If a value has another type.
    """

    after: datetime | None = None
    before: datetime | None = None
    where: Mapping[str, Any] | None = None
    exclude: Mapping[tuple[str, ...], Collection[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, time in (("after", self.after), ("before", self.before)):
            if time is not None and not isinstance(time, datetime):
                raise InputError(
                    f"{name}={time!r} is {type(time).__name__}; expected a datetime, such as datetime(2026, 3, 1) or "
                    "datetime.fromisoformat(...)"
                )
        if self.where is not None and not isinstance(self.where, Mapping):
            raise InputError(f"where={self.where!r} is {type(self.where).__name__}; expected a mapping of metadata")
        for ids in self.exclude.values():
            if isinstance(ids, str):
                raise InputError(f"exclude={ids!r} is one string; pass a list of turn ids, such as [{ids!r}]")

    def __bool__(self) -> bool:
        return self.by_turn or bool(self.exclude)

    @property
    def by_turn(self) -> bool:
        """Whether turns have to be read to tell."""
        return self.after is not None or self.before is not None or bool(self.where)

    def times_match(self, timestamp: datetime | None) -> bool:
        """Whether a turn of that time passes; one without a time does not pass a filter by time."""
        if self.after is None and self.before is None:
            return True
        if timestamp is None:
            return False
        return (self.after is None or timestamp >= _zoned(self.after)) and (
            self.before is None or timestamp < _zoned(self.before)
        )

    def matches(self, turn: Turn) -> bool:
        """Whether a turn passes."""
        metadata = turn.metadata or {}
        return self.times_match(turn.timestamp) and all(
            key in metadata and metadata[key] == value for key, value in (self.where or {}).items()
        )


def _zoned(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def episode_id(thread: tuple[str, ...], start: int) -> str:
    """Identity of an episode: the same in every store that holds this thread."""
    return blake2b(json.dumps([*thread, start]).encode(), digest_size=8).hexdigest()


def public_segment(thread: tuple[str, ...], row: SegmentRow) -> Segment:
    """A stored segment as users see it."""
    return Segment(
        row.start,
        row.end,
        round(row.tokens),
        row.cut,
        episode_id(thread, row.episode),
        row.similarity,
        row.threshold,
        row.strength,
        row.closed_at is not None,
    )


def _stored(store: Store, index: ThreadIndex, positions: Sequence[int]) -> list[TurnRow]:
    """Turns at positions of a thread's index, all of them.

    Raises:
        StoreFormatError: If one is not there.
    """
    rows = list(store.turns(index.key, positions))
    if len(rows) < len(positions):
        raise StoreFormatError(
            f"the store is damaged: turns of the thread {index.name!r} are missing; see `tsim check`"
        )
    return rows


def whole_episodes(store: Store, index: ThreadIndex) -> list[Episode]:
    """All episodes of a thread, in order of their first turn."""
    turns: Sequence[Turn] = [row.turn for row in _stored(store, index, index.positions.tolist())]
    members: list[list[Turn]] = [[] for _ in index.episodes.starts]
    for turn, number in zip(turns, index.episodes.of_row.tolist(), strict=True):
        members[number].append(turn)
    return [
        Episode(
            episode_id(index.name, start),
            tuple(members[number]),
            tuple(public_segment(index.name, s) for s in index.episodes.segments(number)),
            index.name,
        )
        for number, start in enumerate(index.episodes.starts)
    ]


def recall_from(
    store: Store,
    config: TSIMConfig,
    query: str,
    vector: Vectors,
    indices: Sequence[ThreadIndex],
    k: Limit,
    max_tokens: Limit,
    filter_: Filter,
) -> Recall:
    """Rank the episodes of some threads jointly and hand over what fits; see `tsim_core.thread.Thread.recall`."""
    most = limit("k", k, config.assembly.k)
    budget = limit("max_tokens", max_tokens, config.assembly.max_tokens)
    if most is None and budget is None:
        raise InputError("k and max_tokens are both None: give one of them a limit")
    filled = [index for index in indices if len(index)]
    if not filled:
        return Recall(query, (), "", 0)
    joint = Joint(store, filled)
    candidates = most if most is not None else max(1, int(budget or 0) // LEAST_EPISODE)
    if isinstance(config.ranking, PublishedRanking):
        ranked = _published(joint, vector, config.ranking, filter_)[:candidates]
    else:
        ranked = rank_fused(
            query,
            joint.cosines(vector),
            joint.matches(query),
            joint.table,
            joint.vectors,
            config.ranking,
            candidates,
            joint.allowed(filter_),
        )
    handed = assemble(ranked, joint.table, joint.texts, config.estimator, most, budget, config.assembly)
    text = handed.text.encode("utf-8", "replace").decode()  # a lone surrogate would break any prompt
    return Recall(query, tuple(map(joint.episode, handed.portions)), text, math.ceil(handed.tokens))


class Joint:
    """Some threads as one table of turns, whose rows and episodes follow each other.

    Args:
        store: Where their texts are.
        indices: The threads, none of them empty.
    """

    def __init__(self, store: Store, indices: Sequence[ThreadIndex]) -> None:
        self._store = store
        self._turns: dict[int, Turn] = {}
        self.indices = indices
        self.first_row = np.cumsum([0, *(len(index) for index in indices)])
        self.first_episode = np.cumsum([0, *(len(index.episodes.starts) for index in indices)])
        self.table = indices[0].table if len(indices) == 1 else self._table()

    def _table(self) -> TurnTable:
        tables = [index.table for index in self.indices]
        return TurnTable(
            np.concatenate([t.episode_of_row + n for t, n in zip(tables, self.first_episode, strict=False)]),
            np.concatenate([t.tokens for t in tables]),
            Labels.joined([t.labels for t in tables]),
            np.concatenate([t.timestamps for t in tables]),
            np.repeat(np.arange(len(tables)), np.diff(self.first_row)),
            np.concatenate([t.cuts for t in tables]),
        )

    def cosines(self, vector: Vectors) -> Vectors:
        """Cosine of a unit vector to every turn, shape (n,)."""
        return np.concatenate([index.flat.rows @ vector for index in self.indices])

    def vectors(self, rows: NDArray[np.int64]) -> Vectors:
        """Unit vectors of rows of one thread, shape (len(rows), d)."""
        owner = int(np.searchsorted(self.first_row, rows[0], side="right")) - 1
        chosen: Vectors = self.indices[owner].flat.rows[rows - self.first_row[owner]]
        return chosen

    def matches(self, query: str) -> Matches:
        """Where the terms of a query occur."""
        terms = np.concatenate(query_terms(query))
        return Matches.joined([index.lexical.matches(terms) for index in self.indices])

    def allowed(self, filter_: Filter) -> NDArray[np.bool_] | None:
        """Which rows pass a filter; None when all do."""
        if not filter_:
            return None
        return np.concatenate([_allowed(self._store, index, filter_) for index in self.indices])

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Texts of rows."""
        self._fetch(rows)
        return [self._turns[row].text for row in rows]

    def _fetch(self, rows: Sequence[int]) -> None:
        owners = np.searchsorted(self.first_row, rows, side="right") - 1
        for owner in np.unique(owners).tolist():
            index, first = self.indices[owner], int(self.first_row[owner])
            wanted = [row for row, o in zip(rows, owners, strict=True) if o == owner and row not in self._turns]
            row_of = {int(index.positions[row - first]): row for row in wanted}
            for stored in _stored(self._store, index, sorted(row_of)):
                self._turns[row_of[stored.position]] = stored.turn

    def episode(self, portion: Portion) -> Episode:
        """What is handed over of an episode, as users see it."""
        owner = int(np.searchsorted(self.first_episode, portion.ranked.episode, side="right")) - 1
        index = self.indices[owner]
        first = int(self.first_episode[owner])
        number = portion.ranked.episode - first
        handed = {number, *(int(n) - first for n in self.table.episode_of_row[list(portion.rows)])}
        segments = sorted((s for n in handed for s in index.episodes.segments(n)), key=lambda segment: segment.start)
        self._fetch(portion.rows)
        return Episode(
            episode_id(index.name, index.episodes.starts[number]),
            tuple(replace(self._turns[row], text=text) for row, text in zip(portion.rows, portion.texts, strict=True)),
            tuple(public_segment(index.name, segment) for segment in segments),
            index.name,
            portion.ranked.score,
            portion.ranked.evidence,
            portion.omitted,
        )


def _published(joint: Joint, vector: Vectors, config: PublishedRanking, filter_: Filter) -> list[RankedEpisode]:
    """The published ranking of each thread, merged by score; its turns carry their episode's score."""
    merged: list[RankedEpisode] = []
    firsts = zip(joint.indices, joint.first_row.tolist(), joint.first_episode.tolist(), strict=False)
    for index, first_row, first_episode in firsts:
        allowed = _allowed(joint._store, index, filter_) if filter_ else None
        views = index.episodes.of_row, _summaries(index), _clusters(index)
        for found in rank_published(vector, index.flat, *views, config, allowed):
            rows = index.table.rows(found.episode).tolist()
            scores = {
                row + first_row: found.score + found.turn_scores.get(row, 0.0)
                for row in rows
                if allowed is None or allowed[row]
            }
            merged.append(RankedEpisode(found.episode + first_episode, found.evidence, scores))
    return sorted(merged, key=lambda r: (-r.score, -r.episode))


def _allowed(store: Store, index: ThreadIndex, filter_: Filter) -> NDArray[np.bool_]:
    """Which rows of a thread pass the filter."""
    allowed = np.ones(len(index), dtype=np.bool_)
    if filter_.by_turn:
        rows = _stored(store, index, index.positions.tolist())
        allowed[:] = np.fromiter((filter_.matches(row.turn) for row in rows), dtype=np.bool_, count=len(index))
    excluded = filter_.exclude.get(index.name)
    if excluded:
        positions = list(store.find_ids(index.key, list(excluded)).values())
        allowed[np.isin(index.positions, positions)] = False
    return allowed


def _summaries(index: ThreadIndex) -> Vectors:
    try:
        vectors = [index.summaries[start] for start in index.episodes.starts]
    except KeyError as error:
        raise StoreFormatError(
            f"the store is damaged: no summary of the episode at {error}; see `tsim check`"
        ) from error
    return np.stack(vectors) if vectors else np.zeros((0, index.flat.dimension), dtype=np.float32)


def _clusters(index: ThreadIndex) -> list[tuple[list[int], Vectors]]:
    number = {start: i for i, start in enumerate(index.episodes.starts)}
    return [([number[m] for m in c.members if m in number], vector) for c, vector in index.clusters]
