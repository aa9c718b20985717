"""Every LangGraph trap of the design notes, and what real issue trackers report: one named test each."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.utils import trim_messages
from langchain_tsim.messages import to_messages
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime
from langgraph_tsim import RecallNode, RememberNode, ScopeError, TSIMMemoryNode, add_memory
from pydantic import BaseModel
from tsim_core import EpisodicMemory, TSIMConfig

from .conftest import Model, State, WordEmbedder, at, before, chat, edited, run_of, said, texts


@dataclass
class Context:
    user_id: str
    thread_id: str | None = None


def graph_of(node: Any, context: type | None = None, checkpointer: Any = None) -> Any:
    """A graph of one node."""
    builder = StateGraph(State, context_schema=context)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=checkpointer)


# the node itself


def test_the_node_gets_state_config_and_runtime_sync_and_async(memory: EpisodicMemory) -> None:
    graph = graph_of(TSIMMemoryNode(memory), Context)
    graph.invoke(said("sync"), {"configurable": {"thread_id": "t"}}, context=Context("u"))
    asyncio.run(graph.ainvoke(said("async"), {"configurable": {"thread_id": "t"}}, context=Context("v")))
    assert memory.threads() == [("u", "t"), ("v", "t")]


def test_what_is_recalled_does_not_leak_into_the_message_stream_or_the_messages(memory: EpisodicMemory) -> None:
    graph = chat(memory, Model())
    graph.invoke(said("My dog is called Rex"), run_of("t1"))
    streamed = [m for m, _ in graph.stream(said("How is my dog called?"), run_of("t2"), stream_mode="messages")]
    assert [m.text for m in streamed] == ["answer 2"]
    state = graph.get_state(run_of("t2")).values
    assert [m.text for m in state["messages"]] == ["How is my dog called?", "answer 2"]
    assert "Rex" in state["memory_context"]


def test_the_state_holds_json_types_only(memory: EpisodicMemory) -> None:
    graph = chat(memory, Model())
    graph.invoke(said("My dog is called Rex"), run_of("t1"))
    graph.invoke(said("How is my dog called?"), run_of("t2"))
    assert type(graph.get_state(run_of("t2")).values["memory_context"]) is str


# replay facts


def test_a_replay_gives_the_answer_a_new_id_and_is_still_one_answer(memory: EpisodicMemory) -> None:
    graph = chat(memory, Model("the same", "the same", "another"))
    first = graph.invoke(said("one"), run_of())
    start = before(graph, "recall", run_of()).config
    again = graph.invoke(None, at(start))
    assert first["messages"][0].id == again["messages"][0].id
    assert first["messages"][1].id != again["messages"][1].id
    assert texts(memory, "alice", "t1") == ["one", "the same"]
    graph.invoke(None, at(start))
    assert texts(memory, "alice", "t1") == ["one", "another"]


def test_a_fork_by_update_state_keeps_the_id_and_has_new_content(memory: EpisodicMemory) -> None:
    graph = chat(memory, Model())
    graph.invoke(said("red"), run_of())
    asked = before(graph, "recall", run_of())
    fork = graph.update_state(asked.config, edited(asked.values["messages"][0], "green"))
    graph.invoke(None, at(fork))
    assert texts(memory, "alice", "t1") == ["green", "answer 2"]


def test_an_answer_edited_in_place_is_updated(memory: EpisodicMemory) -> None:
    graph = chat(memory, Model())
    graph.invoke(said("one"), run_of())
    graph.update_state(run_of(), edited(graph.get_state(run_of()).values["messages"][1], "corrected"))
    graph.invoke(said("two"), run_of())
    assert texts(memory, "alice", "t1") == ["one", "corrected", "two", "answer 2"]


def test_the_same_words_again_are_a_new_turn(memory: EpisodicMemory) -> None:
    graph = chat(memory, Model("ok", "ok", "ok"))
    for _ in range(3):
        graph.invoke(said("go on"), run_of())
    assert texts(memory, "alice", "t1") == ["go on", "ok"] * 3


def test_after_remove_all_messages_the_head_stays_and_the_tail_is_replaced(memory: EpisodicMemory) -> None:
    graph = chat(memory, Model())
    for text in ("one", "two", "three"):
        graph.invoke(said(text), run_of())
    messages = graph.get_state(run_of()).values["messages"]
    kept = messages[2:4]  # "three" and its answer are taken back, "one" is trimmed
    graph.update_state(run_of(), {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *kept]})
    graph.invoke(said("four"), run_of())
    assert texts(memory, "alice", "t1") == ["one", "answer 1", "two", "answer 2", "four", "answer 4"]


def test_a_subgraph_writes_to_the_thread_of_its_parent(memory: EpisodicMemory) -> None:
    builder = StateGraph(State)
    builder.add_node("inner", chat(memory, Model(), checkpointer=False))
    builder.add_edge(START, "inner")
    builder.compile(checkpointer=InMemorySaver()).invoke(said("one"), run_of())
    assert memory.threads() == [("alice", "t1")]
    assert texts(memory, "alice", "t1") == ["one", "answer 1"]


# issue trackers


def test_03_tool_steps_are_kept(memory: EpisodicMemory) -> None:
    call = AIMessage("", id="a", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "c"}])
    answer = ToolMessage("42", tool_call_id="c", id="b", artifact={"raw": [1, 2]}, status="error")
    RememberNode(memory)({"messages": [HumanMessage("?", id="h"), call, answer]}, run_of())
    assert [t.role for t in memory.thread("alice", "t1").turns()] == ["user", "assistant", "tool"]


def test_04_every_type_of_message_comes_back_as_it_was(memory: EpisodicMemory) -> None:
    messages = [
        SystemMessage("be kind", id="1"),
        HumanMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}], id="2"),
        AIMessage("", id="3", tool_calls=[{"name": "f", "args": {"x": [1]}, "id": "c"}]),
        ToolMessage("42", tool_call_id="c", id="4", artifact={"raw": 1}),
        FunctionMessage("43", name="f", id="5"),
        AIMessage("done", id="6", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    ]
    RememberNode(memory)({"messages": messages}, run_of())
    assert to_messages(memory.thread("alice", "t1").turns()) == messages


@pytest.mark.parametrize("config", [TSIMConfig.default(), TSIMConfig.paper()], ids=["default", "paper"])
def test_05_25_concurrent_users_do_not_bleed_through_any_view(config: TSIMConfig) -> None:
    with EpisodicMemory(embedder=WordEmbedder(), config=config) as memory:
        saw: dict[str, str] = {}

        def model(state: State) -> dict[str, Any]:
            saw[str(state["messages"][-1].text)] = state["memory_context"]
            return {"messages": [AIMessage("ok")]}

        graph = chat(memory, model)

        def work(user: str) -> None:
            for i in range(4):
                graph.invoke(said(f"the secret word {i} of {user} is plum{user}{i}"), run_of(f"{user}{i}", user))
            graph.invoke(said(f"which secret word has {user}?"), run_of(f"{user} asks", user))

        threads = [threading.Thread(target=work, args=(user,)) for user in ("ann", "ben")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for user, other in (("ann", "ben"), ("ben", "ann")):
            seen = saw[f"which secret word has {user}?"]
            assert f"plum{user}" in seen
            assert f"plum{other}" not in seen


async def test_06_07_an_async_run_does_its_io_in_a_worker_thread(memory: EpisodicMemory) -> None:
    main = threading.get_ident()
    used: set[int] = set()
    embed = memory.embedder.embed

    def spy(words: Any) -> Any:
        used.add(threading.get_ident())
        return embed(words)

    memory.embedder.embed = spy  # type: ignore[method-assign]
    await chat(memory, Model()).ainvoke(said("one"), run_of())
    assert used
    assert main not in used


def test_08_chunks_of_a_streamed_answer_are_one_turn_and_the_next_run_accepts_them(memory: EpisodicMemory) -> None:
    whole = AIMessageChunk("hel", id="r") + AIMessageChunk("lo", id="r")
    graph = chat(memory, Model(whole, "bye"))
    graph.invoke(said("one"), run_of())
    graph.invoke(said("two"), run_of())
    turns = memory.thread("alice", "t1").turns()
    assert [(t.role, t.text) for t in turns] == [
        ("user", "one"),
        ("assistant", "hello"),
        ("user", "two"),
        ("assistant", "bye"),
    ]


def test_09_clearing_a_thread_leaves_nothing_to_recall_and_the_graph_goes_on(memory: EpisodicMemory) -> None:
    model = Model()
    graph = chat(memory, model)
    graph.invoke(said("My dog is called Rex"), run_of("t1"))
    memory.thread("alice", "t1").clear()
    graph.invoke(said("How is my dog called?"), run_of("t2"))
    assert model.recalled() == ""
    assert memory.stats()["turns"] == 2


def test_10_pictures_are_kept_and_not_embedded(memory: EpisodicMemory, embedder: WordEmbedder) -> None:
    picture = HumanMessage(
        [
            {"type": "text", "text": "my boat"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 500}},
        ]
    )
    graph = chat(memory, Model())
    graph.invoke({"messages": [picture]}, run_of())
    assert texts(memory, "alice", "t1") == ["my boat", "answer 1"]
    assert not any("QUJD" in text for text in embedder.texts)


def test_11_numpy_scores_do_not_break_checkpoints(memory: EpisodicMemory) -> None:
    answer = AIMessage("0.9 it is", response_metadata={"score": np.float64(0.9).item()})
    graph = chat(memory, Model(answer, "ok"))
    graph.invoke(said("score it"), run_of("t1"))
    graph.invoke(said("score?"), run_of("t2"))
    recall = memory.recall("score", prefix=("alice",))
    assert all(type(v) is float for e in recall.episodes for v in e.evidence.values())
    assert type(graph.get_state(run_of("t2")).values["memory_context"]) is str


def test_12_custom_types_in_messages_become_data(memory: EpisodicMemory) -> None:
    class Extra(BaseModel):
        x: int

    message = HumanMessage("hi", id="1", additional_kwargs={"extra": Extra(x=1)})
    RememberNode(memory)({"messages": [message]}, run_of())
    assert to_messages(memory.thread("alice", "t1").turns())[0].additional_kwargs == {"extra": {"x": 1}}


def test_13_ids_that_are_numbers_work_and_none_is_missing(memory: EpisodicMemory) -> None:
    RememberNode(memory)({"messages": [HumanMessage("one")]}, {"configurable": {"thread_id": 1, "user_id": 2}})
    assert memory.threads() == [("2", "1")]
    config = {"configurable": {"thread_id": 1, "user_id": None}}
    with pytest.raises(ScopeError, match="user"):
        RecallNode(memory, scope="user")({"messages": [HumanMessage("one")]}, config)  # type: ignore[arg-type]


def test_14_replay_does_not_write_twice(memory: EpisodicMemory) -> None:
    graph = chat(memory, Model("a", "a", "a", "a"))
    graph.invoke(said("one"), run_of())
    for snapshot in list(graph.get_state_history(run_of())):
        if snapshot.next and snapshot.next != ("__start__",):
            graph.invoke(None, at(snapshot.config))
    assert texts(memory, "alice", "t1") == ["one", "a"]


def test_14_replay_of_the_input_itself_does_not_write_twice_where_messages_have_ids(memory: EpisodicMemory) -> None:
    """LangGraph gives a message without an id a new one when the input is replayed: a new question, for all we know."""
    graph = chat(memory, Model("a", "b"))
    graph.invoke({"messages": [HumanMessage("one", id="h1")]}, run_of())
    graph.invoke(None, at(before(graph, "__start__", run_of()).config))
    assert texts(memory, "alice", "t1") == ["one", "b"]


def test_15_a_fork_does_not_leave_the_old_message_beside_the_new(memory: EpisodicMemory) -> None:
    graph = chat(memory, Model())
    graph.invoke(said("paint it red"), run_of())
    asked = before(graph, "recall", run_of())
    graph.invoke(None, at(graph.update_state(asked.config, edited(asked.values["messages"][0], "paint it green"))))
    found = memory.recall("paint it red", prefix=("alice",)).text
    assert "green" in found
    assert "red" not in found


def test_16_a_long_conversation_embeds_and_stores_each_turn_once(
    memory: EpisodicMemory, embedder: WordEmbedder
) -> None:
    graph = chat(memory, Model(*(f"reply {i}" for i in range(40))))
    for i in range(40):
        graph.invoke(said(f"request {i}"), run_of())
    assert memory.stats()["turns"] == 80
    assert len(memory.thread("alice", "t1")) == 80
    replies = [t for t in embedder.texts if t.startswith("reply")]
    assert len(replies) == 40
    requests = [t for t in embedder.texts if t.startswith("request")]
    assert len(requests) <= 80, "as a query and as a turn"


def test_17_trimming_keeps_calls_and_answers_together(memory: EpisodicMemory) -> None:
    call = AIMessage("", id="a1", tool_calls=[{"name": "f", "args": {}, "id": "c1"}])
    history = [
        HumanMessage("h1", id="h1"),
        call,
        ToolMessage("r1", tool_call_id="c1", id="r1"),
        AIMessage("a2", id="a2"),
        HumanMessage("h2", id="h2"),
    ]
    node = RememberNode(memory)
    node({"messages": history}, run_of())
    trimmed = trim_messages(history, max_tokens=3, token_counter=len, strategy="last", include_system=True)
    assert trimmed[0].id == "r1", "the call itself was trimmed"
    node({"messages": [*trimmed, AIMessage("a3", id="a3")]}, run_of())
    assert [t.id for t in memory.thread("alice", "t1").turns()] == ["h1", "a1", "r1", "a2", "h2", "a3"]


def test_18_what_was_written_is_read_at_once(memory: EpisodicMemory) -> None:
    model = Model()
    graph = chat(memory, model)
    for i in range(5):
        graph.invoke(said(f"number {i} is magic{i}"), run_of(f"t{i}"))
        graph.invoke(said(f"number {i}?"), run_of(f"ask{i}"))
        assert f"magic{i}" in model.recalled()


def test_19_recalled_text_says_who_spoke_and_when(memory: EpisodicMemory) -> None:
    model = Model()
    graph = chat(memory, model)
    graph.invoke(said("My dog is called Rex"), run_of("t1"))
    graph.invoke(said("How is my dog called?"), run_of("t2"))
    day = time.strftime("%Y-%m-%d", time.gmtime())
    assert "user: My dog is called Rex" in model.recalled()
    assert "assistant: answer 1" in model.recalled()
    assert day in model.recalled()


def test_20_a_thread_id_in_configurable_is_enough(memory: EpisodicMemory) -> None:
    model = Model()
    graph = chat(memory, model, scope="thread")
    graph.invoke(said("My dog is called Rex"), {"configurable": {"thread_id": "only"}})
    graph.invoke(said("How is my dog called, Rex?"), {"configurable": {"thread_id": "only"}})
    assert "My dog is called Rex" in model.recalled()
    assert texts(memory, "-", "only")[0] == "My dog is called Rex"


def test_21_a_subgraph_without_context_finds_the_user_in_configurable(memory: EpisodicMemory) -> None:
    inner = graph_of(TSIMMemoryNode(memory))

    def call(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        inner.invoke({"messages": state["messages"]}, run_of("t1", runtime.context.user_id))
        return {}

    graph_of(call, Context, InMemorySaver()).invoke(said("one"), run_of("t1", None), context=Context("carol"))
    assert memory.threads() == [("carol", "t1")]


def test_22_recalled_text_is_not_remembered_again(memory: EpisodicMemory) -> None:
    graph = chat(memory, Model())
    graph.invoke(said("My dog is called Rex"), run_of("t1"))
    for i in range(3):
        graph.invoke(said(f"How is my dog called? {i}"), run_of("t2"))
    held = [text for name in memory.threads() for text in texts(memory, *name)]
    assert sum("Rex" in text for text in held) == 1


def test_23_recall_and_remember_use_one_name_for_the_memory(memory: EpisodicMemory) -> None:
    graph = chat(memory, Model())
    for config, context in [
        (run_of("t1", "u1"), None),
        ({"configurable": {"thread_id": "t2"}}, {"user_id": "u2"}),
        ({"configurable": {"thread_id": 3, "user_id": 3}}, None),
    ]:
        graph.invoke(said("one"), config, context=context)
        asked = graph.invoke(said("one?"), config, context=context)
        assert "user: one" in asked["memory_context"]
    assert memory.threads() == [("u1", "t1"), ("u2", "t2"), ("3", "3")]


def test_24_concurrent_runs_on_one_thread_leave_whole_exchanges(memory: EpisodicMemory) -> None:
    node = RememberNode(memory)
    base = [HumanMessage("start", id="s")]
    node({"messages": base}, run_of())
    histories: list[list[Any]] = [
        [*base, *(HumanMessage(f"m{i}", id=f"m{i}") for i in range(length))] for length in range(1, 9)
    ]
    threads = [threading.Thread(target=node, args=({"messages": h}, run_of())) for h in histories]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    node({"messages": histories[-1]}, run_of())
    assert texts(memory, "alice", "t1") == ["start", *(f"m{i}" for i in range(8))]
    assert memory.check() == []


def test_26_a_store_under_a_path_that_is_not_ascii(tmp_path: Any) -> None:
    path = tmp_path / "Übung 日本 🦊"
    path.mkdir()
    builder = StateGraph(State)
    model = Model()
    builder.add_node("model", model)
    builder.add_edge(START, "model")
    with EpisodicMemory(path / "m.db", embedder=WordEmbedder()) as memory:
        add_memory(builder, memory, model_node="model").compile().invoke(said("My dog is called Rex"), run_of("t1"))
    with EpisodicMemory(path / "m.db", embedder=WordEmbedder()) as memory:
        assert "Rex" in memory.recall("dog", prefix=("alice",)).text
