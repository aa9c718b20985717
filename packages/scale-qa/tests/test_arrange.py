from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scale_qa.arrange import ARRANGEMENTS, arrange
from scale_qa.dice import Dice

lengths = st.lists(st.integers(1, 12), max_size=12)


@given(lengths, lengths, st.sampled_from(ARRANGEMENTS), st.integers(0, 5))
def test_every_turn_comes_once_and_in_its_dialogue_s_order(truth, noise, arrangement, seed):
    runs = arrange(truth, noise, arrangement, Dice(seed))
    laid: dict[int, int] = {}
    for run in runs:
        assert run.start == laid.get(run.dialogue, 0)
        assert run.end > run.start
        laid[run.dialogue] = run.end
    assert laid == dict(enumerate([*truth, *noise]))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 5))
def test_interleaved_spreads_truth_evenly(n, m, seed):
    order = [run.dialogue < n for run in arrange([2] * n, [2] * m, "interleaved", Dice(seed))]
    for end in range(1, n + m + 1):
        assert abs(sum(order[:end]) - end * n / (n + m)) <= 1


def test_blocks_are_four_of_truth_each_followed_by_noise():
    kinds = [run.dialogue < 8 for run in arrange([2] * 8, [2] * 12, "blocks", Dice(1))]
    assert kinds == ([True] * 2 + [False] * 3) * 4


@given(lengths, lengths, st.integers(0, 5))
def test_braided_runs_two_dialogues_at_a_time(truth, noise, seed):
    runs = arrange(truth, noise, "braided", Dice(seed))
    total = dict(enumerate([*truth, *noise]))
    open_now: set[int] = set()
    for run in runs:
        open_now.add(run.dialogue)
        assert len(open_now) <= 2
        if run.end == total[run.dialogue]:
            open_now.discard(run.dialogue)
        else:
            assert run.end - run.start in (2, 4)
    for a, b in pairwise(runs):  # a dialogue goes on at once only when no other is left
        if a.dialogue == b.dialogue:
            assert {run.dialogue for run in runs[runs.index(b) :]} == {b.dialogue}


def test_seeds_differ():
    orders = {tuple(run.dialogue for run in arrange([2] * 6, [2] * 6, "shuffled", Dice(seed))) for seed in range(9)}
    assert len(orders) == 9


def test_an_unknown_arrangement_is_an_error():
    with pytest.raises(ValueError, match="unknown arrangement 'spiral'"):
        arrange([2], [2], "spiral", Dice(1))
