"""Memory nodes put into graphs of every shape."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from langgraph_tsim import RememberNode, WiringError, add_memory, pre_model_hook
from tsim_core import EpisodicMemory

from .conftest import Model, State, run_of, said, texts


def note(name: str) -> Any:
    """A node that says its name."""
    return lambda state: {"messages": [AIMessage(name)]}


def order(graph: Any, text: str = "go", run: dict[str, Any] | None = None) -> list[str]:
    """The nodes in the order in which they ran."""
    return [node for update in graph.stream(said(text), run or run_of(), stream_mode="updates") for node in update]


class TestAddMemory:
    def test_a_line(self, memory: EpisodicMemory) -> None:
        builder = StateGraph(State)
        builder.add_sequence([("first", note("first")), ("model", Model()), ("last", note("last"))])
        builder.set_entry_point("first")
        builder.set_finish_point("last")
        graph = add_memory(builder, memory, model_node="model").compile()
        assert order(graph) == ["first", "recall", "model", "remember", "last"]

    def test_joins(self, memory: EpisodicMemory) -> None:
        builder = StateGraph(State)
        for name in ("a", "b", "c"):
            builder.add_node(name, note(name))
        builder.add_node("model", Model())
        builder.add_edge(START, "a")
        builder.add_edge(START, "b")
        builder.add_edge(["a", "b"], "model")
        builder.add_edge(["model"], "c")
        graph = add_memory(builder, memory, model_node="model").compile()
        assert order(graph)[2:] == ["recall", "model", "remember", "c"]

    @pytest.mark.parametrize("mapped", [True, False])
    def test_conditions_into_and_out_of_the_model(self, memory: EpisodicMemory, mapped: bool) -> None:
        into = (lambda state: "yes", {"yes": "model", "no": END}) if mapped else (lambda state: "model",)
        builder = StateGraph(State)
        builder.add_node("model", Model())
        builder.add_node("after", note("after"))
        builder.add_conditional_edges(START, *into)
        builder.add_conditional_edges("model", lambda state: "after")
        graph = add_memory(builder, memory, model_node="model").compile()
        assert order(graph) == ["recall", "model", "remember", "after"]
        assert "recall" in graph.get_graph().draw_mermaid()

    def test_a_condition_that_may_return_to_the_model(self, memory: EpisodicMemory) -> None:
        model = Model("again", "enough")

        def route(state: State) -> Literal["model", "__end__"]:
            return "model" if state["messages"][-1].text == "again" else "__end__"

        builder = StateGraph(State)
        builder.add_node("model", model)
        builder.add_edge(START, "model")
        builder.add_conditional_edges("model", route)
        graph = add_memory(builder, memory, model_node="model").compile()
        assert order(graph) == ["recall", "model", "remember"] * 2
        assert texts(memory, "alice", "t1") == ["go", "again", "enough"]

    def test_a_model_that_goes_on_with_a_command_is_remembered_all_the_same(self, memory: EpisodicMemory) -> None:
        def model(state: State) -> Command[Literal["after"]]:
            return Command(goto="after", update={"messages": [AIMessage("commanding")]})

        builder = StateGraph(State)
        builder.add_node("model", model)
        builder.add_node("after", note("after"))
        builder.add_edge(START, "model")
        graph = add_memory(builder, memory, model_node="model").compile()
        assert sorted(order(graph)) == ["after", "model", "recall", "remember"]
        assert texts(memory, "alice", "t1") == ["go", "commanding"]

    def test_names_and_keys(self, memory: EpisodicMemory) -> None:
        class Other(State):
            found: str

        builder = StateGraph(Other)
        builder.add_node("model", Model())
        builder.add_edge(START, "model")
        add_memory(
            builder, memory, model_node="model", recall_node="before", remember_node="behind", context_key="found"
        )
        graph = builder.compile()
        assert order(graph, "boat") == ["before", "model", "behind"]
        assert "boat" in graph.invoke(said("boat?"), run_of("t2"))["found"]

    def test_two_models_with_a_memory_each(self, memory: EpisodicMemory) -> None:
        builder = StateGraph(State)
        builder.add_sequence([("draft", Model("draft")), ("review", Model("review"))])
        builder.add_edge(START, "draft")
        add_memory(builder, memory, model_node="draft", recall_node="r1", remember_node="w1")
        add_memory(builder, memory, model_node="review", recall_node="r2", remember_node="w2")
        graph = builder.compile()
        assert order(graph) == ["r1", "draft", "w1", "r2", "review", "w2"]
        assert texts(memory, "alice", "t1") == ["go", "draft", "review"]


class TestRefused:
    def base(self) -> Any:
        builder = StateGraph(State)
        builder.add_node("model", Model())
        builder.add_edge(START, "model")
        return builder

    def test_what_cannot_be_wired_is_an_error_and_the_graph_stays_as_it_was(self, memory: EpisodicMemory) -> None:
        builder = self.base()
        before = (set(builder.nodes), set(builder.edges))
        for options, says in [
            ({"model_node": "llm"}, "no node 'llm'.*'model'"),
            ({"model_node": "model", "recall_node": "model"}, "choose others"),
            ({"model_node": "model", "recall_node": "x", "remember_node": "x"}, "choose others"),
            ({"model_node": "model", "messages_key": "chat"}, "no 'chat'"),
            ({"model_node": "model", "context_key": "found"}, "no 'found'"),
        ]:
            with pytest.raises(WiringError, match=says):
                add_memory(builder, memory, **options)  # type: ignore[arg-type]
        assert (set(builder.nodes), set(builder.edges)) == before
        assert builder.compile().invoke(said("go"), run_of())["messages"][-1].text == "answer 1"

    def test_a_state_without_a_place_for_what_is_recalled(self, memory: EpisodicMemory) -> None:
        builder = StateGraph(MessagesState)
        builder.add_node("model", note("model"))
        builder.add_edge(START, "model")
        with pytest.raises(WiringError, match=r"no 'memory_context'.*MemoryState"):
            add_memory(builder, memory, model_node="model")

    def test_a_compiled_graph(self, memory: EpisodicMemory) -> None:
        builder = self.base()
        compiled = builder.compile()
        with pytest.raises(WiringError, match="CompiledStateGraph is no StateGraph"):
            add_memory(compiled, memory, model_node="model")
        with pytest.raises(WiringError, match="compiled already"):
            add_memory(builder, memory, model_node="model")


class Scripted(GenericFakeChatModel):
    """A chat model that keeps what it saw."""

    saw: list[list[BaseMessage]] = []  # noqa: RUF012 - pydantic copies it

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self.saw.append(list(messages))
        return super()._generate(messages, *args, **kwargs)


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
class TestPrebuiltAgent:
    def agent(self, memory: EpisodicMemory, model: Scripted, post: bool) -> Any:
        from langgraph.prebuilt import create_react_agent

        options: dict[str, Any] = {"post_model_hook": RememberNode(memory)} if post else {}
        return create_react_agent(
            model, [weather], pre_model_hook=pre_model_hook(memory), checkpointer=InMemorySaver(), **options
        )

    @pytest.mark.parametrize("post", [True, False])
    async def test_recall_tool_loop_and_memory(self, memory: EpisodicMemory, post: bool) -> None:
        call = AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}])
        model = Scripted(messages=iter([AIMessage("Noted."), call, AIMessage("Rain."), AIMessage("Bye.")]))
        agent = self.agent(memory, model, post)
        agent.invoke(said("I live in Oslo"), run_of("t1"))
        state = await agent.ainvoke(said("How is the weather where I live?"), run_of("t2"))
        assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]
        for seen in model.saw[1:3]:
            assert "I live in Oslo" in seen[0].text
            assert seen[0].text.count("How is the weather") == 0
        assert isinstance(model.saw[2][-1], ToolMessage)
        expected = ["How is the weather where I live?", "", "rain in Oslo", "Rain."]
        assert texts(memory, "alice", "t2") == expected[: 4 if post else 3]
        await agent.ainvoke(said("Thanks"), run_of("t2"))
        assert texts(memory, "alice", "t2")[:5] == [*expected, "Thanks"]
