"""The nodes on their own: states of every shape, bad input, failures of the store."""

from __future__ import annotations

import asyncio
import dataclasses
import operator
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph_tsim import (
    MemoryWarning,
    MessageError,
    RecallNode,
    RememberNode,
    ScopeError,
    StateError,
    TSIMMemoryNode,
    with_memory,
)
from langgraph_tsim.scope import NO_USER
from pydantic import BaseModel
from tsim_core import EmbedderError, EpisodicMemory, ReadOnlyError, StoreClosedError
from tsim_core.embedding import Vectors
from typing_extensions import TypedDict

from .conftest import Model, State, WordEmbedder, chat, run_of, said, texts


def talk(*words: str) -> dict[str, list[BaseMessage]]:
    """A state of human and AI messages in turn, the words their ids too."""
    kinds = (HumanMessage, AIMessage)
    return {"messages": [kinds[i % 2](word, id=word) for i, word in enumerate(words)]}


class PlainState(TypedDict):
    messages: Annotated[list[Any], operator.add]
    memory_context: str


class PydanticState(BaseModel):
    messages: Annotated[list[BaseMessage], add_messages]
    memory_context: str = ""


@dataclasses.dataclass
class DataclassState:
    messages: Annotated[list[BaseMessage], add_messages]
    memory_context: str = ""


class TestStates:
    @pytest.mark.parametrize("schema", [State, PlainState, PydanticState, DataclassState])
    async def test_every_kind_of_state(self, memory: EpisodicMemory, schema: Any) -> None:
        def model(state: Any) -> dict[str, Any]:
            return {"messages": [AIMessage(with_memory(state)[0].text)]}

        builder = StateGraph(schema)
        builder.add_node(RecallNode(memory))
        builder.add_node(model)
        builder.add_node(RememberNode(memory))
        builder.add_edge(START, "RecallNode")
        builder.add_edge("RecallNode", "model")
        builder.add_edge("model", "RememberNode")
        graph = builder.compile()
        graph.invoke({"messages": [HumanMessage("My dog is called Rex")]}, run_of("t1"))
        out = await graph.ainvoke({"messages": [HumanMessage("How is my dog called?")]}, run_of("t2"))
        assert "My dog is called Rex" in out["memory_context"]
        assert len(out["messages"]) == 2, "what is recalled is not among the messages"
        assert texts(memory, "alice", "t2")[0] == "How is my dog called?"

    def test_other_keys(self, memory: EpisodicMemory) -> None:
        RememberNode(memory, messages_key="chat")({"chat": talk("boat")["messages"]}, run_of("t1"))
        node = RecallNode(memory, messages_key="chat", context_key="found")
        assert "boat" in node({"chat": [("user", "boat?")]}, run_of("t2"))["found"]

    def test_messages_as_dicts_pairs_and_text(self, memory: EpisodicMemory) -> None:
        state = {"messages": [{"role": "user", "content": "one"}, ("ai", "two"), ["human", "three"], "four"]}
        RememberNode(memory)(state, run_of())
        turns = memory.thread("alice", "t1").turns()
        assert [(t.role, t.text) for t in turns] == [
            ("user", "one"),
            ("assistant", "two"),
            ("user", "three"),
            ("user", "four"),
        ]

    def test_a_role_of_ones_own_is_kept(self, memory: EpisodicMemory) -> None:
        RememberNode(memory)({"messages": [ChatMessage("I object", role="critic")]}, run_of())
        assert [t.role for t in memory.thread("alice", "t1").turns()] == ["critic"]

    @pytest.mark.parametrize("node", [RecallNode, RememberNode, TSIMMemoryNode])
    @pytest.mark.parametrize(
        ("state", "error", "says"),
        [
            ({}, StateError, "no 'messages'"),
            ({"messages": None}, StateError, "no 'messages'"),
            (object(), StateError, "no 'messages'"),
            ({"messages": "hello"}, StateError, "is str"),
            ({"messages": {"role": "user", "content": "x"}}, StateError, "is dict"),
            ({"messages": [HumanMessage("fine"), 3]}, MessageError, "int"),
            ({"messages": [HumanMessage("fine"), ("martian", "x")]}, MessageError, "martian"),
            ({"messages": [HumanMessage("fine"), {"content": "x"}]}, MessageError, "role"),
            ({"messages": [HumanMessage("fine"), None]}, MessageError, "NoneType"),
        ],
    )
    def test_bad_messages_are_an_error_and_nothing_is_stored(
        self, memory: EpisodicMemory, node: Any, state: Any, error: type[Exception], says: str
    ) -> None:
        with pytest.raises(error, match=says):
            node(memory)(state, run_of())
        assert memory.threads() == []

    def test_a_state_without_messages_yet(self, memory: EpisodicMemory) -> None:
        assert TSIMMemoryNode(memory)({"messages": []}, run_of()) == {"memory_context": ""}
        assert memory.threads() == []


