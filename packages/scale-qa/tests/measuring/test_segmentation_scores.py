import pytest
import segeval
from hypothesis import given
from hypothesis import strategies as st
from nltk.metrics import pk as nltk_pk
from nltk.metrics import windowdiff as nltk_windowdiff
from scale_qa.segmentation_scores import (
    coverage,
    end_labels,
    f1_score,
    pk,
    purity,
    score_segmentations,
    window_diff,
    window_size,
)
from sklearn.metrics import f1_score as sklearn_f1


@st.composite
def two_segmentations(draw):
    n = draw(st.integers(4, 60))
    return tuple(lengths(sorted(draw(st.sets(st.integers(1, n - 1), max_size=12))), n) for _ in range(2))


def lengths(cuts, n):
    return [b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True)]


def text(segments):
    return "".join(map(str, end_labels(segments)))


def test_labels_mark_ends_but_the_last():
    assert end_labels([2, 1, 3]).tolist() == [0, 1, 1, 0, 0, 0]


@given(two_segmentations())
def test_pk_and_windowdiff_are_those_of_nltk(pair):
    gold, found = pair
    size = window_size(gold)
    if size <= sum(gold):
        assert pk(gold, found) == pytest.approx(nltk_pk(text(gold), text(found), size))
        assert window_diff(gold, found) == pytest.approx(nltk_windowdiff(text(gold), text(found), size))


@given(two_segmentations(), st.integers(2, 6))
def test_they_are_those_of_segeval_but_for_its_last_window(pair, size):
    """segeval leaves out the window that ends with the last turn, whose label says nothing."""
    gold, found = pair
    n = sum(gold)
    if size < n:
        ours = (window_diff(gold, found, size), pk(gold, found, size))
        last = slice(n - size, n)
        a, b = end_labels(gold)[last].sum(), end_labels(found)[last].sum()
        for value, function, differs in (
            (ours[0], segeval.window_diff, a != b),
            (ours[1], segeval.pk, (a > 0) != (b > 0)),
        ):
            theirs = float(function(tuple(found), tuple(gold), window_size=size))
            assert value * (n - size + 1) == pytest.approx(theirs * (n - size) + differs)


@given(two_segmentations())
def test_f1_is_that_of_sklearn(pair):
    gold, found = pair
    assert f1_score(gold, found) == pytest.approx(sklearn_f1(end_labels(gold), end_labels(found), zero_division=0))


@given(two_segmentations())
def test_scores_stay_in_range_and_mirror(pair):
    gold, found = pair
    scores = score_segmentations([pair])
    for value in (scores.pk, scores.windowdiff, scores.f1, scores.score, scores.purity, scores.coverage):
        assert 0 <= value <= 1
    assert purity(gold, found) == coverage(found, gold)


@given(two_segmentations())
def test_the_gold_itself_is_perfect_but_for_what_has_no_boundary(pair):
    gold, _ = pair
    scores = score_segmentations([(gold, gold)])
    assert (scores.pk, scores.windowdiff, scores.purity, scores.coverage) == (0, 0, 1, 1)
    assert scores.f1 == (1 if len(gold) > 1 else 0)


def test_a_worked_example():
    gold, found = [4, 4, 4], [4, 8]
    scores = score_segmentations([(gold, found)])
    # Window 2 over labels 000100010000 and 000100000000: two of eleven windows differ.
    assert scores.pk == scores.windowdiff == pytest.approx(2 / 11)
    assert scores.f1 == pytest.approx(2 / 3)
    assert scores.score == pytest.approx(1 / 3 + (9 / 11) / 2)
    assert (scores.purity, scores.coverage) == (8 / 12, 1.0)
    assert (scores.gold_segments, scores.found_segments) == (3, 2)


def test_the_window_is_half_a_segment_and_at_least_two():
    assert window_size([4, 4, 4]) == 2
    assert window_size([10, 20]) == 8  # 7.5, rounded to the even neighbour
    assert window_size([1, 1]) == 2


def test_two_turns_are_one_window():
    assert pk([1, 1], [2]) == 1.0
    assert pk([2], [2]) == 0.0


@pytest.mark.parametrize(("gold", "found"), [([2, 2], [3]), ([1], [1]), ([0, 3], [3])])
def test_what_does_not_tile_is_refused(gold, found):
    with pytest.raises(ValueError, match="do not tile"):
        score_segmentations([(gold, found)])


def test_no_dialogues_are_refused():
    with pytest.raises(ValueError, match="no dialogues"):
        score_segmentations([])
