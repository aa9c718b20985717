from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tsim_core.assembly import CUT, Assembled, Assembly, assemble
from tsim_core.errors import ConfigError
from tsim_core.fusion import TurnTable
from tsim_core.labels import Labels
from tsim_core.ranking import RankedEpisode
from tsim_core.tokens import published, universal

DAY = 86400.0


class Case:
    """Texts with episodes and scores, laid out."""

    def __init__(
        self,
        texts: Sequence[str],
        episodes: Sequence[int],
        scores: Sequence[float],
        days: Sequence[float] | None = None,
    ) -> None:
        self.texts = texts
        self.estimator = universal
        times = np.array([float("nan")] * len(texts) if days is None else [day * DAY for day in days])
        self.turns = TurnTable(
            np.array(episodes, dtype=np.int64),
            np.array([universal(text) for text in texts]),
            Labels.of(("user", "assistant")[row % 2] for row in range(len(texts))),
            times,
        )
        by_episode: dict[int, dict[int, float]] = {}
        for row, (episode, score) in enumerate(zip(episodes, scores, strict=True)):
            by_episode.setdefault(episode, {})[row] = score
        self.ranked = sorted(
            (RankedEpisode(e, {"raw": max(s.values())}, s) for e, s in by_episode.items()), key=lambda r: -r.score
        )
        self.asked: list[int] = []

    def give(self, rows: Sequence[int]) -> list[str]:
        self.asked += rows
        return [self.texts[row] for row in rows]

    def lay(self, k: int | None = 5, max_tokens: int | None = None, config: Assembly | None = None) -> Assembled:
        return assemble(self.ranked, self.turns, self.give, universal, k, max_tokens, config or Assembly())


def test_whole_episodes_oldest_first_numbered_by_rank() -> None:
    result = Case(["one", "two", "three", "four"], [0, 0, 1, 1], [1, 1, 2, 2], [0, 0, 9, 9]).lay()
    assert result.text == "[2] 1970-01-01\nuser: one\nassistant: two\n\n[1] 1970-01-10\nuser: three\nassistant: four"
    assert [p.ranked.episode for p in result.portions] == [1, 0]
    assert result.tokens == universal(result.text)


def test_a_budget_takes_the_best_turns_and_marks_what_it_leaves_out() -> None:
    texts = ["a b c", "d e f", "g h i", "j k l", "m n o"]
    result = Case(texts, [0] * 5, [0, 5, 0, 4, 0]).lay(max_tokens=16)
    assert result.text == "[1...]\nassistant: d e f\n[...]\nassistant: j k l"
    assert result.portions[0].rows == (1, 3)
    assert result.portions[0].omitted == 3
    assert result.tokens <= 16


def test_what_is_joined_comes_with_an_episode_and_leaves_no_mark_when_it_does_not() -> None:
    case = Case(["a b c", "d e f", "g h i", "j k l", "m n o"], [0, 1, 0, 2, 1], [5, 1, 4, 3, 0.5])
    joined = RankedEpisode(0, {"raw": 5}, {row: [5, 1, 4, 3, 0.5][row] for row in (0, 1, 2, 4)})
    case.ranked = [joined, case.ranked[1]]
    whole = case.lay()
    assert whole.text == "[1]\nuser: a b c\nassistant: d e f\nuser: g h i\nuser: m n o\n\n[2]\nassistant: j k l"
    scarce = case.lay(max_tokens=12)
    assert scarce.text == "[1]\nuser: a b c\nuser: g h i"
    assert scarce.portions[0].omitted == 0, "what is joined is no part of it"


def test_an_episode_that_spans_days_says_so() -> None:
    result = Case(["one", "two", "three"], [0, 0, 0], [1, 1, 1], [0, 4, 4]).lay()
    assert result.text == "[1] 1970-01-01\nuser: one\n1970-01-05\nassistant: two\nuser: three"


def test_a_turn_that_does_not_fit_is_passed_over() -> None:
    texts = ["short one", "long " * 30, "short two"]
    result = Case(texts, [0, 0, 0], [3, 2, 1]).lay(max_tokens=20)
    assert result.portions[0].rows == (0, 2)


def test_long_turns_must_score_higher_and_among_short_ones_length_counts_little() -> None:
    said, reply, half = "word " * 20, "word " * 400, "word " * 40

    def first(texts: Sequence[str], scores: Sequence[float]) -> int:
        return (
            Case(texts, [0, 0], scores).lay(max_tokens=round(universal(max(texts, key=len))) + 10).portions[0].rows[0]
        )

    assert first([reply, said], [6, 3]) == 1, "the reply does not fit beside what was said"
    assert first([reply, said], [9, 3]) == 0
    assert first([half, said], [4, 3]) == 0


