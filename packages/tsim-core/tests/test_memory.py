"""The facade: namespaces, persistence, forgetting, and the invariants of segmentation through all of it."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tsim_core import (
    DuplicateTurnError,
    EmbedderError,
    EpisodicMemory,
    InputError,
    ReadOnlyError,
    StoreClosedError,
    StoreError,
    StoreFormatError,
    StoreMismatchError,
    StoreNotFoundError,
    Thread,
    TSIMConfig,
    Turn,
)
from tsim_core.lending import Around

from .conftest import WordEmbedder

WORDS = ["cat", "dog", "fish", "bird", "red", "green", "blue", "loud", "soft", "deep", "tall", "warm"]
TURNS = st.lists(
    st.builds(
        Turn,
        st.sampled_from(["user", "assistant", "tool", "system"]),
        st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    ),
    max_size=40,
)
CONFIGS = [TSIMConfig.default(), TSIMConfig.paper().replace(l_min=10, l_max=40), TSIMConfig.longmemeval()]


@pytest.fixture
def memory(embedder: WordEmbedder) -> Iterator[EpisodicMemory]:
    with EpisodicMemory(embedder=embedder) as memory:
        yield memory


def shape(thread: Thread) -> list[tuple[int, int, str, str]]:
    return [(s.start, s.end, s.cut, s.episode) for s in thread.segments()]


def closed(thread: Thread) -> list[tuple[int, int, str, str]]:
    return [(s.start, s.end, s.cut, s.episode) for s in thread.segments() if s.closed]


# invariants


@pytest.mark.parametrize("config", CONFIGS, ids=["default", "paper", "longmemeval"])
@settings(max_examples=25)
@given(turns=TURNS)
def test_every_turn_lies_in_exactly_one_segment_and_one_episode_in_order(config: TSIMConfig, turns: list[Turn]) -> None:
    with EpisodicMemory(embedder=WordEmbedder(), config=config) as memory:
        thread = memory.thread("t")
        ids = thread.extend(turns)
        spans = [(s.start, s.end) for s in thread.segments()]
        assert [p for start, end in spans for p in range(start, end)] == list(range(len(turns)))
        episodes = thread.episodes()
        assert sorted(t.id or "" for e in episodes for t in e.turns) == sorted(ids)
        for episode in episodes:
            order = [ids.index(t.id or "") for t in episode.turns]
            assert order == sorted(order)
            assert sum(s.end - s.start for s in episode.segments) == len(episode.turns)
        assert memory.check() == []


@pytest.mark.parametrize("config", CONFIGS, ids=["default", "paper", "longmemeval"])
@settings(max_examples=20)
@given(turns=TURNS, data=st.data())
def test_streaming_equals_batch_and_a_prefix_gives_a_prefix(
    config: TSIMConfig, turns: list[Turn], data: st.DataObject
) -> None:
    with EpisodicMemory(embedder=WordEmbedder(), config=config) as memory:
        batch, stream = memory.thread("t"), memory.thread("u")
        for i, turn in enumerate(turns):
            stream.add(turn)
            prefix = closed(stream)
            assert [s[:3] for s in prefix] == [s[:3] for s in closed(stream)][: len(prefix)]
            if i == len(turns) // 2:
                half = [s[:3] for s in prefix]
        batch.extend(turns)
        assert [s[:3] for s in shape(batch)] == [s[:3] for s in shape(stream)]
        if turns:
            assert [s[:3] for s in closed(batch)][: len(half)] == half
        partition = [{s.start for s in e.segments} for e in batch.episodes()]
        assert partition == [{s.start for s in e.segments} for e in stream.episodes()]


@pytest.mark.parametrize("config", CONFIGS, ids=["default", "paper", "longmemeval"])
@settings(max_examples=15)
@given(turns=TURNS, cuts=st.lists(st.integers(0, 40), max_size=3))
def test_closing_and_reopening_anywhere_changes_no_later_decision(
    config: TSIMConfig, turns: list[Turn], cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("store") / "m.db"
    bounds = [0, *sorted(min(c, len(turns)) for c in cuts), len(turns)]
    for start, end in pairwise(bounds):
        with EpisodicMemory(path, embedder=WordEmbedder(), config=config) as memory:
            memory.thread("t").extend(turns[start:end])
    with (
        EpisodicMemory(path, embedder=WordEmbedder()) as memory,
        EpisodicMemory(embedder=WordEmbedder(), config=config) as whole,
    ):
        whole.thread("t").extend(turns)
        assert shape(memory.thread("t")) == shape(whole.thread("t"))
        query = turns[0].text if turns and turns[0].text else "cat"
        a, b = memory.thread("t").recall(query), whole.thread("t").recall(query)
        assert [(e.id, e.score) for e in a.episodes] == [(e.id, pytest.approx(e.score)) for e in b.episodes]
        assert a.text == b.text


@pytest.mark.parametrize("config", CONFIGS, ids=["default", "paper", "longmemeval"])
@settings(max_examples=20)
@given(turns=TURNS, query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join))
def test_evidence_sums_to_the_score_and_limits_hold(config: TSIMConfig, turns: list[Turn], query: str) -> None:
    with EpisodicMemory(embedder=WordEmbedder(), config=config) as memory:
        thread = memory.thread("t")
        ids = set(thread.extend(turns))
        recall = thread.recall(query, k=3, max_tokens=60)
        assert len(recall.episodes) <= 3
        assert recall.tokens <= 60
        assert recall.tokens == pytest.approx(config.estimator(recall.text), abs=1)
        scores = [e.score for e in recall.episodes]
        assert scores == sorted(scores, reverse=True)
        for episode in recall.episodes:
            assert sum(episode.evidence.values()) == pytest.approx(episode.score, abs=1e-6)
            assert {t.id for t in episode.turns} <= ids
            assert type(episode.score) is float


def test_nothing_depends_on_the_hash_seed(tmp_path: Path) -> None:
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import WordEmbedder
from tsim_core import EpisodicMemory, Turn
words = "cat dog fish bird red green blue loud soft deep tall warm".split()
texts = [" ".join(words[(i // 4 + j) % 12] for j in range(5)) for i in range(60)]
turns = [Turn("assistant" if i % 2 else "user", text) for i, text in enumerate(texts)]
with EpisodicMemory(embedder=WordEmbedder()) as memory:
    thread = memory.thread("t")
    thread.extend(turns)
    print([(s.start, s.end, s.similarity, s.episode) for s in thread.segments()])
    recall = thread.recall("red fish")
    print([(e.id, e.score, dict(e.evidence)) for e in recall.episodes], recall.text)
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(outputs) == 1


# namespaces


def test_namespaces_never_meet(memory: EpisodicMemory) -> None:
    names = [("team_a",), ("team", "a"), ("team",), ("team/a",), ('team","a',), ("te",), ("ünï\udc80", "\x00")]
    for i, name in enumerate(names):
        memory.thread(*name).add("user", f"secret number {i}")
    assert memory.threads() == names
    for i, name in enumerate(names):
        assert [t.text for t in memory.thread(*name).turns()] == [f"secret number {i}"]
    assert memory.threads(("team",)) == [("team", "a"), ("team",)]
    memory.thread("team").clear()
    assert ("team",) not in memory.threads()
    assert len(memory.thread("team", "a")) == 1


def test_recall_over_a_prefix_stays_inside_it(memory: EpisodicMemory) -> None:
    memory.thread("alice", "x").add("user", "the red cat")
    memory.thread("alice", "y").add("user", "the red dog")
    memory.thread("alice2", "x").add("user", "the red fish")
    found = memory.recall("red", prefix=("alice",))
    assert {e.thread for e in found.episodes} == {("alice", "x"), ("alice", "y")}
    assert "fish" not in found.text
    with pytest.raises(InputError, match="needs a name"):
        memory.recall("red", prefix=())
    with pytest.raises(InputError, match="is one string"):
        memory.recall("red", prefix="alice")


@pytest.mark.parametrize("name", [(), ("",), ("a", ""), (None,), (7,)])
def test_a_name_that_is_none_is_an_error(memory: EpisodicMemory, name: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        memory.thread(*name)


# recall


def test_the_open_episode_is_found_at_once(memory: EpisodicMemory) -> None:
    thread = memory.thread("t")
    thread.add("user", "the vault code is seven")
    assert thread.recall("vault code").episodes[0].turns[0].text == "the vault code is seven"


@pytest.mark.parametrize(
    "turns", [[], [Turn("user", "one")], [Turn("user", "")], [Turn("tool", "a"), Turn("tool", "b")]]
)
def test_tiny_threads_are_valid(memory: EpisodicMemory, turns: list[Turn]) -> None:
    thread = memory.thread("t")
    thread.extend(turns)
    recall = thread.recall("one")
    assert recall.tokens == 0 or recall.episodes
    assert sum(len(e.turns) for e in thread.episodes()) == len(turns)


def test_a_blank_query_finds_nothing(memory: EpisodicMemory) -> None:
    memory.thread("t").add("user", "hello")
    assert memory.thread("t").recall("  ").episodes == ()


@pytest.mark.parametrize("limits", [{"k": 0}, {"k": -1}, {"max_tokens": 0}, {"k": 1.5}, {"k": True}])
def test_a_limit_that_is_none_is_an_error(memory: EpisodicMemory, limits: dict[str, int]) -> None:
    with pytest.raises(InputError, match="expected a whole number"):
        memory.thread("t").recall("x", **limits)


@pytest.mark.parametrize("config", CONFIGS[:2], ids=["default", "paper"])
def test_filters_hold_in_every_view(config: TSIMConfig) -> None:
    with EpisodicMemory(embedder=WordEmbedder(), config=config) as memory:
        thread = memory.thread("t")
        for month in (1, 2, 3):
            when = datetime(2026, month, 1, tzinfo=UTC)
            thread.add("user", f"red cat number {month}", timestamp=when, metadata={"month": month})
        thread.add("user", "red cat of no date")

        def texts(**filters: object) -> set[str]:
            return {t.text for e in thread.recall("red cat", **filters).episodes for t in e.turns}

        assert texts(before=datetime(2026, 2, 1, tzinfo=UTC)) == {"red cat number 1"}
        assert texts(after=datetime(2026, 2, 1)) == {"red cat number 2", "red cat number 3"}
        assert texts(where={"month": 3}) == {"red cat number 3"}
        assert texts(where={"month": 9}) == set()


def test_excluded_turns_are_left_out_where_they_are_meant(memory: EpisodicMemory) -> None:
    for name in ("a", "b"):
        memory.thread("u", name).extend([Turn("user", "red cat", id="1"), Turn("user", "red dog", id="2")])
    recall = memory.thread("u", "a").recall("red", exclude=["1", "none"])
    assert [t.text for e in recall.episodes for t in e.turns] == ["red dog"]
    recall = memory.recall("red", prefix=("u",), exclude={("u", "a"): ["1", "2"]})
    assert {(e.thread, t.id) for e in recall.episodes for t in e.turns} == {(("u", "b"), "1"), (("u", "b"), "2")}


# writing


def test_a_turn_added_again_is_one_turn(memory: EpisodicMemory) -> None:
    thread = memory.thread("t")
    assert thread.add("user", "hi", id="a") == thread.add("user", "hi", id="a") == "a"
    assert len(thread) == 1
    with pytest.raises(DuplicateTurnError, match=r"'a'.*other content"):
        thread.extend([Turn("user", "new"), Turn("user", "not hi", id="a")])
    assert len(thread) == 1


def test_given_ids_and_made_ones_never_collide(memory: EpisodicMemory) -> None:
    thread = memory.thread("t")
    ids = thread.extend([Turn("user", "x"), Turn("user", "y", id="t3"), Turn("user", "z"), Turn("user", "w")])
    ids.append(thread.add("user", "v"))
    assert len(set(ids)) == 5


def test_equal_texts_are_embedded_once(embedder: WordEmbedder) -> None:
    with EpisodicMemory(embedder=embedder) as memory:
        embedder.texts.clear()
        memory.thread("t").extend([Turn("user", "ok"), Turn("assistant", "ok"), Turn("user", " ")])
        memory.thread("u").add("user", "ok")
        assert embedder.texts == ["ok"]


@pytest.mark.parametrize(
    "turn",
    [
        Turn("", "x"),
        Turn("user", None),  # type: ignore[arg-type]
        Turn("user", "x", id=""),
        Turn("user", "x", id="\ud800"),
        Turn("user", "x", timestamp="yesterday"),  # type: ignore[arg-type]
        Turn("user", "x", metadata={"a": object()}),
        Turn("user", "x", metadata={"a": float("nan")}),
        "text",
    ],
)
def test_a_turn_that_is_none_is_an_error_and_nothing_is_stored(memory: EpisodicMemory, turn: Turn) -> None:
    thread = memory.thread("t")
    with pytest.raises(InputError):
        thread.extend([Turn("user", "good"), turn])
    assert thread.turns() == []


@pytest.mark.parametrize("text", ["\ud83d lone", "nul \x00 inside", "x" * 1_000_000, "\u202eright to left", "👩‍👩‍👧"])
def test_hard_text_comes_back_unchanged(tmp_path: Path, text: str) -> None:
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        memory.thread("t").add("user", text)
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        thread = memory.thread("t")
        assert [t.text for t in thread.turns()] == [text]
        recall = thread.recall(text[:50], max_tokens=200)
        assert recall.tokens <= 200
        recall.text.encode()
        assert memory.check() == []


def test_all_of_a_turn_comes_back(tmp_path: Path) -> None:
    turn = Turn("planner", "x", "id 1", datetime(2026, 3, 1, 12, tzinfo=UTC), {"a": [1, {"b": None}], "é": "ü"})
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        memory.thread("t").add(turn)
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        assert memory.thread("t").turns() == [turn]


# embedders that misbehave


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (np.full((1, 64), np.nan, np.float32), "NaN"),
        (np.zeros((1, 64), np.float32), "zero vector"),
        (np.ones((1, 32), np.float32), r"shape \(1, 32\); expected \(1, 64\)"),
        (np.ones((2, 64), np.float32), r"expected \(1, 64\)"),
        ("text", "no array"),
    ],
)
def test_a_bad_embedding_is_an_error_and_nothing_is_stored(output: object, message: str) -> None:
    embedder = WordEmbedder()
    with EpisodicMemory(embedder=embedder) as memory:
        thread = memory.thread("t")
        thread.add("user", "before")
        good = embedder.embed
        embedder.embed = lambda texts: output  # type: ignore[method-assign,assignment,return-value]
        with pytest.raises(EmbedderError, match=message):
            thread.add("user", "during")
        embedder.embed = good  # type: ignore[method-assign]
        thread.add("user", "after")
        assert [t.text for t in thread.turns()] == ["before", "after"]
        assert memory.check() == []


# the file


def test_another_embedder_is_named_with_the_way_out(tmp_path: Path) -> None:
    class Other(WordEmbedder):
        name = "others"

    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        memory.thread("t").extend([Turn("user", "red cat"), Turn("assistant", "blue dog")])
    with pytest.raises(StoreMismatchError, match=r"'words'.*'others'.*tsim reindex"):
        EpisodicMemory(tmp_path / "m.db", embedder=Other())
    assert EpisodicMemory.reindex(tmp_path / "m.db", embedder=Other()) == 2
    with EpisodicMemory(tmp_path / "m.db", embedder=Other()) as memory:
        assert memory.thread("t").recall("cat").episodes[0].turns[0].text == "red cat"
        assert memory.check() == []


def test_another_segmentation_is_an_error_and_another_ranking_is_not(tmp_path: Path) -> None:
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        memory.thread("t").add("user", "red cat")
    with pytest.raises(StoreMismatchError, match="another configuration of segmentation"):
        EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder(), config=TSIMConfig.paper())
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder(), config=TSIMConfig.default().replace(k=2)) as m:
        assert m.config.assembly.k == 2
    EpisodicMemory.reindex(tmp_path / "m.db", embedder=WordEmbedder(), config=TSIMConfig.paper())
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        assert memory.config == TSIMConfig.paper()
        assert memory.check() == []


def test_what_is_no_store_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="no store at"):
        EpisodicMemory(tmp_path / "none.db", create=False)
    with pytest.raises(StoreNotFoundError, match="folder"):
        EpisodicMemory(tmp_path / "no" / "m.db")
    with pytest.raises(StoreFormatError, match="folder"):
        EpisodicMemory(tmp_path)
    (tmp_path / "text").write_text("hello " * 200)
    with pytest.raises(StoreFormatError, match="SQLite"):
        EpisodicMemory(tmp_path / "text")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE x (y)").connection.close()
    with pytest.raises(StoreFormatError, match="no TSIM store"):
        EpisodicMemory(tmp_path / "other.db")
    assert not (tmp_path / "none.db").exists()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()).close()
    with sqlite3.connect(tmp_path / "m.db") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreFormatError, match=r"99.*upgrade"):
        EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder())


def test_a_full_disk_stores_nothing_and_says_so(tmp_path: Path) -> None:
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        thread = memory.thread("t")
        thread.add("user", "before")
        db = memory._store._db  # type: ignore[attr-defined]
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match=r"full.*nothing was stored"):
            thread.extend([Turn("user", f"{i} " * 2000) for i in range(20)])
        db.execute("PRAGMA max_page_count = 1000000")
        thread.add("user", "after")
        assert [t.text for t in thread.turns()] == ["before", "after"]
        assert memory.check() == []


def test_a_memory_that_nobody_closes_closes_its_store() -> None:
    memory = EpisodicMemory(embedder=WordEmbedder())
    memory.thread("a").add("user", "The boat is blue.")
    store = memory._store
    del memory
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        store.meta()


def test_closed_and_read_only_memories_refuse(tmp_path: Path) -> None:
    memory = EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder())
    memory.thread("t").add("user", "red cat")
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder(), read_only=True) as reader:
        assert reader.thread("t").recall("cat").episodes
        for write in (
            lambda: reader.thread("t").add("user", "x"),
            lambda: reader.thread("t").clear(),
            lambda: reader.thread("t").reconcile([Turn("user", "y")]),
            lambda: reader.thread("t").forget(["t0"]),
        ):
            with pytest.raises(ReadOnlyError, match="read_only"):
                write()
        memory.thread("t").add("user", "blue dog")
        assert len(reader.thread("t")) == 2, "a reader sees what another process commits"
        memory.thread("t").forget(["t0"])
        assert [t.text for t in reader.thread("t").turns()] == ["blue dog"]
        assert "cat" not in reader.thread("t").recall("cat").text
    memory.close()
    memory.close()
    for use in (lambda: memory.thread("t").add("user", "x"), lambda: memory.thread("t").recall("x"), memory.stats):
        with pytest.raises(StoreClosedError):
            use()


def test_what_is_forgotten_is_in_no_view_and_not_in_the_bytes(tmp_path: Path) -> None:
    for config in CONFIGS:
        path = tmp_path / f"{config.tokens}{config.assembly.k}.db"
        with EpisodicMemory(path, embedder=WordEmbedder(), config=config) as memory:
            thread = memory.thread("t")
            thread.extend(Turn("user", f"cat {word} number", id=word) for word in WORDS)
            thread.add("user", "the zanzibarsecret word", id="s")
            assert thread.forget(["s", "red"]) == 2
            assert memory.check() == []
            assert "zanzibar" not in thread.recall("zanzibarsecret word", k=50).text
            assert "s" not in {t.id for e in thread.recall("zanzibarsecret", k=50).episodes for t in e.turns}
            thread.add("user", "more cat")
            assert memory.check() == []
            with pytest.raises(InputError, match="no turn 's'"):
                thread.forget(["cat", "s"])
            every = b"".join(f.read_bytes() for f in tmp_path.iterdir() if f.name.startswith(path.name))
            assert b"zanzibarsecret" not in every
            thread.clear()
            every = b"".join(f.read_bytes() for f in tmp_path.iterdir() if f.name.startswith(path.name))
            assert b"cat" not in every
        assert b"cat" not in path.read_bytes()


def test_a_whole_segment_can_be_forgotten_without_views(embedder: WordEmbedder) -> None:
    every_turn = TSIMConfig.paper().replace(l_min=0, l_max=0, min_messages=1).segmentation
    config = TSIMConfig.default().replace(segmentation=every_turn, linking=None)
    with EpisodicMemory(embedder=embedder, config=config) as memory:
        thread = memory.thread("t")
        ids = [thread.add("user", text) for text in ("red cat", "blue dog", "green cat")]
        thread.forget([ids[0]])
        assert [len(e.turns) for e in thread.episodes()] == [1, 1]
        assert {t.text for e in thread.recall("cat").episodes for t in e.turns} == {"blue dog", "green cat"}


def test_forget_by_time(memory: EpisodicMemory) -> None:
    thread = memory.thread("t")
    for day in range(1, 6):
        thread.add("user", f"day {day}", timestamp=datetime(2026, 1, day, tzinfo=UTC))
    thread.add("user", "undated")
    assert thread.forget(after=datetime(2026, 1, 2), before=datetime(2026, 1, 4)) == 2
    assert [t.text for t in thread.turns()] == ["day 1", "day 4", "day 5", "undated"]
    with pytest.raises(InputError, match="clear"):
        thread.forget()


@pytest.mark.parametrize("name", ["after", "before"])
def test_a_time_that_is_no_datetime_is_named(memory: EpisodicMemory, name: str) -> None:
    thread = memory.thread("t")
    wrong: dict[str, Any] = {name: "2026-03-01"}
    for use in (thread.recall, lambda q, **o: memory.recall(q, prefix=("t",), **o), lambda _, **o: thread.forget(**o)):
        with pytest.raises(InputError, match=f"{name}='2026-03-01' is str; expected a datetime"):
            use("cat", **wrong)
    with pytest.raises(InputError, match="where='x' is str"):
        thread.recall("cat", where="x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"pass a list of turn ids, such as \['t1'\]"):
        thread.recall("cat", exclude="t1")


def test_export_and_import(tmp_path: Path) -> None:
    turns = [Turn("user", f"{w} cat", metadata={"w": w}, timestamp=datetime(2026, 1, 1, tzinfo=UTC)) for w in WORDS]
    with EpisodicMemory(embedder=WordEmbedder()) as one, EpisodicMemory(embedder=WordEmbedder()) as two:
        one.thread("a", "x").extend(turns)
        one.thread("b").add("user", "lone \ud83d surrogate")
        assert one.export(tmp_path / "e.jsonl") == 13
        assert two.import_(tmp_path / "e.jsonl") == 13
        assert two.import_(tmp_path / "e.jsonl") == 0, "again changes nothing"
        two.thread("b").clear()
        assert two.import_(tmp_path / "e.jsonl") == 1, "only what is missing"
        for name in (("a", "x"), ("b",)):
            assert two.thread(*name).turns() == one.thread(*name).turns()
            assert shape(two.thread(*name)) == shape(one.thread(*name))
        assert one.export(tmp_path / "b.jsonl", prefix=("b",)) == 1
        lines = (tmp_path / "e.jsonl").read_text().splitlines()
        (tmp_path / "bad.jsonl").write_text("\n".join([*lines[:5], "{broken", *lines[5:]]))
        with EpisodicMemory(embedder=WordEmbedder()) as three:
            with pytest.raises(InputError, match="line 6"):
                three.import_(tmp_path / "bad.jsonl")
            assert three.threads() == []


def test_what_is_no_export_is_told_from_a_transcript(tmp_path: Path, memory: EpisodicMemory) -> None:
    path = tmp_path / "talk"
    for text in ("User: hello\n", '{"role": "user", "text": "hello"}\n', ""):
        path.write_text(text)
        with pytest.raises(InputError, match=r"talk.*`tsim ingest` reads transcripts"):
            memory.import_(path)
    path.write_text('{"tsim": 99}\n')
    with pytest.raises(InputError, match="line 1: format 99"):
        memory.import_(path)
    with pytest.raises(InputError, match="cannot be read"):
        memory.import_(tmp_path)


def test_an_export_that_cannot_be_written_leaves_nothing(tmp_path: Path, memory: EpisodicMemory) -> None:
    memory.thread("t").add("user", "red cat")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match=r"folder cannot be written: Is a directory"):
        memory.export(tmp_path / "folder")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


# many at once


def test_many_threads_of_execution_lose_and_mix_nothing(tmp_path: Path) -> None:
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        errors: list[BaseException] = []

        def work(user: int) -> None:
            try:
                thread = memory.thread(f"user{user % 5}")
                for i in range(10):
                    thread.add("user", f"user{user % 5} says {i} from {user}")
                    assert f"user{user % 5}" in thread.recall(f"says {i}").text
            except BaseException as error:
                errors.append(error)

        workers = [threading.Thread(target=work, args=(n,)) for n in range(10)]
        [w.start() for w in workers]
        [w.join() for w in workers]
        assert errors == []
        for user in range(5):
            texts = [t.text for t in memory.thread(f"user{user}").turns()]
            assert len(texts) == 20
            assert len(set(texts)) == 20
            assert all(text.startswith(f"user{user} ") for text in texts)
        assert memory.check() == []


def test_two_memories_write_the_same_file(tmp_path: Path) -> None:
    with (
        EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as one,
        EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as two,
    ):
        for i in range(20):
            (one, two)[i % 2].thread("t").add("user", f"{WORDS[i % 12]} {i}")
        assert [t.text for t in one.thread("t").turns()] == [f"{WORDS[i % 12]} {i}" for i in range(20)]
        with EpisodicMemory(embedder=WordEmbedder()) as alone:
            alone.thread("t").extend(one.thread("t").turns())
            assert shape(alone.thread("t")) == shape(two.thread("t"))
        assert one.check() == two.check() == []


def test_a_killed_process_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    script = """
import os, sys
sys.path.insert(0, sys.argv[1])
from conftest import WordEmbedder
from tsim_core import EpisodicMemory
memory = EpisodicMemory(sys.argv[2], embedder=WordEmbedder())
for i in range(7):
    memory.thread("t").add("user", f"turn {i}")
