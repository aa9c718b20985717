"""Upkeep of a store: embed and segment it anew, and check it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tsim_core.config import TSIMConfig
from tsim_core.intake import text_digest
from tsim_core.lexical import hashed_terms
from tsim_core.store.base import Store, ThreadRow, TurnRow
from tsim_core.threads import ThreadIndex
from tsim_core.writer import ThreadWriter

if TYPE_CHECKING:
    from tsim_core.memory import EpisodicMemory, Progress


def reindex(memory: EpisodicMemory, progress: Progress | None) -> int:
    """Embed, segment and link all threads anew in one transaction; see `EpisodicMemory.reindex`."""
    config = memory.config
    with memory._guard():
        store = memory._store
        rows = [row for thread in store.threads() for row in store.turns(thread.key)]
        texts = list(dict.fromkeys(row.turn.text for row in rows if row.turn.text.strip()))
        vectors = dict(zip(texts, memory.embed(texts, progress), strict=True)) if texts else {}
        with store.transaction():
            for thread in store.threads():
                turns = list(store.turns(thread.key))
                fresh = ThreadRow(thread.key, thread.name, 0, thread.epoch + 1, {})
                store.delete_thread(thread.key)
                store.put_thread(fresh)
                renewed = [_renewed(row, config) for row in turns]
                silent = [row for row in renewed if not row.live]
                embedded = {row.position: vectors[row.turn.text] for row in renewed if row.turn.text.strip()}
                store.put_turns(
                    thread.key, silent, {r.position: embedded[r.position] for r in silent if r.position in embedded}
                )
                index = ThreadIndex(fresh, memory.embedder.dimension)
                live = [row for row in renewed if row.live]
                writer = ThreadWriter(store, fresh, index, config, memory.scale, memory.embed)
                writer.append(live, {r.position: embedded[r.position] for r in live if r.position in embedded})
                row = store.thread(thread.name)
                assert row is not None
                store.put_thread(replace(row, next=thread.next))
            store.set_meta(memory._identity(config))
        return len(rows)


def _renewed(row: TurnRow, config: TSIMConfig) -> TurnRow:
    text = row.turn.text
    return replace(row, tokens=config.estimator(text), digest=text_digest(text), terms=hashed_terms(text))


def check(memory: EpisodicMemory) -> list[str]:
    """Look for what is wrong; see `EpisodicMemory.check`."""
    with memory._guard():
        store = memory._store
        problems = store.problems()
        for row in store.threads():
            name = "/".join(row.name)
            problems += [f"thread {name}: {p}" for p in _thread_problems(store, row, memory.embedder.dimension)]
            index = memory._indices.get(row.name)
            if index is not None:
                problems += [f"thread {name}: {p}" for p in _index_problems(store, memory._index(row))]
        try:
            TSIMConfig.from_dict(json.loads(store.meta()["config"]))
        except (KeyError, ValueError) as error:
            problems.append(f"the stored configuration is not usable: {error}")
        return problems


def _thread_problems(store: Store, row: ThreadRow, dimension: int) -> list[str]:
    problems: list[str] = []
    turns = list(store.turns(row.key))
    positions, vectors = store.vectors(row.key)
    if len(positions) and vectors.shape[1] != dimension:
        return [f"vectors have {vectors.shape[1]} dimensions, the embedder has {dimension}"]
    bad = np.flatnonzero(~(np.abs(np.linalg.norm(vectors, axis=1) - 1) < 1e-3))
    problems += [f"the vector of turn {positions[i]} is not a unit vector" for i in bad]
    expected = [r.position for r in turns if r.turn.text.strip()]
    for position in sorted(set(expected) ^ set(positions)):
        state = "has no vector" if position in expected else "is blank and has a vector"
        problems.append(f"turn {position} {state}")
    for r in turns:
        if r.digest != text_digest(r.turn.text) or not np.array_equal(r.terms, hashed_terms(r.turn.text)):
            problems.append(f"turn {r.position} was analysed from another text")
        if r.position >= row.next:
            problems.append(f"turn {r.position} lies behind the thread's end at {row.next}")
    segments = store.segments(row.key)
    for before, after in pairwise(segments):
        if before.end > after.start:
            problems.append(f"segments at {before.start} and {after.start} overlap")
    covered = np.zeros(row.next, dtype=bool)
    for segment in segments:
        covered[segment.start : segment.end] = True
    lost = [r.position for r in turns if r.live and not covered[r.position]]
    problems += [f"turn {position} is in no segment" for position in lost]
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
