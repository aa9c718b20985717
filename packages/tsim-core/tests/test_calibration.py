"""The default segmentation: invariants on any thread, and behaviour on threads whose topics are known."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tsim_core.calibration import CalibratedSegmentation, CalibratedSegmenter
from tsim_core.embedding import Vectors, unit_rows
from tsim_core.errors import ConfigError
from tsim_core.scale import Scale
from tsim_core.segmentation import ClosedSegment, SegTurn
from tsim_core.shifts import Evidence, ShiftModel

ROLES = ["user", "assistant", "tool", "system", "Ann", "", "model", "human"]
TEXTS = [
    "We need a plan for the garden fence",
    "ok",
    "What about that one?",
    "",
    "请帮我查一下明天的火车票还有没有",
    "\ud800",
]
few = settings(max_examples=40)
NEUTRAL = "The quick brown fox jumps over a lazy dog"


def vector(topic: int, seed: int, spread: float = 0.12, dimension: int = 48) -> Vectors:
    """A turn about a topic: cosine about .5 with others of the topic, about 0 with the rest."""
    noise = np.random.default_rng(seed).normal(size=dimension) * spread
    return unit_rows((np.eye(dimension)[topic % dimension] + noise)[None].astype(np.float32))[0]


def dialogue(topics: Sequence[int], roles: Sequence[str] = ("user", "assistant")) -> list[SegTurn]:
    """One turn a topic given, roles in rotation, words that say nothing."""
    return [SegTurn(i, roles[i % len(roles)], NEUTRAL, 12.0, vector(topic, 1000 + i)) for i, topic in enumerate(topics)]


def starts(turns: Sequence[SegTurn], config: CalibratedSegmentation | None = None) -> list[int]:
    segmenter = CalibratedSegmenter(config or CalibratedSegmentation())
    return [s.start for s in run(segmenter, turns)]


def run(segmenter: CalibratedSegmenter, turns: Sequence[SegTurn]) -> list[ClosedSegment]:
    return [s for t in turns for s in segmenter.push(t)] + segmenter.tail()


@st.composite
def threads(draw: st.DrawFn) -> list[SegTurn]:
    n = draw(st.integers(0, 40))
    roles = draw(st.sampled_from([ROLES, ["user", "assistant"], ["Ann", "Ben"], ["assistant"], ["user"]]))
    topic, position, turns = 0, draw(st.integers(0, 5)), []
    for i in range(n):
        topic += draw(st.sampled_from([0, 0, 0, 1]))
        text = draw(st.sampled_from(TEXTS))
        blank = not text or draw(st.integers(0, 9)) == 0
        role = draw(st.sampled_from(roles))
        time = draw(st.sampled_from([None, 50.0 * i, 1e5 * i]))
        turns.append(SegTurn(position, role, text, float(len(text)), None if blank else vector(topic, i), time))
        position += draw(st.sampled_from([1, 1, 1, 3]))
    return turns


@few
@given(threads(), st.floats(20, 400))
def test_segments_tile_the_thread_in_order(turns: list[SegTurn], l_max: float) -> None:
    segments = run(CalibratedSegmenter(CalibratedSegmentation(l_max=l_max)), turns)
    covered = [t.position for s in segments for t in turns if s.start <= t.position < s.end]
    assert covered == [t.position for t in turns]
    assert all(a.end <= b.start for a, b in pairwise(segments))
    assert sum(s.tokens for s in segments) == pytest.approx(sum(t.tokens for t in turns))
    assert [s.cut for s in segments[-1:]] == ["end"] * bool(turns)
    assert all(s.cut in ("shift", "max") for s in segments[:-1])
    for segment in segments[:-1]:
        if segment.cut == "shift":
            assert segment.similarity is not None
            assert segment.threshold is not None
            assert segment.strength is not None
            assert segment.similarity <= segment.threshold + 1e-6
            assert 0.35 < segment.strength <= 1


@few
@given(threads(), st.data())
def test_a_prefix_of_the_stream_gives_a_prefix_of_the_final_segments(turns: list[SegTurn], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(turns)))
    whole, part = (CalibratedSegmenter(CalibratedSegmentation()) for _ in range(2))
    final = [s for t in turns for s in whole.push(t)]
    early = [s for t in turns[:at] for s in part.push(t)]
    assert final[: len(early)] == early


@few
@given(threads(), st.data())
def test_closing_and_reopening_anywhere_changes_nothing(turns: list[SegTurn], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(turns)))
    segmenter = CalibratedSegmenter(CalibratedSegmentation())
    expected = [s for t in turns for s in segmenter.push(t)], segmenter.tail(), segmenter.state()
    first, second = (CalibratedSegmenter(CalibratedSegmentation()) for _ in range(2))
    closed = [s for t in turns[:at] for s in first.push(t)]
    first.tail()  # looking must not disturb
    known = {t.position: t for t in turns[:at]}
    second.restore(json.loads(json.dumps(first.state())), lambda positions: {p: known[p] for p in positions})
    closed += [s for t in turns[at:] for s in second.push(t)]
    assert (closed, second.tail(), second.state()) == expected


@few
@given(threads(), st.data())
def test_forgotten_turns_do_not_break_a_thread(turns: list[SegTurn], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(turns)))
    gone = data.draw(st.sets(st.sampled_from([t.position for t in turns]))) if turns else set()
    first, second = (CalibratedSegmenter(CalibratedSegmentation()) for _ in range(2))
    for t in turns[:at]:
        first.push(t)
    known = {t.position: t for t in turns if t.position not in gone}
    second.restore(first.state(), lambda positions: {p: known[p] for p in positions if p in known})
    segments = run(second, turns[at:])
    assert all(a.end <= b.start for a, b in pairwise(segments))


@few
@given(threads())
def test_tool_calls_and_replies_stay_with_the_turn_that_they_answer(turns: list[SegTurn]) -> None:
    spoke = False
    openers = set()
    for t in turns:
        if t.vector is not None and not (t.role in ("tool", "system") or (spoke and t.role in ("assistant", "model"))):
            openers.add(t.position)
        spoke = spoke or t.role in ("user", "human")
    segments = run(CalibratedSegmenter(CalibratedSegmentation(l_max=1)), turns)
    assert {s.start for s in segments[1:]} <= openers


def test_state_stays_small_on_a_long_thread() -> None:
    segmenter = CalibratedSegmenter(CalibratedSegmentation())
    for t in dialogue([i // 8 for i in range(3000)]):
        segmenter.push(t)
    assert len(json.dumps(segmenter.state())) < 5000


def test_topics_are_found_from_the_first_turns_on() -> None:
    assert starts(dialogue([0] * 6 + [1] * 6)) == [0, 6]
    assert starts(dialogue([0] * 4 + [1] * 8 + [2] * 6 + [3] * 4)) == [0, 4, 12, 18]


def test_topics_are_found_where_every_speaker_may_open_one() -> None:
    assert starts(dialogue([0] * 5 + [1] * 5 + [2] * 5, roles=("Ann", "Ben"))) == [0, 5, 10]


def test_one_topic_is_one_segment_until_it_is_full() -> None:
    turns = dialogue([0] * 60)
    assert starts(turns, CalibratedSegmentation(l_max=2000)) == [0]
    segments = run(CalibratedSegmenter(CalibratedSegmentation(l_max=240)), turns)
    assert all(s.tokens <= 240 for s in segments)
    assert len(segments) <= 6


def test_an_exchange_longer_than_a_segment_is_kept_whole() -> None:
    turns = [SegTurn(0, "user", NEUTRAL, 10, vector(0, 0)), SegTurn(1, "assistant", NEUTRAL, 5000, vector(0, 1))]
    assert [(s.start, s.end, s.tokens) for s in run(CalibratedSegmenter(CalibratedSegmentation()), turns)] == [
        (0, 2, 5010)
    ]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_threads(n: int) -> None:
    assert [(s.start, s.end, s.cut) for s in run(CalibratedSegmenter(CalibratedSegmentation()), dialogue([0] * n))] == [
        (0, n, "end")
    ] * bool(n)


def test_a_decision_waits_for_the_next_exchange_and_no_longer() -> None:
    turns = dialogue([0] * 6 + [1] * 6)
    segmenter = CalibratedSegmenter(CalibratedSegmentation())
    final = [[s.end for s in segmenter.push(t)] for t in turns]
    assert final.index([6]) == 10  # the second exchange of the new topic is complete when turn 10 opens the third
    assert [s.start for s in segmenter.tail()] == [6]


def test_the_tail_shows_a_new_topic_at_once() -> None:
    segmenter = CalibratedSegmenter(CalibratedSegmentation())
    for t in dialogue([0] * 6 + [1] * 2):
        assert segmenter.push(t) == []
    assert [(s.start, s.end, s.cut) for s in segmenter.tail()] == [(0, 6, "shift"), (6, 8, "end")]


def test_any_affine_change_of_the_embedder_leaves_the_cuts_alone_once_its_scale_is_known() -> None:
    # A common component c makes every cosine (s + c^2) / (1 + c^2): high and narrow, as with e5 or bge.
    topics = [0] * 6 + [1] * 4 + [2] * 8 + [3] * 4 + [4] * 6
    plain = dialogue(topics)
    c = 2.0
    shifted = [
        SegTurn(t.position, t.role, t.text, t.tokens, unit_rows(np.append(t.vector, np.float32(c))[None])[0])
        for t in plain
        if t.vector is not None
    ]
    scale = Scale(0.05, 0.5)
    high = Scale((scale.unrelated + c * c) / (1 + c * c), (scale.related + c * c) / (1 + c * c))
    expected = [s.start for s in run(CalibratedSegmenter(CalibratedSegmentation(), scale), plain)]
    assert expected == [0, 6, 10, 18, 22]
    assert [s.start for s in run(CalibratedSegmenter(CalibratedSegmentation(), high), shifted)] == expected


def test_a_reply_does_not_open_a_topic_where_an_opening_would() -> None:
    def thread(words: str) -> list[SegTurn]:
        turns = dialogue([0] * 6)
        for i in range(6, 12):
            between = unit_rows((vector(0, i) + 3.5 * vector(5, i + 50))[None])[0]
            turns.append(SegTurn(i, "user" if i % 2 == 0 else "assistant", words if i == 6 else NEUTRAL, 12.0, between))
        return turns

    assert starts(thread("I am looking for another matter entirely.")) == [0, 6]
    assert starts(thread("Yes, that would be good, thank you.")) == [0]


def evidence(**changes: float | None) -> Evidence:
    values: dict[str, float | None] = {
        "near": 0.2,
        "ahead": 0.5,
        "across": 0.1,
        "local": 0.4,
        "cue": 0.0,
        "pressure": 0.0,
        "pause": None,
    }
    values |= changes
    return Evidence(earlier=(), on_a_par=False, **values)  # type: ignore[arg-type]


@few
@given(st.floats(-0.2, 1), st.floats(0, 0.4), st.sampled_from([None, 0.1, 0.6]), st.floats(-2, 2))
def test_a_shift_is_less_likely_the_more_alike_and_more_likely_with_a_cue(
    near: float, more: float, ahead: float | None, cue: float
) -> None:
    model = ShiftModel((0.15, 0.13), (0.45, 0.17), 0.3)
    seen = {"ahead": ahead, "across": 0.1 if ahead is not None else None, "cue": cue}
    at = model.weigh(evidence(near=near, **seen))
    assert model.weigh(evidence(near=near + more, **seen)).strength <= at.strength + 1e-9
    assert model.weigh(evidence(near=near, **{**seen, "cue": cue + 0.5})).strength >= at.strength - 1e-9


@few
@given(st.floats(0.05, 0.5), st.floats(0.2, 0.8))
def test_the_threshold_is_where_the_probability_crosses(near: float, probability: float) -> None:
    model = ShiftModel((0.15, 0.13), (0.45, 0.17), 0.3)
    seen = evidence(near=near)
    found = model.weigh(seen)
    threshold = found.threshold(probability)
    if abs(threshold - near) > 1e-6:
        assert (near < threshold) == (found.strength > probability)


def test_rates_follow_the_thread() -> None:
    model = ShiftModel((0.15, 0.13), (0.45, 0.17), 0.3)
    for _ in range(50):
        model.learn(model.weigh(evidence(near=0.5)))
    (yes, no), *_ = model.state()["rates"]
    assert yes / (yes + no) < 0.1
    for _ in range(400):
        model.learn(model.weigh(evidence(near=0.05)))
    (yes, no), *_ = model.state()["rates"]
    assert yes / (yes + no) > 0.6


def test_a_pause_counts_once_topics_were_seen_to_change_after_such_pauses() -> None:
    model = ShiftModel((0.15, 0.13), (0.45, 0.17), 0.3)
    minute, night = 60.0, 10 * 3600.0
    unknown = model.weigh(evidence(near=0.3)).strength
    assert model.weigh(evidence(near=0.3, pause=night)).strength == pytest.approx(unknown), "nothing seen yet"
    for _ in range(50):
        model.learn(model.weigh(evidence(near=0.6, pause=minute)))
        model.learn(model.weigh(evidence(near=0.05, pause=night)))
    after = {pause: model.weigh(evidence(near=0.4, pause=pause)).strength for pause in (None, minute, night)}
    assert after[night] > after[None] + 0.1
    assert after[minute] < after[None] - 0.1


@few
@given(st.lists(st.floats(-0.1, 0.9), min_size=1, max_size=40), st.floats(0, 1e7))
def test_pauses_that_are_all_alike_say_nothing(nears: list[float], pause: float) -> None:
    """An import whose turns all have one time is cut as if they had none."""
    dated, undated = (ShiftModel((0.15, 0.13), (0.45, 0.17), 0.3) for _ in range(2))
    for near in nears:
        found = dated.weigh(evidence(near=near, pause=pause)), undated.weigh(evidence(near=near))
        assert found[0].strength == pytest.approx(found[1].strength, abs=1e-9)
        dated.learn(found[0])
        undated.learn(found[1])


@pytest.mark.parametrize(
    "changes",
    [
        {"l_max": 0},
        {"cut_probability": 0.0},
        {"cut_probability": 1.0},
        {"shift_rate": -0.1},
        {"null": (0.2, 0.0)},
        {"null": (0.9, 0.1)},
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(changes))):
        CalibratedSegmentation(**changes)  # type: ignore[arg-type]


def test_nothing_depends_on_the_hash_seed() -> None:
    program = """
import json, sys
sys.path.insert(0, sys.argv[1])
from test_calibration import *
turns = dialogue([i // 7 for i in range(120)], roles=("user", "assistant", "tool"))
segmenter = CalibratedSegmenter(CalibratedSegmentation())
print([(s.start, s.strength) for s in run(segmenter, turns)], json.dumps(segmenter.state()))
"""
    folder = __file__.rsplit("test_calibration", 1)[0]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, folder],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("replies", [1, 2, 3])
def test_replies_that_are_always_the_same_do_not_glue_topics_together(replies: int) -> None:
    topics = [topic for topic in range(8) for _ in range(4)]  # two exchanges each
    turns = dialogue(topics)
    answers = [vector(40 + i, 7) for i in range(replies)]
    dull = [
        t if t.role == "user" else SegTurn(t.position, t.role, t.text, t.tokens, answers[t.position // 2 % replies])
        for t in turns
    ]
    assert len(starts(dull)) >= 6
