"""Upkeep of a store: embed and segment it anew, and check it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tsim_core.config import TSIMConfig
from tsim_core.errors import StoreFormatError
from tsim_core.intake import text_digest
from tsim_core.store.base import Store, ThreadRow, TurnRow
from tsim_core.store.columns import Columns
from tsim_core.threads import ThreadIndex
from tsim_core.transfer import going_on
from tsim_core.writer import ThreadWriter, columns_of

if TYPE_CHECKING:
    from tsim_core.memory import EpisodicMemory, Progress


def reindex(memory: EpisodicMemory, progress: Progress | None) -> int:
    """Embed, segment and link all threads anew in one transaction; see `EpisodicMemory.reindex`."""
    config = memory.config
    with memory._guard():
        store = memory._store
        rows = [row for thread in store.threads() for row in store.turns(thread.key)]
        texts = list(dict.fromkeys(row.turn.text for row in rows if row.turn.text.strip()))
        vectors = dict(zip(texts, memory.embed_turns(texts, progress), strict=True)) if texts else {}
        with store.transaction():
            stored = 0
            for thread in store.threads():
                turns = list(store.turns(thread.key))
                fresh = ThreadRow(thread.key, thread.name, 0, thread.epoch + 1, {})
                store.delete_thread(thread.key)
                store.put_thread(fresh)
                renewed = [_renewed(row, config) for row in turns]
                silent = [row for row in renewed if not row.live]
                embedded = {row.position: vectors[row.turn.text] for row in renewed if row.turn.text.strip()}
                store.put_turns(thread.key, silent, columns_of(silent, embedded))
                index = ThreadIndex(fresh, memory.embedder.dimension)
                live = [row for row in renewed if row.live]
                writer = ThreadWriter(store, fresh, index, config, memory.scale, memory.embed)
                writer.append(live, embedded, going_on(progress, stored, len(rows)))
                stored += len(turns)
                row = store.thread(thread.name)
                assert row is not None
                store.put_thread(replace(row, next=thread.next))
            store.set_meta(memory._identity(config))
        return len(rows)


def _renewed(row: TurnRow, config: TSIMConfig) -> TurnRow:
    text = row.turn.text
    return replace(row, tokens=config.estimator(text), digest=text_digest(text))


def check(memory: EpisodicMemory, progress: Progress | None = None) -> list[str]:
    """Look for what is wrong; see `EpisodicMemory.check`."""
    with memory._guard():
        store = memory._store
        problems: list[str] = []
        try:
            with store.reporting():
                problems += store.problems()
                done, total, rows = 0, store.counts()["turns"], store.threads()
        except StoreFormatError as error:  # the list of the threads may be unreadable itself
            return [*problems, str(error)]
        for row in rows:
            name, part = "/".join(row.name), going_on(progress, done, total)
            try:
                with store.reporting():
                    found = _thread_problems(store, row, memory.embedder.dimension, part)
                    if memory._indices.get(row.name) is not None:
                        found += _index_problems(store, memory._index(row))
                    done += store.size(row.key, superseded=True)
            except StoreFormatError as error:
                found = [str(error)]
            problems += [f"thread {name}: {problem}" for problem in found]
        try:
            TSIMConfig.from_dict(json.loads(store.meta()["config"]))
        except (KeyError, ValueError) as error:
            problems.append(f"the stored configuration is not usable: {error}")
        return problems


def _thread_problems(store: Store, row: ThreadRow, dimension: int, progress: Progress | None) -> list[str]:
    problems: list[str] = []
    every = {position: live for position, *_, live in store.outline(row.key)}
    problems += [f"turn {p} lies behind the thread's end at {row.next}" for p in every if p >= row.next]
    derived: set[int] = set()
    for part in store.columns(row.key, superseded=True):
        if len(part.vectors) and part.vectors.shape[1] != dimension:
            return [f"vectors have {part.vectors.shape[1]} dimensions, the embedder has {dimension}"]
        with np.errstate(all="ignore"):  # a damaged vector holds any number
            unit = np.abs(np.linalg.norm(part.vectors, axis=1) - 1) < 1e-3
        bad = part.positions[part.embedded][~unit]
        problems += [f"the vector of turn {p} is not a unit vector" for p in bad.tolist()]
        derived |= set(part.positions.tolist())
        known = part.taken(np.flatnonzero([p in every for p in part.positions.tolist()]))
        problems += _column_problems(list(store.turns(row.key, known.positions.tolist())), known)
        if progress is not None:
            progress(len(derived), len(every))
    problems += [f"turn {p} has no columns" for p in sorted(every.keys() - derived)]
    problems += [f"columns at {p} belong to no turn" for p in sorted(derived - every.keys())]
    segments = store.segments(row.key)
    for before, after in pairwise(segments):
        if before.end > after.start:
            problems.append(f"segments at {before.start} and {after.start} overlap")
    covered = np.zeros(row.next, dtype=bool)
    for segment in segments:
        covered[segment.start : segment.end] = True
    lost = [p for p, live in every.items() if live and p < row.next and not covered[p]]
    problems += [f"turn {position} is in no segment" for position in lost]
    return problems


def _column_problems(turns: Sequence[TurnRow], columns: Columns) -> list[str]:
    """What is wrong with the columns of these turns."""
    problems: list[str] = []
    fresh = columns_of(turns, {})
    terms = [np.split(c.terms, np.cumsum(c.lengths)[:-1]) for c in (columns, fresh)]
    for i, r in enumerate(turns):
        if r.digest != text_digest(r.turn.text) or not np.array_equal(terms[0][i], terms[1][i]):
            problems.append(f"turn {r.position} was analysed from another text")
        if columns.embedded[i] != bool(r.turn.text.strip()):
            state = "is blank and has a vector" if columns.embedded[i] else "has no vector"
            problems.append(f"turn {r.position} {state}")
        was, now = ((c.tokens[i], c.timestamps[i]) for c in (columns, fresh))
        if columns.labels[i] != fresh.labels[i] or not np.array_equal(was, now, equal_nan=True):
            problems.append(f"the columns of turn {r.position} are out of date")
    return problems


def _index_problems(store: Store, index: ThreadIndex) -> list[str]:
    fresh = ThreadIndex(ThreadRow(index.key, index.name, 0, index.epoch, {}), index.flat.dimension)
    row = store.thread(index.name)
    assert row is not None
    fresh.read_on(store, row)
    if not np.array_equal(fresh.positions, index.positions):
        return ["the index in memory holds other turns than the store"]
    if not np.array_equal(fresh.flat.rows, index.flat.rows):
        return ["the index in memory holds other vectors than the store"]
    return []
