"""TSIMMemory by itself: keys, values, scope, recent turns, clear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_tsim import KeysError, MessageError, ScopeError, TSIMMemory
from langchain_tsim.memory import BaseMemory
from pydantic import ValidationError
from tsim_core import EpisodicMemory, InputError

from ..helpers import WordEmbedder, calls

CAT = "The cat sleeps in the red basket by the window."
BOAT = "Our boat needs new sails before the summer regatta."


class TextAccessor(str):
    """What ``message.text`` is on LangChain 1.x."""


def said(memory: EpisodicMemory, *name: str) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in memory.thread(*name).turns()]


def test_it_is_a_memory_of_langchain(memory: EpisodicMemory) -> None:
    ours = TSIMMemory(memory=memory, scope="alice", memory_key="past")
    assert isinstance(ours, BaseMemory)
    assert ours.memory_variables == ["past"]
    assert ours.load_memory_variables({"input": "cat"}) == {"past": ""}


def test_what_was_said_is_recalled_and_what_has_no_bearing_is_not(memory: EpisodicMemory) -> None:
    ours = TSIMMemory(memory=memory, scope="alice", k=1)
    ours.save_context({"input": CAT}, {"response": "The cat has a red basket, I see."})
    other = TSIMMemory(memory=memory, scope="bob", k=1)
    other.save_context({"input": BOAT}, {"response": "Sails, noted."})
    text = ours.load_memory_variables({"input": "Where does the cat sleep?"})["history"]
    assert CAT in text
    assert "boat" not in text
    assert BOAT in other.load_memory_variables({"input": "boat"})["history"]


async def test_async_twins_do_the_same(memory: EpisodicMemory) -> None:
    ours = TSIMMemory(memory=memory, scope="alice", recent_turns=2)
    await ours.asave_context({"input": CAT}, {"response": "ok"})
    assert await ours.aload_memory_variables({"input": "cat"}) == ours.load_memory_variables({"input": "cat"})
    await ours.aclear()
    assert said(memory, "alice") == []


@pytest.mark.parametrize("typo", ["memorykey", "return_message", "K", "embedder"])
def test_a_typo_in_an_argument_is_an_error(memory: EpisodicMemory, typo: str) -> None:
    with pytest.raises(ValidationError, match=typo):
        TSIMMemory(memory=memory, scope="alice", **{typo: 1})


@pytest.mark.parametrize("fields", [{"k": 0}, {"max_tokens": -1}, {"recent_turns": -2}, {"scope": ""}])
def test_unusable_arguments(memory: EpisodicMemory, fields: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        TSIMMemory(**{"memory": memory, "scope": "alice", **fields})


def test_there_is_no_shared_bucket(memory: EpisodicMemory) -> None:
    with pytest.raises(ValidationError, match="scope"):
        TSIMMemory(memory=memory)
    ours = TSIMMemory(memory=memory, scope="{user_id}")
    for call in (
        lambda: ours.load_memory_variables({"input": "x"}),
        lambda: ours.save_context({"input": "x"}, {"output": "y"}),
        lambda: ours.save_context({"input": "x", "user_id": ""}, {"output": "y"}),
        ours.clear,
    ):
        with pytest.raises(ScopeError, match="user_id"):
            call()
    assert memory.threads() == []


def test_the_scope_comes_from_the_inputs_and_is_no_input(memory: EpisodicMemory) -> None:
    ours = TSIMMemory(memory=memory, scope=("{user_id}", "{thread_id}"), recall_scope="{user_id}")
    ours.save_context({"words": CAT, "user_id": "alice", "thread_id": 1}, {"response": "ok"})
    assert said(memory, "alice", "1") == [("user", CAT), ("assistant", "ok")]
    inputs = {"words": "cat basket", "user_id": "alice", "thread_id": 2}
    assert CAT in ours.load_memory_variables(inputs)["history"]
    assert ours.load_memory_variables({**inputs, "user_id": "bob"})["history"] == ""


class TestKeys:
    @pytest.mark.parametrize(
        "inputs",
        [
            {"anything": CAT},
            {"input": CAT, "language": "English"},
            {"question": CAT, "style": "brief", "stop": ["\n"]},
            {"query": CAT, "history": "what was injected"},
            {"human_input": CAT, "context": "c"},
            {"question": CAT, "input_documents": [Document("d")]},
        ],
    )
    def test_the_input_is_guessed(self, memory: EpisodicMemory, inputs: dict[str, Any]) -> None:
        TSIMMemory(memory=memory, scope="a").save_context(inputs, {"output": "ok"})
        assert said(memory, "a") == [("user", CAT), ("assistant", "ok")]

    @pytest.mark.parametrize(
        "outputs",
        [
            {"anything": "ok"},
            {"answer": "ok", "confidence": 0.5},
            {"answer": "ok", "source_documents": [Document("d")], "generated_question": "q"},
            {"output": "ok", "messages": [AIMessage("ok")], "intermediate_steps": []},
            {"result": "ok", "source_documents": []},
        ],
    )
    def test_the_output_is_guessed(self, memory: EpisodicMemory, outputs: dict[str, Any]) -> None:
        TSIMMemory(memory=memory, scope="a").save_context({"input": CAT}, outputs)
        assert said(memory, "a") == [("user", CAT), ("assistant", "ok")]

    def test_given_keys_win(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope="a", input_key="topic", output_key="summary")
        ours.save_context({"input": "no", "topic": CAT}, {"output": "no", "summary": "ok"})
        assert said(memory, "a") == [("user", CAT), ("assistant", "ok")]

    def test_excluded_inputs_are_not_guessed(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope="a", exclude_input_keys=["one"])
        ours.save_context({"one": "no", "two": CAT}, {"output": "ok"})
        assert said(memory, "a") == [("user", CAT), ("assistant", "ok")]

    def test_a_guess_that_fails_says_what_to_set_and_stores_nothing(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope="a")
        with pytest.raises(KeysError, match=r"\['one', 'two'\]. Set input_key"):
            ours.load_memory_variables({"one": "1", "two": "2"})
        with pytest.raises(KeysError, match="Set input_key"):
            ours.save_context({}, {"output": "ok"})
        with pytest.raises(KeysError, match="Set output_key"):
            ours.save_context({"input": CAT}, {"one": "1", "two": "2"})
        with pytest.raises(KeysError, match="'topic' is not among the inputs"):
            TSIMMemory(memory=memory, scope="a", input_key="topic").load_memory_variables({"input": "x"})
        with pytest.raises(KeysError, match="'summary' is not among the outputs"):
            TSIMMemory(memory=memory, scope="a", output_key="summary").save_context({"input": "x"}, {"output": "y"})
        assert memory.stats()["turns"] == 0


class TestValues:
    def test_messages_and_chunks(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope="a")
        ours.save_context({"input": HumanMessage([{"type": "text", "text": CAT}])}, {"output": AIMessageChunk("ok")})
        ours.save_context({"input": TextAccessor("x")}, {"output": "fine"})
        assert said(memory, "a")[:2] == [("user", CAT), ("assistant", "ok")]
        assert type(memory.thread("a").turns()[2].text) is str

    def test_a_whole_history_as_input_is_stored_once(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope="a", input_key="messages")
        history: list[BaseMessage] = [HumanMessage("one cat")]
        for answer in ("first", "second", "third"):
            ours.save_context({"messages": list(history)}, {"output": answer})
            history += [AIMessage(answer), HumanMessage(f"after {answer}")]
        assert [text for _, text in said(memory, "a")] == [
            "one cat",
            "first",
            "after first",
            "second",
            "after second",
            "third",
        ]

    def test_data_is_kept_as_json(self, memory: EpisodicMemory) -> None:
        TSIMMemory(memory=memory, scope="a").save_context(
            {"input": CAT}, {"output": {"place": "Körbchen", "sure": True}}
        )
        assert said(memory, "a")[1] == ("assistant", '{"place": "Körbchen", "sure": true}')

    def test_what_is_neither_text_nor_data_is_an_error_and_stores_nothing(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope="a")
        with pytest.raises(MessageError, match=r"output: a builtins\.object"):
            ours.save_context({"input": CAT}, {"output": object()})
        with pytest.raises(MessageError, match=r"input: a builtins\.object"):
            ours.load_memory_variables({"input": object()})
        assert memory.stats()["turns"] == 0

    def test_blank_input_recalls_nothing(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope="a")
        ours.save_context({"input": CAT}, {"output": "ok"})
        assert ours.load_memory_variables({"input": " "}) == {"history": ""}

    def test_what_is_handed_out_is_a_copy(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope="a", recent_turns=2, return_messages=True)
        ours.save_context({"input": CAT}, {"output": "ok"})
        messages = ours.load_memory_variables({"input": "cat"})["history"]
        messages[-1].content = "spoiled"
        messages.clear()
        assert [m.content for m in ours.load_memory_variables({"input": "cat"})["history"]][-2:] == [CAT, "ok"]


class TestRecentTurns:
    def test_as_messages(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope="a", recent_turns=2, return_messages=True)
        assert ours.load_memory_variables({"input": "x"}) == {"history": []}
        for n in range(3):
            ours.save_context({"input": f"question {n} on the cat"}, {"output": f"answer {n}"})
        first, *recent = ours.load_memory_variables({"input": "question 0"})["history"]
        assert isinstance(first, SystemMessage)
        assert "question 0 on the cat" in str(first.content)
        assert [(type(m), m.content) for m in recent] == [
            (HumanMessage, "question 2 on the cat"),
            (AIMessage, "answer 2"),
        ]

    def test_as_text(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope="a", recent_turns=2, human_prefix="Ann", ai_prefix="Bot")
        ours.save_context({"input": CAT}, {"output": "ok"})
        text = ours.load_memory_variables({"input": "violin"})["history"]
        assert text.endswith(f"Ann: {CAT}\nBot: ok")

    def test_they_are_not_recalled_once_more(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope=("a", "1"), recall_scope="a", recent_turns=2)
        memory.thread("a", "0").add("user", "Another cat sleeps in the yard.")
        for n in range(2):
            ours.save_context({"input": f"The cat of day {n} sleeps."}, {"output": f"ok {n}"})
        text = ours.load_memory_variables({"input": "cat sleeps"})["history"]
        assert text.count("The cat of day 1 sleeps.") == 1
        assert text.count("The cat of day 0 sleeps.") == 1
        assert "yard" in text

    def test_tools_answers_come_with_their_call(self, memory: EpisodicMemory) -> None:
        ours = TSIMMemory(memory=memory, scope="a", recent_turns=2, return_messages=True, input_key="messages")
        call = calls(("look", {"at": "cat"}))
        answer = ToolMessage("asleep", tool_call_id=call.tool_calls[0]["id"])
        ours.save_context({"messages": [HumanMessage("what does the cat do?"), call, answer]}, {"output": "It sleeps."})
        recent = [
            m for m in ours.load_memory_variables({"messages": "so?"})["history"] if not isinstance(m, SystemMessage)
        ]
        assert [type(m) for m in recent] == [AIMessage, ToolMessage, AIMessage]
        assert recent[0].tool_calls == call.tool_calls


def test_clear_deletes_its_scope_on_disk_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with EpisodicMemory(path, embedder=WordEmbedder()) as memory:
        for user, text in (("alice", CAT), ("alice2", BOAT), ("bob", "The violin has a new bow.")):
            TSIMMemory(memory=memory, scope=user).save_context({"input": text}, {"output": "ok"})
        TSIMMemory(memory=memory, scope=("alice", "sub")).save_context({"input": "A sub-thread."}, {"output": "ok"})
        ours = TSIMMemory(memory=memory, scope="{user_id}")
        ours.clear({"user_id": "alice"})
        assert memory.threads() == [("alice2",), ("bob",), ("alice", "sub")]
        assert TSIMMemory(memory=memory, scope="alice").load_memory_variables({"input": "cat"}) == {"history": ""}
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"red basket" not in held
    assert b"regatta" in held