class TestIds:
    @pytest.mark.parametrize("node", [RecallNode, RememberNode, TSIMMemoryNode])
    def test_no_id_at_all_fails_even_where_failures_are_tolerated(self, memory: EpisodicMemory, node: Any) -> None:
        for on_error in ("raise", "warn"):
            with pytest.raises(ScopeError, match=r"'user_id' and no 'thread_id'.*configurable"):
                node(memory, on_error=on_error)(talk("one"), {"configurable": {}})
            with pytest.raises(ScopeError, match="thread_id"):
                node(memory, on_error=on_error, scope="thread")(talk("one"), {"configurable": {}})
        assert memory.threads() == []

    @pytest.mark.parametrize("node", [RecallNode, RememberNode, TSIMMemoryNode])
    def test_a_missing_user_is_an_error_that_says_what_to_give(self, memory: EpisodicMemory, node: Any) -> None:
        for on_error in ("raise", "warn"):
            with pytest.raises(ScopeError, match=r"no 'user_id'\..*configurable.*scope=\"thread\""):
                node(memory, on_error=on_error)(talk("one"), run_of("t1", None))
        assert memory.threads() == []

    def test_a_graph_without_a_user_is_refused_before_its_model_runs(self, memory: EpisodicMemory) -> None:
        model = Model()
        with pytest.raises(ScopeError, match="user_id"):
            chat(memory, model).invoke(said("My dog is called Rex"), run_of("t1", None))
        assert (model.saw, memory.threads()) == ([], [])

    def test_an_unknown_scope_is_an_error(self, memory: EpisodicMemory) -> None:
        for node in (RecallNode, RememberNode, TSIMMemoryNode):
            with pytest.raises(ValueError, match='expected "thread" or "user"'):
                node(memory, scope="users")

    def test_a_thread_without_a_user_has_a_memory_of_its_own(self, memory: EpisodicMemory) -> None:
        model = Model()
        graph = chat(memory, model, scope="thread")
        graph.invoke(said("My dog is called Rex"), run_of("alice", None))
        assert memory.threads() == [(NO_USER, "alice")]
        graph.invoke(said("Is Rex my dog?"), run_of("alice", None))
        assert "My dog is called Rex" in model.recalled()
        chat(memory, model).invoke(said("How is my dog called?"), run_of("t2", "alice"))
        assert model.recalled() == "", "a thread that is called like a user is not that user's"
        graph.invoke(said("And the dog?"), run_of("t3", None))
        assert model.recalled() == "", "threads without a user do not recall each other"

    def test_recall_over_a_user_needs_one(self, memory: EpisodicMemory) -> None:
        with pytest.raises(ScopeError, match="user_id"):
            RecallNode(memory, scope="user")(talk("one"), run_of("t1", None))

    def test_recall_over_a_user_needs_no_thread(self, memory: EpisodicMemory) -> None:
        RememberNode(memory)(talk("boat"), run_of("t1"))
        update = RecallNode(memory)(talk("boat?"), {"configurable": {"user_id": "alice"}})
        assert "boat" in update["memory_context"]

    def test_ids_of_the_node_go_before_those_of_the_run(self, memory: EpisodicMemory) -> None:
        RememberNode(memory, user_id="team", thread_id=7)(talk("one"), run_of())
        assert memory.threads() == [("team", "7")]

    @pytest.mark.parametrize("id_", [7, "bob@example.com", "a:b/c.d", "🦊", "日本 語"])
    def test_odd_ids_find_again_what_they_wrote(self, memory: EpisodicMemory, id_: Any) -> None:
        model = Model()
        graph = chat(memory, model)
        graph.invoke(said("My dog is called Rex"), run_of("t1", id_))
        graph.invoke(said("How is my dog called?"), run_of("t2", id_))
        assert "Rex" in model.recalled()
        graph.invoke(said("How is my dog called?"), run_of(id_, "other"))
        assert "Rex" not in model.prompt()
        assert memory.threads()[-1] == ("other", str(id_))

    @pytest.mark.parametrize("option", [{"scope": "all"}, {"on_error": "ignore"}])
    def test_an_unknown_option(self, memory: EpisodicMemory, option: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="expected"):
            RecallNode(memory, **option)


