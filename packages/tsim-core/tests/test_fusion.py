from __future__ import annotations

import itertools
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tsim_core.errors import ConfigError
from tsim_core.fusion import FusedRanking, TurnTable, rank_fused
from tsim_core.index.lexical import LexicalIndex, Matches
from tsim_core.labels import Labels
from tsim_core.lexical import hashed_terms, query_terms
from tsim_core.ranking import RankedEpisode

WORDS = ["rule", "budget", "deploy", "kiosk", "fridge", "PEG-20", "report", "rain", ""]


def table(texts: list[str], episodes: list[int], speakers: list[str | None] | None = None) -> TurnTable:
    return TurnTable(
        np.array(episodes, dtype=np.int64),
        np.array([float(len(text.split())) for text in texts]),
        Labels.of(s or ("user", "assistant")[i % 2] for i, s in enumerate(speakers or [None] * len(texts))),
        np.full(len(texts), np.nan),
    )


def matches_of(texts: list[str], query: str) -> Matches:
    index = LexicalIndex()
    terms = [hashed_terms(text) for text in texts]
    lengths = np.array([len(t) for t in terms], dtype=np.int64)
    index.add(np.concatenate([np.zeros(0, dtype=np.uint32), *terms]), lengths)
    return index.matches(np.concatenate(query_terms(query)))


def rank(
    texts: list[str],
    episodes: list[int],
    query: str,
    cosines: list[float] | None = None,
    speakers: list[str | None] | None = None,
    config: FusedRanking | None = None,
    allowed: np.ndarray | None = None,
) -> list[RankedEpisode]:
    return rank_fused(
        query,
        np.array(cosines or [0.0] * len(texts), dtype=np.float32),
        matches_of(texts, query),
        table(texts, episodes, speakers),
        unit,
        config or FusedRanking(),
        allowed=allowed,
    )


def unit(rows: np.ndarray) -> np.ndarray:
    """Vectors of a thread in which no turn is like another."""
    return np.eye(128, dtype=np.float32)[rows]


@st.composite
def threads(draw: st.DrawFn) -> tuple[list[str], list[int], list[float]]:
    n = draw(st.integers(1, 14))
    texts = [" ".join(draw(st.lists(st.sampled_from(WORDS), max_size=5))) for _ in range(n)]
    labels = [draw(st.integers(0, 4)) for _ in range(n)]
    number = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    return texts, [number[label] for label in labels], [draw(st.floats(-1, 1, width=32)) for _ in range(n)]


@given(threads(), st.sampled_from(WORDS))
def test_every_episode_is_ranked_and_evidence_sums_to_its_score(
    thread: tuple[list[str], list[int], list[float]], query: str
) -> None:
    texts, episodes, cosines = thread
    ranked = rank(texts, episodes, query, cosines)
    with_head = {r.episode: {episodes[row] for row in r.turn_scores} for r in ranked}
    assert all(head in theirs for head, theirs in with_head.items())
    assert sorted(e for theirs in with_head.values() for e in theirs) == sorted(set(episodes))
    assert all(a.score >= b.score - 1e-4 for a, b in itertools.pairwise(ranked))
    for r in ranked:
        assert r.score == pytest.approx(sum(r.evidence.values()), abs=1e-6)
        lent = r.evidence["nearby"]
        assert lent >= 0
        best = r.score - lent  # none of these episodes is long, and so few stand out above none
        own = [row for row, episode in enumerate(episodes) if episode == r.episode]
        assert best == pytest.approx(max(r.turn_scores[row] for row in own), abs=1e-4)
        assert sorted(r.turn_scores) == [row for row, e in enumerate(episodes) if e in with_head[r.episode]]


@given(threads(), st.data())
def test_what_is_not_allowed_changes_nothing(
    thread: tuple[list[str], list[int], list[float]], data: st.DataObject
) -> None:
    texts, episodes, cosines = thread
    allowed = np.array([data.draw(st.booleans()) for _ in texts])
    kept = np.flatnonzero(allowed).tolist()
    found = rank(texts, episodes, "rule PEG-20", cosines, allowed=allowed)
    number = {e: i for i, e in enumerate(sorted({episodes[row] for row in kept}))}
    alone = rank(
        [texts[row] for row in kept],
        [number[episodes[row]] for row in kept],
        "rule PEG-20",
        [cosines[row] for row in kept],
    )
    assert [number[r.episode] for r in found] == [r.episode for r in alone]
    assert [r.score for r in found] == pytest.approx([r.score for r in alone], abs=1e-5)
    assert [row for r in found for row in r.turn_scores] == [kept[row] for r in alone for row in r.turn_scores]


