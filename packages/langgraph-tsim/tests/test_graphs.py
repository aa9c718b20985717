"""Real graphs with scripted models: what the model saw, and what is stored afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, RetryPolicy, Send, interrupt
from langgraph_tsim import RecallNode, RememberNode, TSIMMemoryNode, add_memory
from tsim_core import EpisodicMemory

from .conftest import Model, State, at, before, chat, edited, run_of, said, texts


def stored(memory: EpisodicMemory) -> dict[tuple[str, ...], list[str]]:
    """All that is remembered."""
    return {name: texts(memory, *name) for name in memory.threads()}


class TestTwoUsersManyThreads:
    def test_each_recalls_over_their_own_threads_only(self, memory: EpisodicMemory) -> None:
        model = Model()
        graph = chat(memory, model)
        graph.invoke(said("My dog is called Rex"), run_of("a1", "alice"))
        graph.invoke(said("My dog is called Bella"), run_of("b1", "bob"))
        graph.invoke(said("The invoice went to Oslo"), run_of("a2", "alice"))
        graph.invoke(said("How is my dog called?"), run_of("a3", "alice"))
        assert "Rex" in model.recalled()
        assert "Bella" not in model.prompt()
        graph.invoke(said("How is my dog called?"), run_of("b2", "bob"))
        assert "Bella" in model.recalled()
        assert "Rex" not in model.prompt()
        assert stored(memory) == {
            ("alice", "a1"): ["My dog is called Rex", "answer 1"],
            ("bob", "b1"): ["My dog is called Bella", "answer 2"],
            ("alice", "a2"): ["The invoice went to Oslo", "answer 3"],
            ("alice", "a3"): ["How is my dog called?", "answer 4"],
            ("bob", "b2"): ["How is my dog called?", "answer 5"],
        }

    def test_the_same_thread_id_of_two_users_is_two_threads(self, memory: EpisodicMemory) -> None:
        model = Model()
        alice, bob = chat(memory, model, InMemorySaver()), chat(memory, model, InMemorySaver())
        alice.invoke(said("My dog is called Rex"), run_of("1", "alice"))
        bob.invoke(said("How is my dog called?"), run_of("1", "bob"))
        assert model.recalled() == ""
        assert texts(memory, "bob", "1") == ["How is my dog called?", "answer 2"]

    def test_recall_over_the_thread_alone(self, memory: EpisodicMemory) -> None:
        model = Model()
        graph = chat(memory, model, scope="thread")
        graph.invoke(said("My dog is called Rex"), run_of("1"))
        graph.invoke(said("How is my dog called?"), run_of("2"))
        assert model.recalled() == ""
        graph.invoke(said("How is my dog called, I mean Rex"), run_of("1"))
        assert "My dog is called Rex" in model.recalled()


class TestTimeTravel:
    def test_a_replay_leaves_one_answer_and_does_not_recall_its_own_future(self, memory: EpisodicMemory) -> None:
        model = Model("Fine.", "It is red.", "It is blue.")
        graph = chat(memory, model)
        graph.invoke(said("Let us paint the boat"), run_of())
        graph.invoke(said("Which colour has the boat?"), run_of())
        graph.invoke(None, at(before(graph, "recall", run_of()).config))
        assert "red" not in model.prompt()
        assert "paint the boat" in model.recalled()
        assert texts(memory, "alice", "t1") == [
            "Let us paint the boat",
            "Fine.",
            "Which colour has the boat?",
            "It is blue.",
        ]
        assert "red" not in memory.recall("colour of the boat", prefix=("alice",)).text

    def test_a_replay_of_the_first_turn(self, memory: EpisodicMemory) -> None:
        model = Model("It is red.", "It is blue.")
        graph = chat(memory, model)
        graph.invoke(said("Which colour has the boat?"), run_of())
        graph.invoke(None, at(before(graph, "recall", run_of()).config))
        assert "red" not in model.prompt()
        assert texts(memory, "alice", "t1") == ["Which colour has the boat?", "It is blue."]

    def test_a_replay_from_the_write_node_changes_nothing(self, memory: EpisodicMemory) -> None:
        graph = chat(memory, Model())
        graph.invoke(said("one"), run_of())
        ids = [turn.id for turn in memory.thread("alice", "t1").turns()]
        graph.invoke(None, at(before(graph, "remember", run_of()).config))
        assert [turn.id for turn in memory.thread("alice", "t1").turns()] == ids

    def test_a_fork_replaces_and_the_first_branch_comes_back(self, memory: EpisodicMemory) -> None:
        model = Model("Fine.", "Red it is.", "Green it is.", "Ask again.")
        graph = chat(memory, model)
        graph.invoke(said("Let us paint the boat"), run_of())
        graph.invoke(said("Paint it red"), run_of())
        first = graph.get_state(run_of())
        asked = before(graph, "recall", run_of())
        fork = graph.update_state(asked.config, edited(asked.values["messages"][-1], "Paint it green"))
        graph.invoke(None, at(fork))
        assert texts(memory, "alice", "t1") == ["Let us paint the boat", "Fine.", "Paint it green", "Green it is."]
        assert "red" not in memory.recall("paint", prefix=("alice",)).text.lower()
        graph.invoke(said("Which colour did I choose?"), at(first.config))
        assert texts(memory, "alice", "t1")[2:] == [
            "Paint it red",
            "Red it is.",
            "Which colour did I choose?",
            "Ask again.",
        ]
        assert "green" not in model.prompt().lower()

    def test_an_earlier_checkpoint_goes_on_differently(self, memory: EpisodicMemory) -> None:
        graph = chat(memory, Model())
        graph.invoke(said("one"), run_of())
        start = graph.get_state(run_of()).config
        graph.invoke(said("two"), run_of())
        graph.invoke(said("three"), at(start))
        assert texts(memory, "alice", "t1") == ["one", "answer 1", "three", "answer 3"]

    def test_a_snapshot_config_without_the_user_is_an_error_and_not_another_memory(
        self, memory: EpisodicMemory
    ) -> None:
        from langgraph_tsim import ScopeError

        graph = chat(memory, Model())
        graph.invoke(said("one"), run_of())
        with pytest.raises(ScopeError, match="snapshot"):
            graph.invoke(None, before(graph, "recall", run_of()).config)
        assert memory.threads() == [("alice", "t1")]


class TestTrimmedAndSummarised:
    def test_a_trimmed_head_stays_remembered(self, memory: EpisodicMemory) -> None:
        model = Model()
        graph = chat(memory, model)
        for text in ("My dog is called Rex", "The invoice went to Oslo", "Rain tomorrow"):
            graph.invoke(said(text), run_of())
        messages = graph.get_state(run_of()).values["messages"]
        graph.update_state(run_of(), {"messages": [RemoveMessage(m.id) for m in messages[:4]]})
        graph.invoke(said("How is my dog called?"), run_of())
        assert "Rex" in model.recalled()
        assert texts(memory, "alice", "t1") == [
            "My dog is called Rex",
            "answer 1",
            "The invoice went to Oslo",
            "answer 2",
            "Rain tomorrow",
            "answer 3",
            "How is my dog called?",
            "answer 4",
        ]

    def test_a_summary_in_place_of_everything_loses_nothing(self, memory: EpisodicMemory) -> None:
        model = Model()
        graph = chat(memory, model)
        graph.invoke(said("My dog is called Rex"), run_of())
        kept = graph.get_state(run_of()).values["messages"][-1]
        summary = SystemMessage("They spoke of pets", id="summary")
        graph.update_state(run_of(), {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), summary, kept]})
        graph.invoke(said("How is my dog called?"), run_of())
        graph.invoke(said("And again?"), run_of())
        assert "My dog is called Rex" in model.recalled(1)
        held = texts(memory, "alice", "t1")
        assert sorted(held) == sorted(
            [
                "My dog is called Rex",
                "answer 1",
                "They spoke of pets",
                "How is my dog called?",
                "answer 2",
                "And again?",
                "answer 3",
            ]
        )

    def test_the_last_exchange_taken_back(self, memory: EpisodicMemory) -> None:
        graph = chat(memory, Model())
        graph.invoke(said("one"), run_of())
        graph.invoke(said("a mistake"), run_of())
        messages = graph.get_state(run_of()).values["messages"]
        graph.update_state(run_of(), {"messages": [RemoveMessage(m.id) for m in messages[2:]]})
        graph.invoke(said("two"), run_of())
        assert texts(memory, "alice", "t1") == ["one", "answer 1", "two", "answer 3"]


def asking(memory: EpisodicMemory, model: Model) -> Any:
    """A graph that asks a human in the middle."""

    def approve(state: State) -> dict[str, Any]:
        answer = interrupt("Shall I?")
        return {"messages": [HumanMessage(f"approval: {answer}")]}

    builder = StateGraph(State)
    builder.add_node("model", model)
    builder.add_node("approve", approve)
    builder.add_edge(START, "model")
    builder.add_conditional_edges(
        "model", lambda state: "approve" if "?" in state["messages"][-1].text else END, ["approve", END]
    )
    builder.add_edge("approve", "model")
    add_memory(builder, memory, model_node="model")
    return builder.compile(checkpointer=InMemorySaver())


class TestInterrupts:
    def test_what_was_said_before_an_interrupt_is_remembered_and_resuming_doubles_nothing(
        self, memory: EpisodicMemory
    ) -> None:
        model = Model("Shall I delete it?", "Deleted.")
        graph = asking(memory, model)
        paused = graph.invoke(said("Delete the old backup"), run_of())
        assert paused["__interrupt__"][0].value == "Shall I?"
        assert texts(memory, "alice", "t1") == ["Delete the old backup", "Shall I delete it?"]
        graph.invoke(Command(resume="yes"), run_of())
        assert texts(memory, "alice", "t1") == [
            "Delete the old backup",
            "Shall I delete it?",
            "approval: yes",
            "Deleted.",
        ]

    def test_an_approval_taken_back(self, memory: EpisodicMemory) -> None:
        model = Model("Shall I delete it?", "Deleted.", "Kept.")
        graph = asking(memory, model)
        graph.invoke(said("Delete the old backup"), run_of())
        paused = graph.get_state(run_of()).config
        graph.invoke(Command(resume="yes"), run_of())
        fork = graph.update_state(paused, None, as_node="remember")  # the question again, without its answer
        graph.invoke(None, at(fork))
        graph.invoke(Command(resume="no"), run_of())
        assert texts(memory, "alice", "t1")[1:] == ["Shall I delete it?", "approval: no", "Kept."]

    def test_a_pause_before_the_model(self, memory: EpisodicMemory) -> None:
        model = Model()
        builder = StateGraph(State)
        builder.add_node("model", model)
        builder.add_edge(START, "model")
        add_memory(builder, memory, model_node="model")
        graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["model"])
        graph.invoke(said("one"), run_of())
        assert memory.threads() == []
        graph.invoke(None, run_of())
        assert texts(memory, "alice", "t1") == ["one", "answer 1"]


class TestBrokenRuns:
    def test_a_stream_broken_off_is_caught_up_by_the_next_run(self, memory: EpisodicMemory) -> None:
        model = Model()
        graph = chat(memory, model)
        stream: Iterator[Any] = graph.stream(said("My dog is called Rex"), run_of(), stream_mode="updates")
        assert "recall" in next(stream)
        assert "model" in next(stream)
        stream.close()  # type: ignore[attr-defined]
        graph.invoke(said("How is my dog called?"), run_of())
        held = texts(memory, "alice", "t1")
        assert held[0] == "My dog is called Rex"
        assert held[-2:] == ["How is my dog called?", "answer 2"]
        assert len(held) == len(set(held))

    async def test_an_async_stream_broken_off(self, memory: EpisodicMemory) -> None:
        graph = chat(memory, Model())
        stream = graph.astream(said("My dog is called Rex"), run_of(), stream_mode="updates")
        async for update in stream:
            if "model" in update:
                break
        await stream.aclose()
        await graph.ainvoke(said("How is my dog called?"), run_of())
        held = texts(memory, "alice", "t1")
        assert held[0] == "My dog is called Rex"
        assert held[-1] == "answer 2"
        assert len(held) == len(set(held))

    def test_a_model_that_fails_once_is_retried_without_doubling(self, memory: EpisodicMemory) -> None:
        calls: list[int] = []

        def model(state: State) -> dict[str, Any]:
            calls.append(1)
            if len(calls) == 1:
                raise ConnectionError("try again")
            return {"messages": [AIMessage("done")]}

        builder = StateGraph(State)
        builder.add_node("model", model, retry_policy=RetryPolicy(initial_interval=0.0, jitter=False))
        builder.add_edge(START, "model")
        graph = add_memory(builder, memory, model_node="model").compile(checkpointer=InMemorySaver())
        graph.invoke(said("one"), run_of())
        assert len(calls) == 2
        assert texts(memory, "alice", "t1") == ["one", "done"]

    def test_a_model_that_fails_for_good_loses_no_request(self, memory: EpisodicMemory) -> None:
        answers: list[str | None] = [None, "done"]

        def model(state: State) -> dict[str, Any]:
            answer = answers.pop(0)
            if answer is None:
                raise ConnectionError("no model today")
            return {"messages": [AIMessage(answer)]}

        builder = StateGraph(State)
        builder.add_node("model", model)
        builder.add_edge(START, "model")
        graph = add_memory(builder, memory, model_node="model").compile(checkpointer=InMemorySaver())
        with pytest.raises(ConnectionError):
            graph.invoke(said("one"), run_of())
        graph.invoke(said("two"), run_of())
        assert texts(memory, "alice", "t1") == ["one", "two", "done"]


def call(name: str, **args: Any) -> AIMessage:
    """An answer that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{name}"}])