class Failing(WordEmbedder):
    """Fails as long as it is told to."""

    fails = False

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.fails:
            raise RuntimeError("out of memory")
        return super().embed(texts)


class TestFailures:
    def test_an_embedder_that_fails_fails_the_run_and_the_next_run_catches_up(self) -> None:
        embedder = Failing()
        with EpisodicMemory(embedder=embedder) as memory:
            graph = chat(memory, Model())
            embedder.fails = True
            with pytest.raises(EmbedderError, match="out of memory"):
                graph.invoke(said("one"), run_of())
            embedder.fails = False
            graph.invoke(said("two"), run_of())
            assert texts(memory, "alice", "t1") == ["one", "two", "answer 1"]

    def test_with_warn_the_run_goes_on_and_the_next_write_catches_up(self) -> None:
        embedder = Failing()
        with EpisodicMemory(embedder=embedder) as memory:
            model = Model()
            graph = chat(memory, model, on_error="warn")
            embedder.fails = True
            with pytest.warns(MemoryWarning, match="out of memory") as caught:
                state = graph.invoke(said("one"), run_of())
            assert {str(w.message).split()[0] for w in caught} == {"RecallNode", "RememberNode"}
            assert state["messages"][-1].text == "answer 1"
            assert state["memory_context"] == ""
            assert texts(memory, "alice", "t1") == []
            embedder.fails = False
            graph.invoke(said("two"), run_of())
            assert texts(memory, "alice", "t1") == ["one", "answer 1", "two", "answer 2"]

    @pytest.mark.parametrize("node", [RecallNode, RememberNode, TSIMMemoryNode])
    def test_a_closed_memory(self, memory: EpisodicMemory, node: Any) -> None:
        memory.close()
        with pytest.raises(StoreClosedError, match="closed"):
            node(memory)(talk("one"), run_of())
        with pytest.warns(MemoryWarning, match="closed"):
            node(memory, on_error="warn")(talk("one"), run_of())

    def test_a_read_only_memory_recalls_and_does_not_remember(self, tmp_path: Path) -> None:
        path = tmp_path / "memory.db"
        with EpisodicMemory(path, embedder=WordEmbedder()) as memory:
            RememberNode(memory)(talk("boat", "blue"), run_of())
        with EpisodicMemory(path, embedder=WordEmbedder(), read_only=True) as memory:
            recall = RecallNode(memory)(talk("boat", "blue", "which boat?"), run_of())
            assert "blue" in recall["memory_context"]
            with pytest.raises(ReadOnlyError):
                RememberNode(memory)(talk("boat", "blue", "new"), run_of())

    def test_recall_alone_adds_nothing(self, memory: EpisodicMemory) -> None:
        node = RecallNode(memory)
        node(talk("one", "two", "three"), run_of())
        assert memory.threads() == []
        RememberNode(memory)(talk("one", "two"), run_of())
        node(talk("one", "two", "three", "four", "five"), run_of())
        assert texts(memory, "alice", "t1") == ["one", "two"]


