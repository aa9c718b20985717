import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scale_qa.systems.fusion import maximal_marginal, reciprocal_ranks
from scale_qa.systems.spans import single_turns, span_max, span_sum, windows, with_neighbours

sizes = st.lists(st.floats(0, 200), max_size=40)


@given(sizes, st.floats(1, 300))
def test_windows_tile_the_thread_and_keep_their_limit(tokens, limit):
    spans = windows(limit)(tokens)
    assert [i for span in spans for i in span] == list(range(len(tokens)))
    for span in spans:
        assert len(span) == 1 or sum(tokens[i] for i in span) <= limit + 1e-6


@given(sizes)
def test_neighbours_reach_one_turn_each_side(tokens):
    spans = with_neighbours(1)(tokens)
    assert len(spans) == len(single_turns(tokens)) == len(tokens)
    for i, span in enumerate(spans):
        assert set(span) == {j for j in (i - 1, i, i + 1) if 0 <= j < len(tokens)}


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=8))
def test_span_reductions_equal_the_plain_ones(spans):
    rows = np.random.default_rng(3).normal(size=(10, 4)).astype(np.float32)
    assert span_max(rows[:, 0], spans) == pytest.approx([max(rows[i, 0] for i in span) for span in spans])
    assert np.allclose(span_sum(rows, spans), [rows[list(span)].sum(axis=0) for span in spans], atol=1e-5)


def test_rank_fusion_adds_reciprocal_ranks():
    fused = reciprocal_ranks([[4, 7], [7, 5]])
    assert [item for item, _ in fused] == [7, 4, 5]
    assert fused[0][1] == pytest.approx(1 / 62 + 1 / 61)


def test_mmr_prefers_what_is_new():
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert maximal_marginal([0.9, 0.89, 0.5], vectors, 0.5) == [0, 2, 1]
    assert maximal_marginal([0.9, 0.89, 0.5], vectors, 1.0) == [0, 1, 2]