class TestToolLoop:
    def test_recall_stays_during_the_loop_and_calls_keep_their_answers(self, memory: EpisodicMemory) -> None:
        model = Model("Noted.", call("weather", city="Oslo"), "Rain in Oslo.")

        def tools(state: State) -> dict[str, Any]:
            asked = state["messages"][-1].tool_calls[0]
            return {"messages": [ToolMessage("12 degrees, rain", tool_call_id=asked["id"], name=asked["name"])]}

        def route(state: State) -> Literal["tools", "__end__"]:
            return "tools" if state["messages"][-1].tool_calls else "__end__"

        builder = StateGraph(State)
        builder.add_node("model", model)
        builder.add_node("tools", tools)
        builder.add_edge(START, "model")
        builder.add_conditional_edges("model", route)
        builder.add_edge("tools", "model")
        graph = add_memory(builder, memory, model_node="model").compile(checkpointer=InMemorySaver())
        graph.invoke(said("I live in Oslo"), run_of("t0"))
        graph.invoke(said("How is the weather in Oslo where I live?"), run_of())
        assert model.recalled(1) == model.recalled(2)
        assert "I live in Oslo" in model.recalled(2)
        turns = memory.thread("alice", "t1").turns()
        assert [t.role for t in turns] == ["user", "assistant", "tool", "assistant"]
        from langchain_tsim.messages import to_messages

        back = to_messages(turns)
        assert back[1].tool_calls == model.answers[1].tool_calls  # type: ignore[attr-defined, union-attr]
        assert back[2].tool_call_id == "call-weather"  # type: ignore[attr-defined]