class TestLocation:
    def test_a_node_opens_a_location_with_the_packaged_model(self, tmp_path: Path) -> None:
        path = tmp_path / "日本 🦊" / "memory.db"
        path.parent.mkdir()
        node = TSIMMemoryNode(path, k=1)
        with node.memory:
            node(talk("We painted the boat blue in May.", "Noted."), run_of("t1"))
            node(talk("The tax return is due on Friday.", "Noted as well."), run_of("t2"))
            update = node(talk("When do I have to declare my income?"), run_of("t3"))
            assert "due on Friday" in update["memory_context"]
            assert "boat" not in update["memory_context"]
        again = RecallNode(path)
        with again.memory:
            assert "Friday" in again(talk("tax return"), run_of("t4"))["memory_context"]


class TestQuery:
    def test_all_pending_messages_are_the_request(self, memory: EpisodicMemory) -> None:
        RememberNode(memory)(talk("boat"), run_of("t1"))
        RememberNode(memory)(talk("dog"), run_of("t2"))
        pending = [AIMessage("yes?"), HumanMessage("dog"), HumanMessage("boat")]
        found = RecallNode(memory)({"messages": pending}, run_of("t3"))["memory_context"]
        assert "dog" in found
        assert "boat" in found

    def test_a_query_of_ones_own(self, memory: EpisodicMemory) -> None:
        RememberNode(memory)(talk("boat"), run_of("t1"))
        RememberNode(memory)(talk("dog"), run_of("t2"))
        node = RecallNode(memory, query=lambda state: str(state["topic"]), k=1)
        found = node({**talk("dog"), "topic": "boat"}, run_of("t3"))["memory_context"]
        assert "boat" in found
        assert "dog" not in found

    def test_a_picture_without_words_recalls_nothing(self, memory: EpisodicMemory) -> None:
        RememberNode(memory)(talk("boat"), run_of("t1"))
        picture = HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}])
        assert RecallNode(memory)({"messages": [picture]}, run_of("t2")) == {"memory_context": ""}

    def test_what_the_messages_hold_is_left_out_where_asked(self, memory: EpisodicMemory) -> None:
        RememberNode(memory)(talk("the boat is blue", "noted"), run_of("t0"))
        state = talk("the boat is red", "noted too", "which boat?")
        RememberNode(memory)({"messages": state["messages"][:2]}, run_of())
        assert "red" in RecallNode(memory)(state, run_of())["memory_context"]
        found = RecallNode(memory, exclude_messages=True)(state, run_of())["memory_context"]
        assert "blue" in found
        assert "red" not in found
        alone = RecallNode(memory, exclude_messages=True, scope="thread")
        assert alone(state, run_of())["memory_context"] == ""


class TestWithMemory:
    def test_it_joins_the_system_message_and_leaves_the_state_alone(self) -> None:
        system = SystemMessage("Be kind.", id="s")
        state = {"messages": [system, HumanMessage("hi")], "memory_context": "[1] user: boat"}
        shown = with_memory(state)
        assert shown[0].text.startswith("Be kind.\n\n")
        assert "<memory>\n[1] user: boat\n</memory>" in shown[0].text
        assert len(shown) == 2
        assert system.content == "Be kind."
        blocks = with_memory({**state, "messages": [SystemMessage([{"type": "text", "text": "Be kind."}])]})[0]
        assert blocks.content[0] == {"type": "text", "text": "Be kind."}
        assert "boat" in blocks.text

    def test_nothing_recalled_nothing_added(self) -> None:
        assert with_memory({**talk("hi"), "memory_context": ""}) == talk("hi")["messages"]
        assert with_memory(talk("hi")) == talk("hi")["messages"]


async def test_a_slow_memory_does_not_block_the_event_loop() -> None:
    class Slow(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            time.sleep(2)  # long against any pause of a busy machine
            return super().embed(texts)

    with EpisodicMemory(embedder=Slow()) as memory:
        graph = chat(memory, Model())
        run = asyncio.create_task(graph.ainvoke(said("one"), run_of()))
        longest, last = 0.0, time.perf_counter()
        while not run.done():
            await asyncio.sleep(0.01)
            longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
        await run
        assert texts(memory, "alice", "t1") == ["one", "answer 1"]
        assert longest < 1.5


def test_nothing_is_warned_of_in_a_normal_run(memory: EpisodicMemory) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chat(memory, Model()).invoke(said("one"), run_of())
