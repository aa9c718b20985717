"""What an episode that stands out lends to those around it."""

from __future__ import annotations

import numpy as np
import pytest
from tsim_core.fusion import TurnTable
from tsim_core.lending import FADE, REACH, lent

COUNT = 30
TOTALS = np.zeros(COUNT, dtype=np.float32)
TOTALS[10] = 8.0


def table(threads: list[int] | None = None) -> TurnTable:
    """Episodes of one turn each."""
    return TurnTable(
        np.arange(COUNT),
        np.ones(COUNT),
        ["user"] * COUNT,
        [None] * COUNT,
        np.full(COUNT, np.nan),
        None if threads is None else np.array(threads),
    )


def vectors(like: dict[int, float]) -> np.ndarray:
    """Row 10 points along the first axis; the rows of ``like`` have that cosine with it, the others a small one."""
    rows = np.zeros((COUNT, COUNT + 1), dtype=np.float32)
    for row in range(COUNT):
        cosine = 1.0 if row == 10 else like.get(row, 0.05 if row % 2 else 0.1)
        rows[row, 0] = cosine
        rows[row, row + 1] = np.sqrt(1 - cosine**2)
    return rows


def test_what_is_near_gets_a_share_that_fades() -> None:
    given = lent(TOTALS, table(), vectors({}).__getitem__, 0.5, 0.0)
    assert given[9:13].tolist() == pytest.approx([4.0, 0.0, 4.0, 4.0 * FADE])
    assert given[10 + REACH] > 0
    assert given[10 + REACH + 1] == 0


def test_what_is_alike_and_near_gets_a_share_and_nothing_else_does() -> None:
    rows = vectors({8: 0.9, 12: 0.9, 24: 0.9})
    given = lent(TOTALS, table(), rows.__getitem__, 0.0, 0.5)
    assert given[8] == given[12] == pytest.approx(0.5 * 8.0, rel=0.02)
    assert given[24] == 0, "alike, but far away"
    assert given[9] < 0.5, "near, but not alike"
    assert given[10] == 0


def test_a_lender_stays_ahead() -> None:
    given = lent(TOTALS, table(), vectors({9: 0.99}).__getitem__, 1.0, 1.0)
    assert given.max() < 8.0


def test_what_comes_back_is_near_every_one_of_its_runs() -> None:
    episodes = np.arange(COUNT)
    episodes[20] = 10
    numbers = np.unique(episodes, return_inverse=True)[1]
    turns = TurnTable(numbers, np.ones(COUNT), ["user"] * COUNT, [None] * COUNT, np.full(COUNT, np.nan))
    given = lent(TOTALS[:-1], turns, vectors({}).__getitem__, 0.5, 0.0)
    assert given[numbers[[9, 11, 19, 21]]].tolist() == pytest.approx([4.0] * 4)


def test_nothing_is_lent_to_another_thread() -> None:
    rows = vectors({9: 0.9, 11: 0.9})
    given = lent(TOTALS, table([0] * 11 + [1] * 19), rows.__getitem__, 0.5, 0.5)
    assert given[9] > 0
    assert not given[11:].any()


def test_blank_turns_and_tiny_threads_are_like_nothing() -> None:
    rows = vectors({9: 0.9})
    rows[10] = 0
    assert not lent(TOTALS, table(), rows.__getitem__, 0.0, 1.0)[:9].any()
    turns = TurnTable(np.arange(2), np.ones(2), ["user"] * 2, [None] * 2, np.full(2, np.nan))
    assert not lent(TOTALS[9:11], turns, vectors({}).__getitem__, 0.0, 1.0).any()
