"""The plan that makes a thread equal a history, and what Thread.reconcile makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tsim_core import DuplicateTurnError, EpisodicMemory, Thread, Turn

from .conftest import WordEmbedder


def said(*texts: str, ids: bool = False) -> list[Turn]:
    """Turns that alternate between user and assistant; with ids, the text is the id."""
    return [Turn("assistant" if i % 2 else "user", t, id=t if ids else None) for i, t in enumerate(texts)]


@pytest.fixture
def thread() -> Iterator[Thread]:
    with EpisodicMemory(embedder=WordEmbedder()) as memory:
        yield memory.thread("a", "b")


def texts(thread: Thread) -> list[str]:
    return [turn.text for turn in thread.turns()]


@pytest.mark.parametrize("ids", [False, True])
class TestHistories:
    def test_a_first_history_is_added_whole(self, thread: Thread, ids: bool) -> None:
        done = thread.reconcile(said("a", "b", "c", ids=ids))
        assert texts(thread) == ["a", "b", "c"]
        assert len(done.added) == 3

    def test_twice_changes_nothing(self, thread: Thread, ids: bool) -> None:
        history = said("a", "b", "c", "a", ids=False) if not ids else said("a", "b", "c", ids=True)
        thread.reconcile(history)
        assert not thread.reconcile(history)
        assert texts(thread) == [t.text for t in history]

    def test_what_is_new_is_appended(self, thread: Thread, ids: bool) -> None:
        thread.reconcile(said("a", "b", ids=ids))
        thread.reconcile(said("a", "b", "c", "d", ids=ids))
        assert texts(thread) == ["a", "b", "c", "d"]

    def test_a_trimmed_head_stays_remembered(self, thread: Thread, ids: bool) -> None:
        thread.reconcile(said("a", "b", "c", "d", ids=ids))
        done = thread.reconcile(said("c", "d", "e", ids=ids))
        assert texts(thread) == ["a", "b", "c", "d", "e"]
        assert done.superseded == ()

    def test_a_divergent_tail_is_superseded_and_comes_back(self, thread: Thread, ids: bool) -> None:
        thread.reconcile(said("a", "b", "c", "d", ids=ids))
        forked = thread.reconcile(said("a", "b", "x", "y", ids=ids))
        assert texts(thread) == ["a", "b", "x", "y"]
        assert len(forked.superseded) == 2
        back = thread.reconcile(said("a", "b", "c", "d", ids=ids))
        assert texts(thread) == ["a", "b", "c", "d"]
        assert back.restored == forked.superseded
        assert back.added == ()

    def test_a_rewound_history_supersedes_what_came_after(self, thread: Thread, ids: bool) -> None:
        thread.reconcile(said("a", "b", "c", "d", ids=ids))
        thread.reconcile(said("a", "b", ids=ids))
        assert texts(thread) == ["a", "b"]

    def test_a_kept_system_prompt_does_not_hide_that_the_head_was_trimmed(self, thread: Thread, ids: bool) -> None:
        system = Turn("system", "be kind", id="s" if ids else None)
        talk = said("a", "b", "c", "d", ids=ids)
        thread.reconcile([system, *talk])
        thread.reconcile([system, *talk[2:], *said("e", ids=ids)])
        assert texts(thread) == ["be kind", "a", "b", "c", "d", "e"]

    def test_a_summary_in_place_of_the_head_is_one_more_turn(self, thread: Thread, ids: bool) -> None:
        talk = said("a", "b", "c", "d", ids=ids)
        thread.reconcile(talk)
        summary = Turn("system", "they spoke of a and b", id="sum" if ids else None)
        history = [summary, *talk[2:]]
        thread.reconcile(history)
        assert texts(thread) == ["a", "b", "c", "d", "they spoke of a and b"]
        assert not thread.reconcile(history)
        thread.reconcile([*history, *said("e", ids=ids)])
        assert texts(thread) == ["a", "b", "c", "d", "they spoke of a and b", "e"]

    def test_an_edit_in_the_middle_takes_the_place_of_what_was_there(self, thread: Thread, ids: bool) -> None:
        talk = said("a", "b", "c", "d", ids=ids)
        thread.reconcile(talk)
        edited = [talk[0], Turn("assistant", "better", id="x" if ids else None), *talk[2:]]
        done = thread.reconcile(edited)
        assert texts(thread) == ["a", "better", "c", "d"]
        assert len(done.superseded) == 1
        assert not thread.reconcile(edited)


def test_changed_content_is_updated_in_place(thread: Thread) -> None:
    thread.reconcile(said("a", "b", "c", ids=True))
    done = thread.reconcile([Turn("user", "a", "a"), Turn("assistant", "quite another", "b"), Turn("user", "c", "c")])
    assert texts(thread) == ["a", "quite another", "c"]
    assert done.updated == ("b",)
    assert "quite another" in thread.recall("quite another").text
    assert "b" not in texts(thread)


def test_changed_metadata_alone_is_updated(thread: Thread) -> None:
    call = Turn("assistant", "", "a", metadata={"tool_calls": ["x"]})
    thread.reconcile([Turn("user", "hi", "u"), call])
    done = thread.reconcile([Turn("user", "hi", "u"), replace(call, metadata={"tool_calls": ["y"], "name": "Ann"})])
    assert done.updated == ("a",)
    assert thread.turns()[1].metadata == {"tool_calls": ["y"], "name": "Ann"}
    assert thread.memory.check() == []


def test_a_regenerated_answer_with_a_new_id_and_the_same_text_is_one_turn(thread: Thread) -> None:
    thread.reconcile([Turn("user", "hi", "u1"), Turn("assistant", "hello", "run-1")])
    done = thread.reconcile([Turn("user", "hi", "u1"), Turn("assistant", "hello", "run-2")])
    assert texts(thread) == ["hi", "hello"]
    assert not done


def test_a_regenerated_answer_with_another_text_supersedes_the_first(thread: Thread) -> None:
    thread.reconcile([Turn("user", "hi", "u1"), Turn("assistant", "hello", "run-1")])
    thread.reconcile([Turn("user", "hi", "u1"), Turn("assistant", "good day", "run-2")])
    assert texts(thread) == ["hi", "good day"]
    assert "hello" not in thread.recall("hello").text


def test_the_same_words_again_are_a_new_turn(thread: Thread) -> None:
    thread.reconcile(said("ok", "fine"))
    thread.reconcile(said("ok", "fine", "ok", "fine"))
    assert texts(thread) == ["ok", "fine", "ok", "fine"]


def test_one_exchange_under_ids_of_its_own_is_new_whatever_its_words(thread: Thread) -> None:
    """A run that is given only the new question: an old greeting in the same words is no reason to forget the rest."""
    thread.reconcile(said("hello", "hi", "which GPU?", "one", ids=True))
    again = [Turn("user", "hello", "run2-h"), Turn("assistant", "hi", "run2-a")]
    assert thread.reconcile(again).superseded == ()
    assert not thread.reconcile(again)
    assert texts(thread) == ["hello", "hi", "which GPU?", "one", "hello", "hi"]


def test_an_empty_history_forgets_nothing(thread: Thread) -> None:
    thread.reconcile(said("a", "b"))
    assert not thread.reconcile([])
    assert texts(thread) == ["a", "b"]


def test_an_id_twice_in_a_history_is_an_error_and_stores_nothing(thread: Thread) -> None:
    with pytest.raises(DuplicateTurnError, match="'x' twice"):
        thread.reconcile([Turn("user", "a", "x"), Turn("user", "b", "x")])
    assert texts(thread) == []


def test_only_what_is_new_is_embedded() -> None:
    embedder = WordEmbedder()
    with EpisodicMemory(embedder=embedder) as memory:
        thread = memory.thread("a")
        thread.reconcile(said("one", "two", "three"))
        embedder.texts.clear()
        thread.reconcile(said("one", "two", "three", "four"))
        thread.reconcile(said("one", "five"))
        thread.reconcile(said("one", "two", "three", "four"))
        assert embedder.texts == ["four", "five"]


ALPHABET = st.sampled_from([f"word{i}" for i in range(12)])


@settings(max_examples=60)
@given(st.lists(st.lists(ALPHABET, max_size=8, unique=True), min_size=1, max_size=5))
def test_whatever_the_histories_each_turn_is_there_once_and_the_last_history_holds(histories: list[list[str]]) -> None:
    """With ids: every turn of the last history is live; nothing is ever lost or doubled."""
    with EpisodicMemory(embedder=WordEmbedder()) as memory:
        thread = memory.thread("a")
        seen: set[str] = set()
        for history in histories:
            turns = [Turn("user", word, id=word) for word in history]
            thread.reconcile(turns)
            seen |= set(history)
            live = texts(thread)
            assert len(live) == len(set(live))
            assert set(history) <= set(live)
            assert not thread.reconcile(turns), "twice changes nothing"
            stored = [row.turn.text for row in memory._store.turns(memory._store.thread(("a",)).key)] if seen else []
            assert sorted(stored) == sorted(seen), "nothing is lost"
            assert memory.check() == []


@settings(max_examples=60)
@given(st.lists(ALPHABET, min_size=1, max_size=12), st.data())
def test_without_ids_a_growing_window_over_a_conversation_reproduces_it(words: list[str], data: st.DataObject) -> None:
    """The usual framework: any suffix of what was said, ever longer. The thread is the conversation."""
    with EpisodicMemory(embedder=WordEmbedder()) as memory:
        thread = memory.thread("a")
        conversation = [Turn("user", f"{i} {word}") for i, word in enumerate(words)]
        known = 0
        while known < len(conversation):
            end = data.draw(st.integers(known + 1, len(conversation)))
            start = data.draw(st.integers(0, max(known - 1, 0)))
            thread.reconcile(conversation[start:end])
            known = end
        assert texts(thread) == [turn.text for turn in conversation]
