"""What an episode that stands out lends to those around it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tsim_core.fusion import TurnTable
from tsim_core.labels import Labels
from tsim_core.lending import DOUBT, EVEN, REACH, WRONG, Runs, lent

COUNT = 30
TOTALS = np.zeros(COUNT, dtype=np.float32)
TOTALS[10] = 8.0
SHARE = 0.95


def table(
    threads: list[int] | None = None,
    cuts: dict[int, float] | None = None,
    episodes: list[int] | None = None,
    times: np.ndarray | None = None,
) -> TurnTable:
    """Episodes of one turn each, cut off clearly, unless said otherwise."""
    numbers = np.unique(range(COUNT) if episodes is None else episodes, return_inverse=True)[1]
    clear = np.full(COUNT, 0.99)
    for row, cut in (cuts or {}).items():
        clear[row] = cut
    return TurnTable(
        numbers,
        np.ones(COUNT),
        Labels.of(["user"] * COUNT),
        np.full(COUNT, np.nan) if times is None else times,
        None if threads is None else np.array(threads),
        clear,
    )


def vectors(like: dict[int, float] | None = None) -> np.ndarray:
    """Row 10 points along the first axis; the rows of ``like`` have that cosine with it, the others a small one."""
    rows = np.zeros((COUNT, COUNT + 1), dtype=np.float32)
    for row in range(COUNT):
        cosine = 1.0 if row == 10 else (like or {}).get(row, 0.05 if row % 2 else 0.1)
        rows[row, 0] = cosine
        rows[row, row + 1] = np.sqrt(1 - cosine**2)
    return rows


def test_the_fainter_the_cut_the_more_is_lent_across_it() -> None:
    given = lent(TOTALS, table(cuts={10: 0.4, 11: 0.8}), vectors({9: 0.1, 11: 0.1}).__getitem__, SHARE)
    others = [0.05 if row % 2 else 0.1 for row in np.unique(np.linspace(0, 29, 24).astype(int)) if not 6 <= row <= 14]
    likeness = (0.1 - np.mean(others)) / np.std(others) - EVEN
    for row, cut in ((9, 0.4), (11, 0.8)):
        prior = WRONG * (1 - cut)
        odds = min(0, math.log(prior / (1 - prior)) + likeness)
        assert given[row] == pytest.approx(8.0 * (SHARE + DOUBT * odds), rel=1e-3)
    assert given[9] > given[11] > given[12]
    assert given[10] == 0, "nothing to itself"
    assert not given[10 + REACH + 1 :].any(), "too far away"


def test_what_is_alike_gets_more_if_it_is_near() -> None:
    given = lent(TOTALS, table(), vectors({8: 0.9, 24: 0.9}).__getitem__, SHARE)
    assert given[8] > given[12] + 2
    assert given[24] == 0, "alike, but far away"


def test_runs_that_alternate_are_looked_at_beyond_the_next() -> None:
    """Rows 0 to 9 and 20 to 29 are a braid of two topics, linked; 12 is a run that linking missed."""
    braid = [0, 1] * 5 + list(range(10, 20)) + [20, 21] * 5
    totals = np.zeros(len(set(braid)), dtype=np.float32)
    totals[2] = 8.0  # row 10 is the third episode
    straight = lent(TOTALS, table(), vectors().__getitem__, SHARE)
    braided = lent(totals, table(episodes=braid), vectors().__getitem__, SHARE)
    assert braided[4] > straight[12], "row 12 in both"
    assert Runs(table(episodes=braid)).braided == pytest.approx(16 / 50)
    assert Runs(table()).braided == 0


def test_a_lender_stays_ahead() -> None:
    given = lent(TOTALS, table(cuts={10: 0.0}), vectors({9: 0.99}).__getitem__, 1.0)
    assert 7 < given[9] < 8.0


def test_what_comes_back_lends_around_each_of_its_runs() -> None:
    episodes = list(range(COUNT))
    episodes[20] = 10
    given = lent(TOTALS[:-1], table(cuts=dict.fromkeys((10, 11, 20, 21), 0.5), episodes=episodes),
                 vectors().__getitem__, SHARE)  # fmt: skip
    numbers = np.unique(episodes, return_inverse=True)[1]
    assert (given[numbers[[9, 11, 19, 21]]] > 4).all()


def test_nothing_is_lent_to_another_thread() -> None:
    rows = vectors({9: 0.9, 11: 0.9})
    given = lent(TOTALS, table([0] * 11 + [1] * 19), rows.__getitem__, SHARE)
    assert given[9] > 0
    assert not given[11:].any()


def test_blank_turns_are_like_nothing_and_tiny_threads_tell_nothing() -> None:
    rows = vectors({9: 0.9})
    blank = rows.copy()
    blank[10] = 0
    assert lent(TOTALS, table(), blank.__getitem__, SHARE)[9] < lent(TOTALS, table(), rows.__getitem__, SHARE)[9]
    turns = TurnTable(np.arange(2), np.ones(2), Labels.of(["user"] * 2), np.full(2, np.nan))
    given = lent(np.array([0, 8], dtype=np.float32), turns, rows[9:11].__getitem__, SHARE)
    unknown = WRONG * 0.5
    excess = 8.0 - 4.0  # above the median of the two
    assert given[0] == pytest.approx(excess * (SHARE + DOUBT * math.log(unknown / (1 - unknown))), rel=1e-3)
    assert not lent(TOTALS, table(), rows.__getitem__, 0.0).any()


def test_a_table_without_some_rows_keeps_the_clearest_cut_between_the_others() -> None:
    turns = table(cuts={3: 0.2, 4: 0.7, 5: 0.1, 6: 0.3})
    allowed = np.zeros(COUNT, dtype=np.bool_)
    allowed[[2, 5, 6]] = True
    assert turns.restricted(allowed)[0].cuts.tolist() == [0.99, 0.7, 0.3]


def test_a_pause_makes_it_less_likely_that_the_next_run_belongs() -> None:
    times = np.arange(COUNT) * 60.0
    times[11:] += 24 * 3600  # the next day
    given = lent(TOTALS, table(cuts={10: 0.5, 11: 0.5}, times=times), vectors({9: 0.1, 11: 0.1}).__getitem__, SHARE)
    undated = lent(TOTALS, table(cuts={10: 0.5, 11: 0.5}), vectors({9: 0.1, 11: 0.1}).__getitem__, SHARE)
    assert given[11] < given[9] - 2
    assert undated[11] == pytest.approx(undated[9])
