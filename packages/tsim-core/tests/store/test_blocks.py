"""Blocks hold what a plain dictionary of turns would, whatever is done to them."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tsim_core.store import blocks
from tsim_core.store.blocks import Blocks
from tsim_core.store.columns import Columns
from tsim_core.types import Turn

Row = tuple[str, float, float, list[int], list[float]]
TEXTS = ["red cat", "", "cat cat dog", "Ann: hello", "...", "blue"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "FULL", 4)


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    connection = new_db()
    yield connection
    connection.close()


def new_db() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(blocks.SCHEMA)
    return connection


def columns(said: dict[int, int]) -> Columns:
    """Turns by position: the text of that number, or a blank one; each has its own vector and speaker."""
    turns = {p: (Turn(f"role{n % 3}", TEXTS[n % 6]), float(n)) for p, n in sorted(said.items())}
    vectors = {p: np.array([p, n], dtype=np.float32) for p, n in said.items() if TEXTS[n % 6]}
    return Columns.of(turns, vectors)


def rows(parts: list[Columns]) -> dict[int, Row]:
    """All that columns say, by position."""
    found: dict[int, Row] = {}
    for part in parts:
        terms = np.split(part.terms, np.cumsum(part.lengths)[:-1])
        matrix = part.matrix(2)
        for i, position in enumerate(part.positions.tolist()):
            assert position not in found, "once only"
            assert part.embedded[i] == matrix[i].any()
            assert math.isnan(part.timestamps[i])
            found[position] = (part.labels[i], float(part.tokens[i]), 0.0, terms[i].tolist(), matrix[i].tolist())
    return found


numbers = st.dictionaries(st.integers(0, 30), st.integers(1, 11), min_size=1, max_size=12)
some = st.lists(st.integers(0, 40), unique=True, max_size=8)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.integers(1, 11), min_size=1, max_size=9)),
        st.tuples(st.just("put"), numbers),
        st.tuples(st.just("take"), some),
        st.tuples(st.just("move"), some),
    ),
    max_size=12,
)


@given(steps)
def test_blocks_hold_what_a_dictionary_would(todo: list[tuple[str, object]]) -> None:
    db = new_db()
    stored = Blocks(db)
    stored.put(2, columns({0: 5}))  # another thread, which stays as it is
    expected: dict[int, int] = {}
    end = 0
    for what, arguments in todo:
        if what == "append":
            new = {end + i: n for i, n in enumerate(arguments)}  # type: ignore[call-overload]
            stored.put(1, columns(new))
            expected |= new
        elif what == "put":
            stored.put(1, columns(arguments))  # type: ignore[arg-type]
            expected |= arguments  # type: ignore[operator]
        elif what == "take":
            taken = rows(stored.take(1, arguments))  # type: ignore[arg-type]
            assert sorted(taken) == sorted(p for p in arguments if p in expected)  # type: ignore[attr-defined]
            expected = {p: n for p, n in expected.items() if p not in arguments}  # type: ignore[operator]
        else:
            moves = {old: end + i for i, old in enumerate(arguments)}  # type: ignore[arg-type]
            before = rows(list(stored.read(1)))
            stored.move(1, moves)
            after = rows(list(stored.read(1)))
            assert after == {moves.get(p, p): row for p, row in before.items()}
            back = {new: old for old, new in moves.items() if old in expected}
            stored.move(1, back)  # the vectors of `expected` say where they were first
        end = max([end, *(p + 1 for p in expected)])
        assert rows(list(stored.read(1))) == rows([columns(expected)])
        bounds = db.execute("SELECT key & 4294967295, last, size FROM blocks WHERE key >> 32 = 1").fetchall()
        assert all(first <= last and size <= 4 for first, last, size in bounds)
        assert all(before[1] < after[0] for before, after in pairwise(bounds)), "blocks do not overlap"
    start = end // 2
    assert rows(list(stored.read(1, start))) == rows([columns({p: n for p, n in expected.items() if p >= start})])
    assert rows(list(stored.read(2))) == rows([columns({0: 5})])
    db.close()


@given(numbers, some)
def test_vectors_are_found_by_key(said: dict[int, int], wanted: list[int]) -> None:
    db = new_db()
    stored = Blocks(db)
    for position, number in sorted(said.items()):
        stored.put(3, columns({position: number}))
    found = stored.vectors([3 << 32 | position for position in [*wanted, *said]] + [4 << 32, 1])
    assert {key & 0xFFFFFFFF: vector.tolist() for key, vector in found.items()} == {
        p: [p, n] for p, n in said.items() if TEXTS[n % 6]
    }
    db.close()


def test_turns_added_one_by_one_end_in_full_blocks(db: sqlite3.Connection) -> None:
    stored = Blocks(db)
    for position in range(15):
        stored.put(1, columns({position: position + 1}))
    sizes = [size for (size,) in db.execute("SELECT size FROM blocks ORDER BY key")]
    assert sizes == [4, 4, 4, 1, 1, 1]


def test_who_spoke_can_change_and_leaves_no_trace(db: sqlite3.Connection) -> None:
    stored = Blocks(db)
    stored.put(1, columns({0: 1, 1: 2, 2: 3, 5: 4}))
    stored.relabel(1, {1: "Ann", 9: "nobody"})
    (block,) = stored.read(1)
    assert [block.labels[i] for i in range(4)] == ["role1", "Ann", "role0", "role1"]
    stored.take(1, [1])
    assert [names for (names,) in db.execute("SELECT names FROM blocks")] == ['["role1", "role0"]']
    assert stored.vectors([1 << 32 | 2])[1 << 32 | 2].tolist() == [2, 3]
