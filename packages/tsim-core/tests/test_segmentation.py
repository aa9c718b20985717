"""The published rule, equations (1) to (3), against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tsim_core.errors import ConfigError
from tsim_core.segmentation import PublishedSegmentation, PublishedSegmenter, SegTurn

RULE = PublishedSegmentation(l_min=10, l_max=100, recent_window=2, theta_s=0.5, b=0.03, min_messages=2)


def turn(position: int, vector: tuple[float, ...] | None, tokens: float = 6, role: str = "assistant") -> SegTurn:
    return SegTurn(position, role, "x", tokens, None if vector is None else np.array(vector, dtype=np.float32))


def cuts(turns: list[SegTurn], rule: PublishedSegmentation = RULE) -> list[tuple[int, int, str]]:
    segmenter = PublishedSegmenter(rule)
    return [(s.start, s.end, s.cut) for t in turns for s in segmenter.push(t)]


def test_equation_1_and_2_similarity_to_the_normalised_mean_of_the_recent_turns() -> None:
    # centroid of (1,0) and (0,1) is (.7071, .7071); (.6,.8) has cosine .7*1.4142 = .98995 with it
    segmenter = PublishedSegmenter(PublishedSegmentation(l_min=0, l_max=1e9, recent_window=2, theta_s=0.9901, b=0))
    segmenter.push(turn(0, (1, 0)))
    segmenter.push(turn(1, (0, 1)))
    (closed,) = segmenter.push(turn(2, (0.6, 0.8)))
    assert closed.similarity == pytest.approx(0.98995, abs=1e-5)
    assert (closed.start, closed.end, closed.cut, closed.tokens) == (0, 2, "shift", 12)


def test_equation_1_window_holds_only_the_last_turns() -> None:
    # (1,0) has left the window of two, so that (0,1) is all that (0,1) is compared with
    segmenter = PublishedSegmenter(PublishedSegmentation(l_min=0, l_max=1e9, recent_window=2, theta_s=1, b=0))
    similarities = [
        s.similarity for i, v in enumerate([(1, 0), (0, 1), (0, 1), (1, 0)]) for s in segmenter.push(turn(i, v))
    ]
    # at turn 2 the window is {(1,0), (0,1)}: .7071 < 1 cuts; at turn 3 only one message is buffered
    assert similarities == [pytest.approx(0.70711, abs=1e-5)]


@pytest.mark.parametrize(
    ("previous", "role", "expected"),
    [("assistant", "user", 0.53), ("model", "user", 0.53), ("user", "user", 0.5), ("assistant", "assistant", 0.5)],
)
def test_equation_2_bonus_where_the_user_follows_the_model(previous: str, role: str, expected: float) -> None:
    segmenter = PublishedSegmenter(PublishedSegmentation(l_min=0, l_max=1e9, theta_s=0.99, b=0.03))
    segmenter.push(turn(0, (1, 0)))
    segmenter.push(turn(1, (1, 0), role=previous))
    (closed,) = segmenter.push(turn(2, (0.5, 0.8660254), role=role))
    assert closed.similarity == pytest.approx(expected, abs=1e-6)


def test_equation_3_a_shift_needs_the_minimum_length() -> None:
    away = [turn(0, (1, 0), 4), turn(1, (1, 0), 4), turn(2, (0, 1), 4), turn(3, (-1, 0), 4)]
    # before turn 2 the episode has 8 tokens (< 10): no cut; before turn 3 it has 12
    assert cuts(away) == [(0, 3, "shift")]


def test_equation_3_the_maximum_length_cuts_whatever_the_similarity() -> None:
    same = [turn(i, (1, 0), 60) for i in range(5)]
    assert cuts(same) == [(0, 2, "max"), (2, 4, "max")]


def test_two_messages_are_buffered_before_a_boundary_may_open() -> None:
    long = [turn(0, (1, 0), 500), turn(1, (0, 1), 500), turn(2, (1, 0), 500)]
    assert cuts(long) == [(0, 2, "max")]


def test_blank_turns_never_shift_but_count_for_the_maximum() -> None:
    assert cuts([turn(0, (1, 0)), turn(1, (1, 0)), turn(2, None), turn(3, None)]) == []
    assert cuts([turn(0, None, 60), turn(1, None, 60), turn(2, None, 60)]) == [(0, 2, "max")]


def test_the_longmemeval_window_reaches_into_the_episode_before() -> None:
    rule = PublishedSegmentation(l_min=0, l_max=12, recent_window=4, recent_episodes=2, theta_s=-1, b=0)
    segmenter = PublishedSegmenter(rule)
    for i in range(3):
        segmenter.push(turn(i, (1, 0)))  # before turn 2 the length is 12: cut
    state = segmenter.state()
    assert state["recent"] == [[0, 1], [1, 1], [2, 0]]


def test_published_constants_of_table_18() -> None:
    rule = PublishedSegmentation()
    assert (rule.l_min, rule.l_max, rule.recent_window, rule.theta_s, rule.b) == (120, 320, 4, 0.70, 0.03)


@pytest.mark.parametrize("wrong", [{"l_min": 5, "l_max": 4}, {"recent_window": 0}, {"theta_s": 2}])
def test_a_rule_that_cannot_be_is_an_error(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        PublishedSegmentation(**wrong)  # type: ignore[arg-type]