def test_nothing_is_ranked_in_an_empty_thread() -> None:
    assert rank([], [], "rule") == []


def test_a_rare_word_finds_its_episode() -> None:
    texts = ["rain today", "more rain", "see PEG-20", "fine", "rain again", "and rain"]
    assert rank(texts, [0, 0, 1, 1, 2, 2], "what of PEG-20?")[0].episode == 1


def test_likeness_finds_where_no_word_does() -> None:
    texts = ["rain", "rain", "kiosk", "kiosk", "rain", "rain"]
    assert rank(texts, [0, 0, 1, 1, 2, 2], "stall", [0.1, 0.1, 0.1, 0.7, 0.1, 0.1])[0].episode == 1


def test_the_scale_of_an_embedder_does_not_matter() -> None:
    texts = ["rain rule", "rain", "kiosk budget", "kiosk", "deploy", "rain"]
    low = [0.02, 0.05, 0.3, 0.4, 0.1, 0.0]
    high = [0.8 + 0.1 * value for value in low]
    first, second = (rank(texts, [0, 0, 1, 1, 2, 2], "rain", cosines) for cosines in (low, high))
    assert [r.score for r in first] == pytest.approx([r.score for r in second], abs=1e-3)


def test_a_neighbour_of_a_hit_scores_more_than_a_turn_far_from_it() -> None:
    texts = ["rain"] * 12
    texts[3] = "kiosk"
    scores = {row: s for r in rank(texts, [0] * 12, "kiosk") for row, s in r.turn_scores.items()}
    assert scores[3] > scores[4] > scores[5] > scores[10]


def test_context_does_not_cross_threads() -> None:
    texts = ["rain", "kiosk", "rain", "rain", "rain", "rain"]
    turns = table(texts, [0, 0, 1, 1, 1, 1])
    turns.thread_of_row = np.array([0, 0, 1, 1, 1, 1])
    ranked = rank_fused("kiosk", np.zeros(6, np.float32), matches_of(texts, "kiosk"), turns, unit, FusedRanking())
    scores = {row: s for r in ranked for row, s in r.turn_scores.items()}
    assert scores[2] == pytest.approx(scores[5])
    assert scores[0] > scores[2]


def test_who_is_named_is_who_spoke() -> None:
    texts = ["hi Ann, rain", "rain kiosk", "hi Bob, rain", "rain kiosk"]
    speakers: list[str | None] = ["Bob", "Ann", "Ann", "Bob"]
    scores = {
        row: s for r in rank(texts, [0] * 4, "kiosk of Ann", speakers=speakers) for row, s in r.turn_scores.items()
    }
    assert scores[1] > scores[3]
    assert rank(texts, [0] * 4, "kiosk of Ann and Bob", speakers=speakers)[0].evidence["speaker"] == 0


def test_who_is_named_is_who_a_label_names() -> None:
    texts = ["Bob: hi Ann, rain", "Ann: rain kiosk", "Ann: hi Bob, rain", "Bob: rain kiosk"]
    scores = {row: s for r in rank(texts, [0] * 4, "kiosk of Ann") for row, s in r.turn_scores.items()}
    assert scores[1] > scores[3]


def test_a_word_with_a_colon_here_and_there_names_nobody() -> None:
    texts = ["Note: rain", "kiosk", "Note: kiosk", "rain"] + ["deploy it"] * 80
    assert all(r.evidence["speaker"] == 0 for r in rank(texts, [0, 0, 1, 1] + [2] * 80, "which note had the kiosk"))


