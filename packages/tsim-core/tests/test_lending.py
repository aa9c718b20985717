"""What is around an episode that stands out: what it lends, and what is handed over with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tsim_core import lending
from tsim_core.embedding import Vectors
from tsim_core.fusion import TurnTable
from tsim_core.labels import Labels
from tsim_core.lending import DOUBT, EVEN, LATER, REACH, SHORT, WRONG, Around, Runs, look_around

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


def around(totals: Vectors, turns: TurnTable, rows: Vectors, share: float = SHARE) -> Around:
    return look_around(totals, turns, rows.__getitem__, share, np.zeros(len(totals), dtype=np.bool_))


def lent(totals: Vectors, turns: TurnTable, rows: Vectors, share: float = SHARE) -> Vectors:
    return around(totals, turns, rows, share).lent


def test_the_fainter_the_cut_the_more_is_lent_across_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "RIVAL", 0)
    given = lent(TOTALS, table(cuts={10: 0.4, 11: 0.8}), vectors({9: 0.1, 11: 0.1}))
    others = [0.05 if row % 2 else 0.1 for row in np.unique(np.linspace(0, 29, 24).astype(int)) if not 2 <= row <= 18]
    likeness = (0.1 - np.mean(others)) / np.std(others) - EVEN
    for row, cut, place in ((9, 0.4, -LATER), (11, 0.8, LATER)):
        prior = WRONG * (1 - cut)
        odds = min(0, math.log(prior / (1 - prior)) + likeness + place + SHORT)
        assert given[row] == pytest.approx(8.0 * (SHARE + DOUBT * odds), rel=1e-3)
    clearer = lent(TOTALS, table(cuts={10: 0.6, 11: 0.99}), vectors({9: 0.1, 11: 0.1}))
    assert given[9] > clearer[9]
    assert given[11] > clearer[11] > clearer[12]
    assert given[10] == 0, "nothing to itself"
    assert not given[10 + REACH + 1 :].any(), "too far away"


def test_what_is_alike_gets_more_if_it_is_near() -> None:
    given = lent(TOTALS, table(), vectors({8: 0.9, 24: 0.9}))
    assert given[8] > given[6] + 2
    assert given[24] == 0, "alike, but far away"


def test_runs_that_alternate_are_looked_at_beyond_the_next() -> None:
    """Rows 0 to 9 and 20 to 29 are a braid of two topics, linked; 12 is a run that linking missed."""
    braid = [0, 1] * 5 + list(range(10, 20)) + [20, 21] * 5
    totals = np.zeros(len(set(braid)), dtype=np.float32)
    totals[2] = 8.0  # row 10 is the third episode
    straight = lent(TOTALS, table(), vectors())
    braided = lent(totals, table(episodes=braid), vectors())
    assert braided[4] > straight[12], "row 12 in both"
    assert Runs(table(episodes=braid)).braided == pytest.approx(16 / 50)
    assert Runs(table()).braided == 0


def test_a_lender_stays_ahead() -> None:
    given = lent(TOTALS, table(cuts={10: 0.0}), vectors({9: 0.99}), 1.0)
    assert 7 < given[9] < 8.0


def test_what_comes_back_lends_around_each_of_its_runs() -> None:
    episodes = list(range(COUNT))
    episodes[20] = 10
    given = lent(TOTALS[:-1], table(cuts=dict.fromkeys((10, 11, 20, 21), 0.5), episodes=episodes),
                 vectors())  # fmt: skip
    numbers = np.unique(episodes, return_inverse=True)[1]
    assert (given[numbers[[11, 19, 21]]] > 4).all()
    assert 0 < given[numbers[9]] < given[numbers[11]], "what comes before the episode began refers back to nothing"


def test_nothing_is_lent_to_another_thread() -> None:
    rows = vectors({9: 0.9, 11: 0.9})
    given = lent(TOTALS, table([0] * 11 + [1] * 19), rows)
    assert given[9] > 0
    assert not given[11:].any()


def test_blank_turns_are_like_nothing_and_tiny_threads_tell_nothing() -> None:
    rows = vectors({9: 0.9})
    blank = rows.copy()
    blank[10] = 0
    assert lent(TOTALS, table(), blank)[9] < lent(TOTALS, table(), rows)[9]
    turns = TurnTable(np.arange(2), np.ones(2), Labels.of(["user"] * 2), np.full(2, np.nan))
    given = lent(np.array([0, 8], dtype=np.float32), turns, rows[9:11])
    unknown = WRONG * 0.5
    odds = math.log(unknown / (1 - unknown)) - LATER + SHORT
    excess = 8.0 - 4.0  # above the median of the two
    assert given[0] == pytest.approx(excess * (SHARE + DOUBT * odds), rel=1e-3)
    assert not lent(TOTALS, table(), rows, 0.0).any()


def test_a_table_without_some_rows_keeps_the_clearest_cut_between_the_others() -> None:
    turns = table(cuts={3: 0.2, 4: 0.7, 5: 0.1, 6: 0.3})
    allowed = np.zeros(COUNT, dtype=np.bool_)
    allowed[[2, 5, 6]] = True
    assert turns.restricted(allowed)[0].cuts.tolist() == [0.99, 0.7, 0.3]


def test_a_pause_makes_it_less_likely_that_the_next_run_belongs() -> None:
    times = np.arange(COUNT) * 60.0
    times[11:] += 24 * 3600  # the next day
    given = lent(TOTALS, table(cuts={10: 0.5, 11: 0.5}, times=times), vectors({9: 0.1, 11: 0.1}))
    undated = lent(TOTALS, table(cuts={10: 0.5, 11: 0.5}), vectors({9: 0.1, 11: 0.1}))
    assert given[11] < undated[11] - 2
    assert given[9] == pytest.approx(undated[9], abs=0.2)


def test_what_is_like_another_run_around_belongs_to_that_one() -> None:
    rows = vectors({12: 0.5})
    alone = lent(TOTALS, table(), rows)
    rows[13] = rows[12]
    rows[13, 14], rows[13, 13] = rows[12, 13] * 0.6, rows[12, 13] * 0.8
    assert lent(TOTALS, table(), rows)[12] < alone[12] - 0.5


def test_short_runs_get_more_than_long_ones() -> None:
    episodes = [*range(12), *[12] * 5, *range(13, 26)]
    rows = vectors()
    short, long = lent(TOTALS, table(), rows), lent(TOTALS[: len(set(episodes))], table(episodes=episodes), rows)
    assert long[12] < short[12]


def test_a_run_that_may_belong_is_handed_over_with_the_episode() -> None:
    faint = {10: 0.3, 11: 0.3, 21: 0.3}
    found = around(TOTALS, table(cuts=faint), vectors({9: 0.3, 11: 0.3, 21: 0.9}))
    assert found.joined[11] == 10
    assert set(found.joined) <= set(range(10 - REACH, 10 + REACH + 1)) - {10}
    assert around(TOTALS, table(cuts=faint), vectors(), 0.0).joined == {}
    cut_off = around(TOTALS, table(), vectors({11: -0.5}))
    assert 11 not in cut_off.joined


def test_an_episode_of_several_runs_is_handed_over_with_no_other() -> None:
    episodes = list(range(COUNT))
    episodes[25] = 11
    found = around(TOTALS[:-1], table(cuts={11: 0.3}, episodes=episodes), vectors({11: 0.3}))
    assert found.lent[11] > 4
    assert 11 not in found.joined


def test_what_joins_the_second_best_comes_with_the_best_if_that_one_does() -> None:
    totals = TOTALS.copy()
    totals[11] = 7.0
    found = around(totals, table(cuts={11: 0.2, 12: 0.2}), vectors({11: 0.5, 12: 0.0}))
    assert found.joined[11] == 10
    assert found.joined[12] == 10


def test_in_a_short_thread_everything_stays_what_it_is() -> None:
    turns = TurnTable(np.arange(20), np.ones(20), Labels.of(["user"] * 20), np.full(20, np.nan))
    assert around(TOTALS[:20], turns, vectors()[:20]).joined == {}
