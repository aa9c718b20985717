"""Linking: topics that come back become one episode, others do not."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tsim_core.errors import ConfigError
from tsim_core.linking import Linker, Linking
from tsim_core.segmentation import ClosedSegment, SegTurn

from .test_calibration import NEUTRAL, vector

Piece = tuple[ClosedSegment, list[SegTurn]]


def pieces(topics: Sequence[int], turns: int = 4, text: str = NEUTRAL, strength: float | None = 0.95) -> list[Piece]:
    """One segment for each topic given."""
    result = []
    for number, topic in enumerate(topics):
        start = number * turns
        said = [
            SegTurn(p, "user" if p % 2 == 0 else "assistant", text, 15.0, vector(topic, 5000 + p))
            for p in range(start, start + turns)
        ]
        result.append((ClosedSegment(start, start + turns, 15.0 * turns, "shift", 0.1, 0.3, strength), said))
    return result


def episodes(made: Sequence[Piece], linker: Linker | None = None) -> list[int]:
    """Number of the first segment of the episode that each segment belongs to."""
    linker = linker or Linker(Linking())
    found = []
    for segment, turns in made:
        start = linker.assign(segment, turns)
        found.append((segment.start if start is None else start) // len(turns))
    return found


@st.composite
def made(draw: st.DrawFn) -> list[Piece]:
    topics = draw(st.lists(st.integers(0, 6), max_size=14))
    result = pieces(topics)
    blank = draw(st.sets(st.integers(0, 13), max_size=3))
    return [
        (s, [SegTurn(t.position, t.role, "", t.tokens, None) for t in turns] if i in blank else turns)
        for i, (s, turns) in enumerate(result)
    ]


def test_two_topics_that_alternate_become_two_episodes() -> None:
    assert episodes(pieces([0, 1, 0, 1, 0, 1, 0, 1])) == [0, 1, 0, 1, 0, 1, 0, 1]


def test_new_topics_stay_apart() -> None:
    assert episodes(pieces(list(range(20)))) == list(range(20))


def test_a_topic_is_resumed_within_reach_only() -> None:
    assert episodes(pieces([0, 1, 2, 3, 0]))[-1] == 0
    assert episodes(pieces([0, 1, 2, 3, 4, 5, 0]))[-1] == 6
    assert episodes(pieces([0, 1, 2, 0]), Linker(Linking(reach=2)))[-1] == 3


def test_an_episode_is_not_linked_beyond_its_size() -> None:
    found = episodes(pieces([0, 1] * 6), Linker(Linking(max_episode_tokens=180)))
    assert max(found.count(e) for e in found) == 3


def test_a_clear_cut_is_not_undone_where_a_weak_one_is() -> None:
    # The same two segments of one topic, cut apart with certainty and by length alone.
    assert episodes(pieces([0, 0], strength=1.0)) == [0, 1]
    assert episodes(pieces([0, 0], strength=0.05)) == [0, 0]
    # Of a doubtful one, likeness decides.
    assert episodes(pieces([0, 0], strength=0.7)) == [0, 0]
    assert episodes(pieces([0, 1], strength=0.7)) == [0, 1]


def test_a_segment_that_begins_like_a_reply_is_rather_linked() -> None:
    def last(text: str) -> int:
        first = pieces([0, 1])
        segment, turns = pieces([0, 1, 2])[2]
        mixed = vector(0, 1) + 1.6 * vector(2, 2)
        said = [SegTurn(t.position, t.role, text, t.tokens, mixed / (mixed @ mixed) ** 0.5) for t in turns]
        return episodes([*first, (segment, said)])[-1]

    assert last("I would like to see another matter.") == 2
    assert last("Yes, that is right.") == 0


@settings(max_examples=40)
@given(made())
def test_an_episode_is_named_by_its_first_segment(segments: list[Piece]) -> None:
    found = episodes(segments)
    assert all(e <= i and found[e] == e for i, e in enumerate(found))


@settings(max_examples=40)
@given(made(), st.data())
def test_closing_and_reopening_anywhere_changes_nothing(segments: list[Piece], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(segments)))
    whole = Linker(Linking())
    expected = [whole.assign(*piece) for piece in segments]
    first, second = Linker(Linking()), Linker(Linking())
    found = [first.assign(*piece) for piece in segments[:at]]
    known = {t.position: t for _, turns in segments[:at] for t in turns}
    second.restore(json.loads(json.dumps(first.state())), lambda positions: {p: known[p] for p in positions})
    found += [second.assign(*piece) for piece in segments[at:]]
    assert found == expected
    assert second.state() == whole.state()


@settings(max_examples=40)
@given(made(), st.data())
def test_guesses_are_what_assign_will_say_and_change_nothing(segments: list[Piece], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(segments)))
    linker = Linker(Linking())
    for piece in segments[:at]:
        linker.assign(*piece)
    before = json.dumps(linker.state())
    guesses = linker.guesses(segments[at:])
    assert json.dumps(linker.state()) == before
    assert guesses == [linker.assign(*piece) for piece in segments[at:]]


def test_forgotten_turns_do_not_break_a_thread() -> None:
    linker, again = Linker(Linking()), Linker(Linking())
    segments = pieces([0, 1, 0, 1])
    for piece in segments[:3]:
        linker.assign(*piece)
    again.restore(linker.state(), lambda positions: {})
    assert again.assign(segments[3][0], []) is None
    assert again.assign(*segments[3]) is None


def test_state_stays_small() -> None:
    linker = Linker(Linking())
    for piece in pieces(list(range(300))):
        linker.assign(*piece)
    assert len(json.dumps(linker.state())) < 5000


@pytest.mark.parametrize(
    "changes",
    [{"reach": 0}, {"link_probability": 1.0}, {"link_rate": 0.0}, {"max_episode_tokens": 0}, {"unlinked": (1.0, 0.1)}],
)
def test_settings_out_of_range_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(changes))):
        Linking(**changes)  # type: ignore[arg-type]
