"""From a query to episodes: gather the evidence, rank, and hand over what fits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tsim_core.config import TSIMConfig
from tsim_core.embedding import Vectors
from tsim_core.errors import InputError
from tsim_core.ranking import PublishedRanking, RankedEpisode, rank_published
from tsim_core.store.base import SegmentRow, Store
from tsim_core.threads import ThreadIndex
from tsim_core.types import Episode, Recall, Segment, Turn


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
    """

    after: datetime | None = None
    before: datetime | None = None
    where: Mapping[str, Any] | None = None

    def __bool__(self) -> bool:
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
    )


def whole_episodes(store: Store, index: ThreadIndex) -> list[Episode]:
    """All episodes of a thread, in order of their first turn."""
    turns: Sequence[Turn] = [row.turn for row in store.turns(index.key, index.positions.tolist())]
    members: list[list[Turn]] = [[] for _ in index.episodes.starts]
    for turn, number in zip(turns, index.episodes.of_row.tolist(), strict=True):
        members[number].append(turn)
    return [
        Episode(
            episode_id(index.name, start),
            tuple(members[number]),
            tuple(public_segment(index.name, s) for s in index.episodes.segments[number]),
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
    # Interim, until fusion and assembly are wired in.
    ranked: list[tuple[float, ThreadIndex, RankedEpisode]] = []
    for index in indices:
        allowed = _allowed(store, index, filter_)
        if isinstance(config.ranking, PublishedRanking):
            views = index.episodes.of_row, _summaries(index), _clusters(index)
            found = rank_published(vector, index.flat, *views, config.ranking, allowed)
        else:
            best: dict[int, float] = {}
            for row, score in zip(*index.flat.search(vector, 100, allowed), strict=True):
                number = int(index.episodes.of_row[row])
                best[number] = max(best.get(number, -1.0), float(score))
            found = [RankedEpisode(n, {"raw": score}) for n, score in best.items()]
        ranked += [(r.score, index, r) for r in found]
    ranked.sort(key=lambda r: -r[0])
    budget = limit("max_tokens", max_tokens, config.assembly.max_tokens)
    episodes: list[Episode] = []
    texts: list[str] = []
    used = 0.0
    for score, index, r in ranked[:most]:
        episode = whole_episodes(store, index)[r.episode]
        allowed = _allowed(store, index, filter_)
        if allowed is not None:
            ok = {row.turn.id for row in store.turns(index.key, index.positions[allowed].tolist())}
            episode = replace(episode, turns=tuple(t for t in episode.turns if t.id in ok))
        text = "\n".join(f"{t.role}: {t.text}" for t in episode.turns)
        if budget is not None and used + config.estimator(text) > budget:
            continue
        used += config.estimator(text)
        texts.append(text)
        episodes.append(replace(episode, score=score, evidence=r.evidence))
    whole = "\n\n".join(texts)
    return Recall(query, tuple(episodes), whole, round(config.estimator(whole)))


def _allowed(store: Store, index: ThreadIndex, filter_: Filter) -> NDArray[np.bool_] | None:
    """Which rows of a thread pass the filter; None when all do."""
    if not filter_:
        return None
    rows = store.turns(index.key, index.positions.tolist())
    return np.fromiter((filter_.matches(row.turn) for row in rows), dtype=np.bool_, count=len(index))


def _summaries(index: ThreadIndex) -> Vectors:
    vectors = [index.summaries[start] for start in index.episodes.starts]
    return np.stack(vectors) if vectors else np.zeros((0, index.flat.dimension), dtype=np.float32)


def _clusters(index: ThreadIndex) -> list[tuple[list[int], Vectors]]:
    number = {start: i for i, start in enumerate(index.episodes.starts)}
    return [([number[m] for m in c.members if m in number], vector) for c, vector in index.clusters]