def test_a_first_turn_longer_than_the_budget_is_cut_with_a_mark() -> None:
    result = Case(["word " * 200, "other"], [0, 0], [3, 1]).lay(max_tokens=40)
    first = result.portions[0].texts[0]
    assert first.endswith(CUT)
    assert first.removesuffix(CUT).split() == ["word"] * (len(first.split()) - 1)
    assert f"user: {first}" in result.text
    assert result.portions[0].rows == (0, 1)
    assert result.tokens <= 40


def test_text_without_spaces_is_cut_too() -> None:
    result = Case(["红按钮" * 200], [0], [1]).lay(max_tokens=60)
    assert result.portions[0].texts[0].startswith("红按钮红按钮")
    assert result.portions[0].texts[0].endswith(CUT)
    assert result.tokens <= 60


def test_a_budget_too_small_for_anything_gives_nothing() -> None:
    result = Case(["one two three"], [0], [1]).lay(max_tokens=2)
    assert result == Assembled((), "", 0.0)


def test_the_published_cap_takes_the_window_with_most_evidence() -> None:
    scores = [0.0] * 20
    scores[13] = 1.0
    case = Case([f"turn {i}" for i in range(20)], [0] * 20, scores)
    result = case.lay(config=Assembly.published())
    assert result.portions[0].rows == tuple(range(6, 14))  # windows of 8 start at 0, 6 and 12; the earlier one wins
    assert result.text.startswith("[1...]\nuser: turn 6\n")


def test_a_short_episode_is_under_the_published_cap() -> None:
    assert Case(["a", "b"], [0, 0], [0, 1]).lay(config=Assembly.published()).portions[0].omitted == 0


def test_blank_turns_come_with_their_whole_episode_and_are_not_written() -> None:
    result = Case(["one", "", "three"], [0, 0, 0], [1, 0, 1]).lay()
    assert result.portions[0].rows == (0, 1, 2)
    assert result.text == "[1]\nuser: one\nuser: three"
    assert Case(["one", "", "three"], [0, 0, 0], [1, 0, 1]).lay(max_tokens=50) == result


def test_texts_are_asked_for_what_is_handed_over_only() -> None:
    case = Case(["a"] * 30, list(range(30)), list(range(30)))
    case.lay(k=2)
    assert sorted(case.asked) == [28, 29]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 12))
    texts = [draw(st.text(alphabet="ab 红\n", max_size=60)) for _ in range(n)]
    episodes = [draw(st.integers(0, 3)) for _ in range(n)]
    number = {label: i for i, label in enumerate(dict.fromkeys(episodes))}
    days = [draw(st.sampled_from([float("nan"), 0.0, 3.0])) for _ in range(n)]
    return Case(texts, [number[e] for e in episodes], [draw(st.floats(-5, 5)) for _ in range(n)], days)


@given(cases(), st.integers(1, 90), st.one_of(st.none(), st.integers(1, 4)))
def test_limits_hold_and_nothing_is_left_out_in_silence(case: Case, max_tokens: int, k: int | None) -> None:
    result = case.lay(k=k, max_tokens=max_tokens)
    assert result.tokens <= max_tokens + 1e-6
    assert result.tokens == universal(result.text)
    assert k is None or len(result.portions) <= k
    for portion in result.portions:
        every = case.turns.rows(portion.ranked.episode).tolist()
        assert list(portion.rows) == [row for row in every if row in portion.rows]
        assert portion.omitted == len(every) - len(portion.rows)
        for row, text in zip(portion.rows, portion.texts, strict=True):
            assert text == case.texts[row] or text.endswith(CUT)
        spoken = [row for row in every if case.texts[row].strip()]
        number = result.portions.index(portion) + 1
        partly = any(row not in portion.rows for row in spoken)
        assert f"[{number}{'...' if partly else ''}]" in result.text.split()


@given(cases(), st.one_of(st.none(), st.integers(1, 4)))
def test_a_budget_that_is_large_enough_changes_nothing(case: Case, k: int | None) -> None:
    assert case.lay(k=k, max_tokens=100_000).text == case.lay(k=k).text


def test_both_estimators_are_additive_enough_for_the_budget() -> None:
    case = Case(["a b", "c d e"], [0, 1], [1, 2])
    result = assemble(case.ranked, case.turns, case.give, published, 5, 12, Assembly())
    assert published(result.text) <= 12


@pytest.mark.parametrize("bad", [{"k": 0}, {"max_tokens": 0}, {"max_messages": 0}, {"max_messages": 4, "overlap": 4}])
def test_settings_out_of_range_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        Assembly(**bad)