os.kill(os.getpid(), 9)
"""
    path = str(tmp_path / "m.db")
    subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(Path(__file__).parent), path], check=False)
    with EpisodicMemory(path, embedder=WordEmbedder()) as memory:
        assert [t.text for t in memory.thread("t").turns()] == [f"turn {i}" for i in range(7)]
        assert memory.check() == []


async def test_async_twins_do_the_same_and_leave_the_loop_free(memory: EpisodicMemory) -> None:
    thread = memory.thread("t")
    ticks = 0

    async def ticker() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    task = asyncio.create_task(ticker())
    await thread.aadd("user", "red cat", id="a")
    await thread.aextend(Turn("user", f"dog {i}") for i in range(300))
    await thread.areconcile([Turn("user", "dog 299"), Turn("user", "fish")])
    assert (await thread.arecall("red cat", k=1)).episodes
    assert (await memory.arecall("red cat", prefix=("t",), k=1)).episodes
    assert await thread.aforget(["a"]) == 1
    assert await thread.aclear() == 301
    assert ticks > 3
    task.cancel()
    await memory.aclose()


@pytest.mark.parametrize(
    ("config", "embedded"), [(TSIMConfig.default(), "the key is blue"), (TSIMConfig.paper(), "Ana: the key is blue")]
)
def test_what_is_embedded_is_what_was_said_and_what_is_stored_is_what_was_given(
    embedder: WordEmbedder, config: TSIMConfig, embedded: str
) -> None:
    with EpisodicMemory(embedder=embedder, config=config) as memory:
        embedder.texts.clear()
        memory.thread("a").add("user", "Ana: the key is blue")
        assert embedded in embedder.texts
        assert memory.thread("a").turns()[0].text == "Ana: the key is blue"
        assert memory.check() == []


def test_progress_counts_turns_as_they_are_embedded_and_as_they_are_stored(
    embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsim_core.memory.EMBED_BATCH", 4)
    monkeypatch.setattr("tsim_core.writer.PORTION", 6)
    told: list[tuple[int, int]] = []
    with EpisodicMemory(embedder=embedder) as memory:
        turns = [Turn("user", f"{WORDS[i % len(WORDS)]} {i % 9}") for i in range(14)]
        distinct = len({turn.text for turn in turns})
        memory.thread("t").extend(turns, lambda done, total: told.append((done, total)))
        embedded = [(min(at, distinct), distinct) for at in range(4, distinct + 4, 4)]
        assert told == [*embedded, (6, 14), (12, 14), (14, 14)]
        assert [t.text for t in memory.thread("t").turns()] == [turn.text for turn in turns]
        told.clear()
        assert memory.check(lambda done, total: told.append((done, total))) == []
        assert told[-1] == (14, 14)


@given(st.lists(st.integers(0, 40), unique=True, min_size=1, max_size=30))
def test_what_is_left_of_segments_after_forgetting_says_its_tokens(gone: list[int]) -> None:
    with EpisodicMemory(embedder=WordEmbedder(), config=TSIMConfig.paper()) as memory:
        thread = memory.thread("t")
        thread.extend(Turn("user", f"{WORDS[i // 4 % len(WORDS)]} " * (20 + i)) for i in range(41))
        thread.forget([f"t{i}" for i in gone])
        left = {i: TSIMConfig.paper().estimator(f"{WORDS[i // 4 % len(WORDS)]} " * (20 + i)) for i in range(41)}
        for i in gone:
            del left[i]
        for segment in thread.segments():
            inside = [tokens for i, tokens in left.items() if segment.start <= i < segment.end]
            assert inside
            assert segment.tokens == round(sum(inside))
        assert memory.check() == []


def test_the_last_turns_are_those_that_live(embedder: WordEmbedder) -> None:
    with EpisodicMemory(embedder=embedder) as memory:
        thread = memory.thread("t")
        assert thread.turns(last=3) == []
        thread.extend(Turn("user", word, id=word) for word in WORDS)
        thread.reconcile([Turn("user", word, id=word) for word in WORDS[:9]] + [Turn("user", "new", id="new")])
        memory.thread("t", "u").add("user", "elsewhere")
        every = [*WORDS[:9], "new"]
        for last in (1, 3, len(every), 99):
            assert [turn.text for turn in thread.turns(last=last)] == every[-last:]
        assert thread.turns() == thread.turns(99) == asyncio.run(thread.aturns(99))
        for wrong in (0, -1, True, 1.5):
            with pytest.raises(InputError, match="last"):
                thread.turns(last=wrong)  # type: ignore[arg-type]


def test_what_is_handed_over_with_an_episode_says_what_it_was_counted_to(embedder, monkeypatch):
    thread = EpisodicMemory(embedder=embedder).thread("x")
    for topic in ("crane harbour noon", "bread oven crust", "moss stone rain"):
        for i in range(4):
            thread.add("assistant" if i % 2 else "user", f"{topic} {topic}", id=f"{topic[:5]}-{i}")
    first, second, third = thread.episodes()

    def third_comes_with_first(totals, *_):
        return Around(np.zeros_like(totals), {2: 0})

    monkeypatch.setattr("tsim_core.fusion.look_around", third_comes_with_first)
    best, other = thread.recall("crane harbour", max_tokens=None).episodes
    assert (best.id, other.id) == (first.id, second.id)
    assert best.turns == first.turns + third.turns
    assert [s.episode for s in best.segments] == [first.id, third.id]
    assert (best.omitted, other.omitted) == (0, 0)
    allowed = thread.recall("crane harbour", max_tokens=None, exclude=["crane-0"]).episodes
    assert [len(episode.turns) for episode in allowed] == [7, 4]