class Team(State):
    next: str


class TestSupervisor:
    def graph(self, memory: EpisodicMemory, supervisor: Model, agents: dict[str, Model]) -> Any:
        def route(state: Team) -> str:
            return str(state["messages"][-1].text).removeprefix("to ") if "to " in state["messages"][-1].text else END

        builder = StateGraph(Team)
        builder.add_node("supervisor", supervisor)
        for name, agent in agents.items():
            inner = StateGraph(State)
            inner.add_node("model", agent)
            inner.add_edge(START, "model")
            add_memory(inner, memory, model_node="model")
            builder.add_node(name, inner.compile())
            builder.add_edge(name, "supervisor")
        builder.add_edge(START, "supervisor")
        builder.add_conditional_edges("supervisor", route)
        add_memory(builder, memory, model_node="supervisor")
        return builder.compile(checkpointer=InMemorySaver())

    def test_sub_agents_share_the_memory_and_each_turn_is_there_once(self, memory: EpisodicMemory) -> None:
        boss = Model("to research", "to writing", "All done.", "Blue, as decided.")
        research, writing = Model("Blue sells best."), Model("The text is written.")
        graph = self.graph(memory, boss, {"research": research, "writing": writing})
        graph.invoke(said("Which colour should the new boat have?"), run_of())
        expected = [
            "Which colour should the new boat have?",
            "to research",
            "Blue sells best.",
            "to writing",
            "The text is written.",
            "All done.",
        ]
        assert texts(memory, "alice", "t1") == expected
        assert memory.threads() == [("alice", "t1")]
        graph.invoke(said("Which colour did the boat get?"), run_of("t2"))
        assert "Blue sells best." in boss.recalled()
        assert texts(memory, "alice", "t1") == expected

    def test_a_replay_of_the_supervisor_runs_the_sub_agents_again(self, memory: EpisodicMemory) -> None:
        boss = Model("to research", "Done.", "to research", "Done again.")
        graph = self.graph(memory, boss, {"research": Model("Blue.", "Red.")})
        graph.invoke(said("Which colour?"), run_of())
        start = [s for s in graph.get_state_history(run_of()) if s.next == ("recall",)][-1]
        graph.invoke(None, at(start.config))
        assert texts(memory, "alice", "t1") == ["Which colour?", "to research", "Red.", "Done again."]

    def test_the_context_reaches_a_subgraph_that_sees_the_thread_of_its_parent(self, memory: EpisodicMemory) -> None:
        inner = StateGraph(State)
        inner.add_node("memory", TSIMMemoryNode(memory))
        inner.add_edge(START, "memory")
        builder = StateGraph(State)
        builder.add_node("inner", inner.compile())
        builder.add_edge(START, "inner")
        graph = builder.compile(checkpointer=InMemorySaver())
        graph.invoke(said("one"), run_of())
        assert memory.threads() == [("alice", "t1")]


