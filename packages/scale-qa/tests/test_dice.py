from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scale_qa.dice import Dice


def test_the_stream_is_pinned_so_that_no_python_version_changes_it():
    dice = Dice(7, "pin")
    assert [dice.below(1000) for _ in range(8)] == [904, 524, 718, 876, 945, 545, 58, 303]
    assert Dice(7, "pin").shuffled(range(10)) == [5, 9, 1, 7, 0, 3, 2, 8, 6, 4]


def test_parts_of_a_seed_do_not_run_together():
    assert Dice("ab", "c").below(2**60) != Dice("a", "bc").below(2**60)


@given(st.integers(1, 50), st.integers())
def test_draws_stay_in_range(limit, seed):
    dice = Dice(seed)
    assert all(0 <= dice.below(limit) < limit for _ in range(20))


@given(st.lists(st.integers(), max_size=30), st.integers())
def test_a_shuffle_keeps_every_item(items, seed):
    shuffled = Dice(seed).shuffled(items)
    assert Counter(shuffled) == Counter(items)


def test_draws_are_even():
    dice = Dice(1, "even")
    counts = Counter(dice.below(5) for _ in range(10_000))
    assert all(1850 < counts[i] < 2150 for i in range(5))


def test_there_is_nothing_below_zero():
    with pytest.raises(ValueError, match="cannot draw below 0"):
        Dice(1).below(0)
