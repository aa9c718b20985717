from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tsim_core.embedding import Vectors, unit_rows
from tsim_core.similarity import Reservoir, Spread, Stack, likeness, likenesses, log_odds, representatives


def rows(*values: tuple[float, ...]) -> Vectors:
    return unit_rows(np.array(values, dtype=np.float32))


def random_rows(seed: int, n: int, d: int = 8) -> Vectors:
    return unit_rows(np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32))


def test_likeness_is_the_mean_of_best_matches_both_ways() -> None:
    # from a: 1 and .6, mean .8; from b: 1
    assert likeness(rows((1, 0), (0.6, 0.8)), rows((1, 0))) == pytest.approx(0.9)


def test_what_is_said_word_for_word_in_both_tells_nothing() -> None:
    noted, question, other = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.6, 0.8, 0.0)
    assert likeness(rows(question, noted), rows(other, noted)) == pytest.approx(0.6)
    assert likenesses(rows(question, noted), [rows(other, noted), rows(noted)]) == pytest.approx([0.6, 0.75])
    assert likeness(rows(noted), rows(noted)) == pytest.approx(1.0), "nothing else is said"


@given(st.lists(st.integers(1, 5), max_size=6), st.integers(1, 4))
def test_likenesses_equal_likeness_one_by_one(sizes: list[int], n: int) -> None:
    a = random_rows(99, n)
    groups = [random_rows(i, size) for i, size in enumerate(sizes)]
    assert likenesses(a, groups) == pytest.approx([likeness(a, g) for g in groups], abs=1e-6)


@given(st.lists(st.integers(1, 5), max_size=6), st.booleans())
def test_pairwise_equals_likeness_one_by_one(sizes: list[int], repeated: bool) -> None:
    groups = [random_rows(i, size) for i, size in enumerate(sizes)]
    if repeated:  # "Noted." in all of them
        groups = [np.concatenate([group, random_rows(99, 1)]) for group in groups]
    alike = Stack.of(groups).pairwise()
    assert alike.shape == (len(groups), len(groups))
    for i, a in enumerate(groups):
        for j, b in enumerate(groups):
            assert i == j or alike[i, j] == pytest.approx(likeness(a, b), abs=1e-6)


@given(st.integers(0, 50), st.integers(2, 9))
def test_representatives_are_head_and_tail(size: int, kept: int) -> None:
    chosen = representatives(size, kept)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(size, kept)
    if size:
        assert (chosen[0], chosen[-1]) == (0, size - 1)


def test_spread_moves_from_the_assumption_to_what_is_seen() -> None:
    spread = Spread(0.0, 1.0, 10)
    values = np.random.default_rng(1).normal(0.5, 0.2, size=5000)
    for value in values:
        spread.add(float(value))
    assert spread.mean == pytest.approx(0.5, abs=0.02)
    assert spread.variance == pytest.approx(0.04, abs=0.005)
    assert spread.count == spread.cap


def test_log_odds_of_equal_variances_is_linear_around_the_middle() -> None:
    same, other = (0.5, 0.02), (0.1, 0.02)
    assert log_odds(0.3, same, other) == pytest.approx(0)
    assert log_odds(0.35, same, other) == pytest.approx(0.4 / 0.02 * 0.05)


@given(
    st.tuples(st.floats(0.2, 0.9), st.floats(0.001, 0.1)),
    st.tuples(st.floats(-0.1, 0.19), st.floats(0.001, 0.1)),
    st.floats(-1, 1),
    st.floats(0, 0.5),
)
def test_more_alike_never_counts_less(
    same: tuple[float, float], other: tuple[float, float], value: float, more: float
) -> None:
    assert log_odds(value, same, other) <= log_odds(value + more, same, other) + 1e-9
    assert abs(log_odds(value, same, other)) <= 6


def test_reservoir_is_bounded_uniform_and_keeps_its_lag() -> None:
    reservoir = Reservoir(20)
    vectors = random_rows(0, 1)
    for number in range(2000):
        reservoir.offer([number], vectors)
    offered, held = reservoir.state()
    numbers = [number for number, _ in held]
    assert offered == 2000
    assert len(set(numbers)) == 20
    assert 600 < np.mean(numbers) < 1400
    assert len(reservoir.compare(vectors, lag=1000)) == sum(number <= 1000 for number in numbers)


def test_reservoir_restores_what_is_still_there() -> None:
    reservoir = Reservoir(4)
    for number in range(4):
        reservoir.offer([2 * number, 2 * number + 1], random_rows(number, 2))
    fetched = {2 * n + i: random_rows(n, 2)[i] for n in range(4) for i in (0, 1)}
    twin = Reservoir(4)
    twin.restore(reservoir.state(), fetched)
    probe = random_rows(50, 3)
    assert twin.compare(probe) == reservoir.compare(probe)
    assert sorted(Reservoir.positions(reservoir.state())) == list(range(8))
    del fetched[0], fetched[2], fetched[3]
    twin.restore(reservoir.state(), fetched)
    assert len(twin.compare(probe)) == 3