class TestParallelBranches:
    @pytest.mark.parametrize("parent_remembers", [True, False])
    def test_subgraphs_side_by_side_lose_nothing_of_each_other(
        self, memory: EpisodicMemory, parent_remembers: bool
    ) -> None:
        names = ["north", "south", "east"]
        builder = StateGraph(State)
        for name in names:
            inner = StateGraph(State)
            inner.add_node("model", Model(f"{name} reports", f"{name} reports again"))
            inner.add_edge(START, "model")
            builder.add_node(name, add_memory(inner, memory, model_node="model").compile())
            builder.add_edge(START, name)
        if parent_remembers:
            builder.add_node("remember", RememberNode(memory))
            builder.add_edge(names, "remember")
        graph = builder.compile(checkpointer=InMemorySaver())
        graph.invoke(said("What is new?"), run_of())
        graph.invoke(said("And now?"), run_of())
        expected = [
            "What is new?",
            "And now?",
            *(f"{n} reports" for n in names),
            *(f"{n} reports again" for n in names),
        ]
        assert sorted(texts(memory, "alice", "t1")) == sorted(expected)

    def test_memory_nodes_side_by_side(self, memory: EpisodicMemory) -> None:
        builder = StateGraph(State)
        for side in ("left", "right"):
            builder.add_node(side, Model(f"{side} speaks"))
            builder.add_node(f"recall {side}", RecallNode(memory))
            builder.add_node(f"remember {side}", RememberNode(memory))
            builder.add_edge(START, f"recall {side}")
            builder.add_edge(f"recall {side}", side)
            builder.add_edge(side, f"remember {side}")
        graph = builder.compile(checkpointer=InMemorySaver())
        graph.invoke(said("Speak"), run_of())
        assert texts(memory, "alice", "t1") == ["Speak", "left speaks", "right speaks"]

    def test_a_map_with_send(self, memory: EpisodicMemory) -> None:
        def spread(state: State) -> list[Send]:
            return [Send("worker", {"messages": [HumanMessage(f"part {i}")]}) for i in range(3)]

        def worker(state: State) -> dict[str, Any]:
            return {"messages": [AIMessage(f"did {state['messages'][-1].text}")]}

        builder = StateGraph(State)
        builder.add_node("worker", worker)
        builder.add_node("remember", RememberNode(memory))
        builder.add_conditional_edges(START, spread, ["worker"])
        builder.add_edge("worker", "remember")
        graph = builder.compile(checkpointer=InMemorySaver())
        graph.invoke(said("Do it"), run_of())
        assert texts(memory, "alice", "t1") == ["Do it", "did part 0", "did part 1", "did part 2"]


def test_a_single_node_before_and_after_the_model(memory: EpisodicMemory) -> None:
    model = Model()
    node = TSIMMemoryNode(memory)
    builder = StateGraph(State)
    builder.add_node("model", model)
    builder.add_node("memory", node)
    builder.add_node("memory again", node)
    builder.add_edge(START, "memory")
    builder.add_edge("memory", "model")
    builder.add_edge("model", "memory again")
    graph = builder.compile()
    graph.invoke(said("My dog is called Rex"), run_of("t1"))
    assert model.recalled() == ""
    graph.invoke(said("How is my dog called?"), run_of("t2"))
    assert "Rex" in model.recalled()
    assert "How is my dog called?" not in model.recalled()
    assert texts(memory, "alice", "t2") == ["How is my dog called?", "answer 2"]
