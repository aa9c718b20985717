"""TSIMMiddleware in agents that ``create_agent`` makes, with a scripted model."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.tools import tool
from langchain_tsim import ScopeError, TSIMMiddleware, create_tsim_search_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command
from tsim_core import EpisodicMemory, InputError, StoreClosedError

from ..helpers import ScriptedChat, calls, scripted

CAT = "The cat sleeps in the red basket by the window."
BOAT = "Our boat needs new sails before the summer regatta."
SCOPE: dict[str, Any] = {"scope": ("{user_id}", "{thread_id}"), "recall_scope": "{user_id}"}


def run(thread: str, user: str = "alice") -> Any:
    return {"configurable": {"thread_id": thread, "user_id": user}}


def at(snapshot_config: Any) -> Any:
    """A checkpoint's config names the thread, not the user."""
    return {"configurable": {**run("1")["configurable"], **snapshot_config["configurable"]}}


def ask(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def texts(memory: EpisodicMemory, *name: str) -> list[str]:
    return [turn.text for turn in memory.thread(*name).turns()]


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"the {at} is asleep"


@pytest.fixture
def stored(memory: EpisodicMemory) -> EpisodicMemory:
    memory.thread("alice", "pets").add("user", CAT)
    memory.thread("alice", "sea").add("user", BOAT)
    memory.thread("bob", "pets").add("user", "The cat of Bob sleeps in the garage.")
    return memory


def agent(memory: EpisodicMemory, model: ScriptedChat, tools: Any = (), middleware: Any = (), **options: Any) -> Any:
    ours = TSIMMiddleware(memory, k=1, **{**SCOPE, **options.pop("ours", {})})
    return create_agent(model, list(tools), middleware=[ours, *middleware], **options)


class TestRecall:
    def test_the_model_is_given_the_right_episode_and_not_the_wrong_one(self, stored: EpisodicMemory) -> None:
        model = scripted("In the red basket.")
        agent(stored, model, system_prompt="Be brief.").invoke(ask("Where does the cat sleep?"), run("new"))
        (system, human) = model.prompts[0]
        assert isinstance(system, SystemMessage)
        assert str(system.content).startswith("Be brief.")
        assert CAT in str(system.content)
        assert "regatta" not in model.seen()
        assert "Bob" not in model.seen()
        assert human.content == "Where does the cat sleep?"

    async def test_async_and_without_a_system_prompt(self, stored: EpisodicMemory) -> None:
        model = scripted("In the red basket.")
        await agent(stored, model).ainvoke(ask("Where does the cat sleep?"), run("new"))
        assert CAT in str(model.prompts[0][0].content)
        assert texts(stored, "alice", "new") == ["Where does the cat sleep?", "In the red basket."]

    def test_a_system_message_of_blocks_keeps_them(self, stored: EpisodicMemory) -> None:
        model = scripted("Yes.")
        block = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
        agent(stored, model, system_prompt=SystemMessage([block])).invoke(ask("cat?"), run("new"))
        content = model.prompts[0][0].content
        assert content[0] == block
        assert CAT in content[1]["text"]  # type: ignore[index]

    def test_it_is_recalled_once_a_run(self, stored: EpisodicMemory, embedder: Any) -> None:
        model = scripted(calls(("look", {"at": "cat"})), "It sleeps.")
        ours = agent(stored, model, [look])
        embedder.texts.clear()
        ours.invoke(ask("What does the cat do?"), run("new"))
        assert CAT in model.seen(0)
        assert CAT in model.seen(1)
        assert embedder.texts.count("What does the cat do?") == 2, "once as the query, once as a turn"

    def test_what_is_recalled_is_neither_in_nor_out_of_the_agent(self, stored: EpisodicMemory) -> None:
        out = agent(stored, scripted("Yes.")).invoke(ask("cat?") | {"tsim_recall": "planted"}, run("new"))
        assert set(out) == {"messages"}
        assert all("basket" not in str(m.content) for m in out["messages"])

    def test_nothing_to_recall_leaves_the_request_alone(self, memory: EpisodicMemory) -> None:
        model = scripted("Hello.")
        agent(memory, model).invoke(ask("hello"), run("new"))
        assert [m.type for m in model.prompts[0]] == ["human"]

    def test_what_the_messages_hold_is_not_recalled(self, stored: EpisodicMemory) -> None:
        model = scripted("Oh?", "In the red basket.")
        ours = agent(stored, model, checkpointer=InMemorySaver())
        ours.invoke(ask("I heard that the cat sleeps a lot."), run("new"))
        ours.invoke(ask("Where does the cat sleep?"), run("new"))
        system = str(model.prompts[-1][0].content)
        assert CAT in system
        assert "a lot" not in system

    def test_an_own_system_prompt(self, stored: EpisodicMemory) -> None:
        model = scripted("Ja.")
        agent(stored, model, ours={"system_prompt": "Früher: {recall}"}).invoke(ask("cat?"), run("new"))
        assert str(model.prompts[0][0].content).startswith("Früher: ")


class TestWrite:
    def test_every_message_once_over_many_runs(self, memory: EpisodicMemory) -> None:
        model = scripted(calls(("look", {"at": "cat"})), "It sleeps.", "Still.")
        ours = agent(memory, model, [look], checkpointer=InMemorySaver())
        ours.invoke(ask("What does the cat do?"), run("1"))
        ours.invoke(ask("And now?"), run("1"))
        expected = ["What does the cat do?", "", "the cat is asleep", "It sleeps.", "And now?", "Still."]
        assert texts(memory, "alice", "1") == expected

    def test_without_a_checkpointer_each_run_is_new(self, memory: EpisodicMemory) -> None:
        ours = agent(memory, scripted("hi", "one", "hi"))
        for text in ("hello", "which GPU?", "hello"):
            ours.invoke(ask(text), run("1"))
        assert texts(memory, "alice", "1") == ["hello", "hi", "which GPU?", "one", "hello", "hi"]

    def test_a_client_that_sends_the_whole_history(self, memory: EpisodicMemory) -> None:
        ours = agent(memory, scripted("first", "second", "third"))
        history: list[Any] = []
        for text in ("one cat", "two cats", "three cats"):
            history.append({"role": "user", "content": text})
            out = ours.invoke({"messages": history}, run("1"))
            history.append({"role": "assistant", "content": out["messages"][-1].content})
        assert texts(memory, "alice", "1") == ["one cat", "first", "two cats", "second", "three cats", "third"]

    def test_a_run_that_failed_is_caught_up_on(self, memory: EpisodicMemory) -> None:
        model = scripted(RuntimeError("overloaded"), "Yes, a cat.")
        ours = agent(memory, model, checkpointer=InMemorySaver())
        with pytest.raises(RuntimeError, match="overloaded"):
            ours.invoke(ask("Is it a cat?"), run("1"))
        assert texts(memory, "alice", "1") == []
        ours.invoke(ask("Well?"), run("1"))
        assert texts(memory, "alice", "1") == ["Is it a cat?", "Well?", "Yes, a cat."]

    async def test_a_stream_that_was_broken_off_is_caught_up_on(self, memory: EpisodicMemory) -> None:
        model = scripted(calls(("look", {"at": "cat"})), "It sleeps.", "Yes.")
        ours = agent(memory, model, [look], checkpointer=InMemorySaver())
        stream = ours.astream(ask("What does the cat do?"), run("1"), stream_mode="updates")
        async for part in stream:
            if "model" in part:
                break
        await stream.aclose()
        assert texts(memory, "alice", "1") == []
        await ours.ainvoke(None, run("1"))
        await ours.ainvoke(ask("Sure?"), run("1"))
        stored = texts(memory, "alice", "1")
        assert stored[0] == "What does the cat do?"
        assert len(stored) == len(set(stored)) == 6

    async def test_a_write_that_fails(self, memory: EpisodicMemory, caplog: pytest.LogCaptureFixture) -> None:
        def closing(_: Any) -> str:
            memory.close()
            return "Yes."

        with pytest.raises(StoreClosedError):
            agent(memory, ScriptedChat(answer=closing)).invoke(ask("cat?"), run("1"))
        with EpisodicMemory(embedder=memory.embedder) as other:
            memory = other
            with caplog.at_level(logging.WARNING, "langchain_tsim.middleware"):
                out = agent(other, ScriptedChat(answer=closing), ours={"on_error": "warn"}).invoke(
                    ask("cat?"), run("1")
                )
            assert out["messages"][-1].content == "Yes."
            assert "not written to memory" in caplog.text
        with EpisodicMemory(embedder=memory.embedder) as other:
            memory = other
            with pytest.raises(StoreClosedError):
                await agent(other, ScriptedChat(answer=closing)).ainvoke(ask("cat?"), run("1"))

    def test_a_recall_that_fails_never_goes_unnoticed(self, memory: EpisodicMemory) -> None:
        model = scripted("never")
        ours = agent(memory, model, ours={"on_error": "warn"})
        memory.close()
        with pytest.raises(StoreClosedError):
            ours.invoke(ask("cat?"), run("1"))
        assert model.prompts == []

    def test_images_are_kept_and_not_embedded(self, memory: EpisodicMemory, embedder: Any) -> None:
        image = {"type": "image", "base64": "aGVsbG8=" * 50, "mime_type": "image/png"}
        message = HumanMessage([{"type": "text", "text": "Is this a cat?"}, image])
        agent(memory, scripted("It is.")).invoke({"messages": [message]}, run("1"))
        assert not any("aGVsbG8" in text for text in embedder.texts)
        turn = memory.thread("alice", "1").turns()[0]
        assert turn.metadata is not None
        assert turn.metadata["langchain"]["content"][1] == image


class TestHistories:
    def test_resume_after_an_interrupt(self, memory: EpisodicMemory) -> None:
        model = scripted(calls(("look", {"at": "cat"})), "It sleeps.")
        approve = HumanInTheLoopMiddleware(interrupt_on={"look": True})
        ours = agent(memory, model, [look], [approve], checkpointer=InMemorySaver())
        assert "__interrupt__" in ours.invoke(ask("What does the cat do?"), run("1"))
        assert texts(memory, "alice", "1") == []
        ours.invoke(Command(resume={"decisions": [{"type": "approve"}]}), run("1"))
        assert texts(memory, "alice", "1") == ["What does the cat do?", "", "the cat is asleep", "It sleeps."]

    def test_replay_supersedes_the_answer(self, memory: EpisodicMemory) -> None:
        ours = agent(memory, scripted("A cat.", "A dog.", "Really."), checkpointer=InMemorySaver())
        ours.invoke(ask("What is it?"), run("1"))
        before = next(
            s for s in ours.get_state_history(run("1")) if s.next and s.next[0] == "TSIMMiddleware.before_agent"
        )
        ours.invoke(None, at(before.config))
        assert texts(memory, "alice", "1") == ["What is it?", "A dog."]

    def test_replay_of_the_write_alone_stores_nothing_twice(self, memory: EpisodicMemory) -> None:
        ours = agent(memory, scripted("A cat."), checkpointer=InMemorySaver())
        ours.invoke(ask("What is it?"), run("1"))
        before = next(s for s in ours.get_state_history(run("1")) if s.next == ("TSIMMiddleware.after_agent",))
        ours.invoke(None, at(before.config))
        assert texts(memory, "alice", "1") == ["What is it?", "A cat."]

    def test_a_fork_with_an_edited_question(self, memory: EpisodicMemory) -> None:
        ours = agent(memory, scripted("A cat.", "Yes.", "A boat."), checkpointer=InMemorySaver())
        ours.invoke(ask("What is it?"), run("1"))
        first = ours.get_state(run("1")).values["messages"][0]
        ours.invoke(ask("Sure?"), run("1"))
        start = next(s for s in ours.get_state_history(run("1")) if s.next and len(s.values["messages"]) == 1)
        edited = HumanMessage("What floats there?", id=first.id)
        config = ours.update_state(start.config, {"messages": [edited]}, as_node="TSIMMiddleware.before_agent")
        ours.invoke(None, at(config))
        assert texts(memory, "alice", "1") == ["What floats there?", "A boat."]

    def test_a_trimmed_history_stays_remembered(self, memory: EpisodicMemory) -> None:
        ours = agent(memory, scripted("hi", "A cat.", "hi"), checkpointer=InMemorySaver())
        ours.invoke(ask("hello"), run("1"))
        ours.invoke(ask("What is it?"), run("1"))
        ours.invoke({"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("hello")]}, run("1"))
        assert texts(memory, "alice", "1") == ["hello", "hi", "What is it?", "A cat.", "hello", "hi"]

    @pytest.mark.parametrize("sub_agents", [False, True])
    def test_a_sub_agent_recalls_and_its_exchange_is_not_the_users(
        self, stored: EpisodicMemory, sub_agents: bool
    ) -> None:
        inner_model = scripted("It sleeps in the basket.")
        inner = agent(
            stored, inner_model, ours={"sub_agents": sub_agents, "scope": ("{user_id}", "helper", "{thread_id}")}
        )

        @tool
        def expert(question: str) -> str:
            """Ask an expert on cats."""
            return str(inner.invoke(ask(question))["messages"][-1].content)

        outer = agent(stored, scripted(calls(("expert", {"question": "cat, basket?"})), "In the basket."), [expert])
        outer.invoke(ask("Where is it?"), run("1"))
        assert CAT in inner_model.seen()
        assert texts(stored, "alice", "1") == ["Where is it?", "", "It sleeps in the basket.", "In the basket."]
        assert texts(stored, "alice", "helper", "1") == (
            ["cat, basket?", "It sleeps in the basket."] if sub_agents else []
        )


@dataclass
class Context:
    user_id: str


class TestScope:
    def test_the_users_id_from_the_context(self, stored: EpisodicMemory) -> None:
        model = scripted("In the garage.")
        ours = agent(stored, model, context_schema=Context)
        ours.invoke(ask("Where does the cat sleep?"), {"configurable": {"thread_id": "1"}}, context=Context("bob"))
        assert "garage" in model.seen()
        assert texts(stored, "bob", "1") == ["Where does the cat sleep?", "In the garage."]

    def test_the_default_scope_is_the_thread(self, memory: EpisodicMemory) -> None:
        create_agent(scripted("hi"), middleware=[TSIMMiddleware(memory)]).invoke(
            ask("hello"), {"configurable": {"thread_id": 7}}
        )
        assert texts(memory, "7") == ["hello", "hi"]

    def test_a_missing_id_stops_the_run(self, memory: EpisodicMemory) -> None:
        model = scripted("never")
        with pytest.raises(ScopeError, match="user_id"):
            agent(memory, model).invoke(ask("hello"), {"configurable": {"thread_id": "1"}})
        assert model.prompts == []
        assert memory.threads() == []

    def test_nothing_of_a_run_stays_on_the_instance(self, stored: EpisodicMemory) -> None:
        ours = TSIMMiddleware(stored, **SCOPE)
        before = dict(vars(ours))
        create_agent(scripted("Yes."), middleware=[ours]).invoke(ask("cat?"), run("1"))
        assert vars(ours) == before

    @pytest.mark.parametrize(
        "options", [{"k": 0}, {"max_tokens": 0}, {"on_error": "ignore"}, {"system_prompt": "no place"}, {"scope": ""}]
    )
    def test_unusable_arguments(self, memory: EpisodicMemory, options: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            TSIMMiddleware(memory, **options)


def test_the_search_tool_in_an_agent(stored: EpisodicMemory) -> None:
    search = create_tsim_search_tool(stored, **SCOPE)
    model = scripted(calls(("search_memory", {"query": "cat basket"})), "In the red basket.")
    ours = create_agent(model, [search], checkpointer=InMemorySaver(), context_schema=Context)
    out = ours.invoke(ask("Where?"), {"configurable": {"thread_id": "1"}}, context=Context("alice"))
    answer = out["messages"][2]
    assert CAT in answer.content
    assert "Bob" not in answer.content
    assert answer.artifact[0]["turns"][0]["text"] == CAT
    assert isinstance(out["messages"][-1], AIMessage)
