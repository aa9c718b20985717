from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tsim_core.index.lexical import LexicalIndex, Matches

Turns = list[list[int]]
turns_strategy = st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=12)
query_strategy = st.lists(st.integers(0, 11), min_size=1, max_size=5)


def array(terms: list[int]) -> np.ndarray:
    return np.array(terms, dtype=np.uint32)


def add(index: LexicalIndex, turns: Turns) -> None:
    index.add(array([term for turn in turns for term in turn]), np.array([len(turn) for turn in turns], dtype=np.int64))


def index_of(turns: Turns) -> LexicalIndex:
    index = LexicalIndex()
    add(index, turns)
    return index


def reference(units: Turns, query: list[int], k1: float = 1.2, b: float = 0.75, power: float = 1.0) -> list[float]:
    """BM25 as in the books."""
    mean = sum(map(len, units)) / len(units)
    scores = []
    for unit in units:
        counts, score = Counter(unit), 0.0
        for term in set(query):
            frequency = sum(term in other for other in units)
            idf = math.log(1 + (len(units) - frequency + 0.5) / (frequency + 0.5)) ** power
            if counts[term]:
                score += idf * counts[term] * (k1 + 1) / (counts[term] + k1 * (1 - b + b * len(unit) / mean))
        scores.append(score)
    return scores


@given(turns_strategy, query_strategy, st.sampled_from([1.0, 2.0]))
def test_scores_are_bm25(turns: Turns, query: list[int], power: float) -> None:
    scores = index_of(turns).matches(array(query)).bm25(idf_power=power)
    assert scores.dtype == np.float32
    assert scores.tolist() == pytest.approx(reference(turns, query, power=power), rel=1e-5)


@given(turns_strategy, query_strategy, st.data())
def test_episodes_score_as_if_their_turns_were_one_text(turns: Turns, query: list[int], data: st.DataObject) -> None:
    units = [data.draw(st.integers(0, 3)) for _ in turns]
    together = [[term for turn, unit in zip(turns, units, strict=True) if unit == u for term in turn] for u in range(4)]
    matches = index_of(turns).matches(array(query)).by_unit(np.array(units), 4)
    if any(together):
        assert matches.bm25().tolist() == pytest.approx(reference(together, query), rel=1e-5)


@given(turns_strategy, query_strategy, st.integers(0, 12))
def test_adding_step_by_step_is_adding_at_once(turns: Turns, query: list[int], at: int) -> None:
    index = index_of(turns[:at])
    add(index, turns[at:])
    assert len(index) == len(turns)
    assert np.array_equal(index.matches(array(query)).bm25(), index_of(turns).matches(array(query)).bm25())


def test_the_tail_is_merged_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsim_core.index.lexical._LEAST_TAIL", 3)
    rng = np.random.default_rng(5)
    turns = [rng.integers(0, 9, rng.integers(0, 6)).tolist() for _ in range(60)]
    index = LexicalIndex()
    for turn in turns:
        add(index, [turn])
    assert index.matches(array([1, 4])).bm25().tolist() == pytest.approx(reference(turns, [1, 4]), rel=1e-5)


@given(turns_strategy, turns_strategy, query_strategy)
def test_threads_joined_are_one_thread(first: Turns, second: Turns, query: list[int]) -> None:
    joined = Matches.joined([index_of(first).matches(array(query)), index_of(second).matches(array(query))])
    assert np.array_equal(joined.bm25(), index_of(first + second).matches(array(query)).bm25())


@given(turns_strategy, query_strategy, st.data())
def test_what_is_not_allowed_might_as_well_not_be_there(turns: Turns, query: list[int], data: st.DataObject) -> None:
    allowed = np.array([data.draw(st.booleans()) for _ in turns])
    rest = [turn for turn, ok in zip(turns, allowed, strict=True) if ok]
    restricted = index_of(turns).matches(array(query)).restricted(allowed)
    assert restricted.bm25().tolist() == (
        pytest.approx(reference(rest, query), rel=1e-5) if any(rest) else [0] * len(rest)
    )


def test_without_drops_terms() -> None:
    matches = index_of([[1, 2], [2, 3]]).matches(array([1, 2, 3]))
    assert matches.without(array([2, 9])).terms.tolist() == [1, 3]
    assert np.array_equal(matches.without(array([2])).bm25(), index_of([[1, 2], [2, 3]]).matches(array([1, 3])).bm25())


def test_nothing_matches_in_an_empty_index() -> None:
    assert LexicalIndex().matches(array([1])).bm25().shape == (0,)


def test_a_common_word_weighs_less_with_a_power() -> None:
    turns = [[1, 2], [1, 3], [1, 4], [1, 5]]
    matches = index_of(turns).matches(array([1, 2]))
    plain, squared = matches.bm25(), matches.bm25(idf_power=2)
    assert squared[1] / squared[0] < plain[1] / plain[0]