def test_a_time_that_the_query_names_finds_its_turns() -> None:
    texts = ["kiosk rain", "rain", "kiosk rain", "rain", "kiosk rain", "rain"]
    turns = table(texts, [0, 0, 1, 1, 2, 2])
    day = 86400.0
    turns.timestamps = np.array([0, 0, 60, 60, 90, 90]) * day + datetime(2024, 1, 1, tzinfo=UTC).timestamp()

    def best(query: str) -> int:
        cosines = np.zeros(6, np.float32)
        return rank_fused(query, cosines, matches_of(texts, query), turns, unit, FusedRanking(nearby=0))[0].episode

    assert best("kiosk in January") == 0
    assert best("kiosk last March") == 1
    assert best("kiosk on 31 March 2024") == 2
    assert best("kiosk a year ago") == best("kiosk")


def test_roles_name_nobody() -> None:
    texts = ["rain", "kiosk", "rain", "kiosk"]
    assert rank(texts, [0] * 4, "what did the user say")[0].evidence["speaker"] == 0


def test_blank_turns_do_not_shift_the_scale() -> None:
    texts, cosines = ["rain rule", "kiosk", "deploy", "budget"], [0.8, 0.82, 0.9, 0.85]
    plain = rank(texts, [0, 1, 2, 3], "none", cosines)
    blank = rank([*texts, "", ""], [0, 1, 2, 3, 3, 3], "none", [*cosines, 0.0, 0.0])
    assert [r.episode for r in plain] == [r.episode for r in blank]
    raw = [{r.episode: r.evidence["episode_raw"] for r in ranked} for ranked in (plain, blank)]
    assert raw[0] == pytest.approx(raw[1], abs=1e-5)


def test_a_long_episode_lends_its_turns_little() -> None:
    texts = ["kiosk", "rain", "rain", "rain"] + ["deploy"] * 12
    episodes = [0, 0, 1, 1] + [2] * 12
    gaps = []
    for compact in (400.0, 1.0):
        ranked = rank(texts, episodes, "kiosk", config=FusedRanking(compact=compact, neighbour=0))
        scores = {row: s for r in ranked for row, s in r.turn_scores.items()}
        gaps.append(scores[1] - scores[2])
    assert gaps[0] > gaps[1] > 0


def test_ties_go_to_the_newer_episode() -> None:
    assert [r.episode for r in rank(["rain"] * 3, [0, 1, 2], "kiosk")] == [2, 1, 0]


@pytest.mark.parametrize(("name", "value"), [("raw", -1.0), ("neighbour", 1.5), ("b", 2.0), ("idf_power", -0.1)])
def test_constants_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        FusedRanking(**{name: value})


def test_weights_that_rank_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match="nothing could be ranked"):
        FusedRanking(raw=0, context=0, lexical=0, episode_lexical=0, episode_raw=0)


def test_an_episode_that_stands_out_comes_whole_before_turns_of_others() -> None:
    """Under a budget, the second turn of the best episode comes before the best turns of the tenth."""
    texts = [f"{'PEG-20 budget rule' if i == 0 else 'rain'} {i}" for i in range(40)]
    episodes = [i // 2 for i in range(40)]
    cosines = [0.9, 0.1, *[0.2 + i / 400 for i in range(38)]]
    ranked = {r.episode: r for r in rank(texts, episodes, "PEG-20 budget rule", cosines)}
    assert ranked[0].turn_scores[1] > max(ranked[19].turn_scores.values()) + 5
    assert ranked[19].score == pytest.approx(max(ranked[19].turn_scores.values()), abs=1e-4), "nothing for the rest"


def test_what_was_asked_before_lends_nothing_to_what_was_said_around_it() -> None:
    texts = ["the fridge is full", "where is PEG-20 kept", "rain", *["report"] * 40]
    episodes = list(range(len(texts)))
    asked = [0.1, 1.0, 0.1, *[0.05] * 40]
    repeated = {r.episode: r for r in rank(texts, episodes, "where is PEG-20 kept", asked)}
    stated = {r.episode: r for r in rank(texts, episodes, "where is PEG-20 kept", [0.1, 0.8, 0.1, *[0.05] * 40])}
    assert sorted(stated[1].turn_scores) == [0, 1, 2], "what was said around it comes with it"
    assert sorted(repeated[1].turn_scores) == [1]
    assert repeated[0].evidence["nearby"] == 0
