import pytest
from hypothesis import given
from hypothesis import strategies as st
from scale_qa.statistics import compare_paired, wilson
from scipy.stats import binomtest


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(case):
    hits, total = case
    expected = binomtest(hits, total).proportion_ci(method="wilson")
    assert wilson(hits, total) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_of_nothing_says_nothing():
    assert wilson(0, 0) == (0.0, 1.0)


def test_mcnemar_is_exact():
    # Five questions that only the first got: 2 * (1/2)^5.
    paired = compare_paired([True] * 5 + [True, False], [False] * 5 + [True, False])
    assert paired.p_value == pytest.approx(0.0625)
    assert (paired.only_first, paired.only_second) == (5, 0)
    assert paired.difference == pytest.approx(5 / 7)


def test_equal_systems_do_not_differ():
    paired = compare_paired([True, False, True], [True, False, True])
    assert (paired.difference, paired.interval, paired.p_value) == (0.0, (0.0, 0.0), 1.0)


def test_the_bootstrap_interval_is_near_the_normal_one():
    first = [True] * 700 + [False] * 300
    second = [True] * 600 + [False] * 100 + [True] * 50 + [False] * 250
    paired = compare_paired(first, second)
    # Variance of the mean of +1 (100), -1 (50), 0 (850).
    half = 1.96 * ((150 / 1000 - 0.05**2) / 1000) ** 0.5
    assert paired.interval == pytest.approx((0.05 - half, 0.05 + half), abs=0.003)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_swapping_the_systems_mirrors_the_comparison(pairs):
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    there, back = compare_paired(first, second), compare_paired(second, first)
    assert there.difference == -back.difference
    assert there.p_value == pytest.approx(back.p_value)
    assert there.interval[0] <= there.difference <= there.interval[1]


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="2 and 1 outcomes"):
        compare_paired([True, False], [True])
