"""A supervisor with two sub-agents on LangGraph, one memory for all: each turn is remembered once, whoever wrote it.

The researcher and the writer are graphs of their own inside the supervisor's graph, each with memory nodes. In a second
thread the supervisor is asked about what the researcher found in the first. Prints both threads as they are remembered,
and what the supervisor was given.

    python examples/langgraph_supervisor.py
    TSIM_MODEL=openai:gpt-5-mini python examples/langgraph_supervisor.py
"""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_model import chat_model
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_tsim import MemoryState, add_memory, with_memory
from tsim_core import EpisodicMemory


class State(MessagesState, MemoryState):
    """Messages, and what was recalled for the last of them."""


def agent(memory: EpisodicMemory, llm: BaseChatModel, prompt: str) -> StateGraph[State]:
    """A model node with memory around it."""

    def model(state: State) -> dict[str, Any]:
        return {"messages": [llm.invoke([SystemMessage(prompt), *with_memory(state)])]}

    builder = StateGraph(State)
    builder.add_node(model)
    builder.add_edge(START, "model")
    return add_memory(builder, memory, model_node="model", exclude_messages=True)


def team(memory: EpisodicMemory, boss: BaseChatModel, researcher: BaseChatModel, writer: BaseChatModel) -> Any:
    """The supervisor's graph."""

    def supervisor(state: State) -> dict[str, Any]:
        prompt = "You lead a researcher and a writer. Say RESEARCH or WRITE to send them to work, else answer."
        return {"messages": [boss.invoke([SystemMessage(prompt), *with_memory(state)])]}

    def route(state: State) -> Literal["researcher", "writer", "__end__"]:
        said = str(state["messages"][-1].text)
        return "researcher" if "RESEARCH" in said else "writer" if "WRITE" in said else "__end__"

    builder = StateGraph(State)
    builder.add_node(supervisor)
    builder.add_node("researcher", agent(memory, researcher, "You find facts.").compile())
    builder.add_node("writer", agent(memory, writer, "You write one line of advertising.").compile())
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", route)
    builder.add_edge("researcher", "supervisor")
    builder.add_edge("writer", "supervisor")
    add_memory(builder, memory, model_node="supervisor", exclude_messages=True)
    return builder.compile(checkpointer=InMemorySaver())


def main() -> None:
    """Run the example."""
    with EpisodicMemory() as memory:
        graph = team(
            memory,
            chat_model(
                "RESEARCH which colour of boat sells best",
                "WRITE a line for a blue boat",
                "Here is the line: Blue, as the sea likes it.",
                "We found that blue boats sell best in the north.",
            ),
            chat_model("Blue boats sell best in the north, red ones in the south."),
            chat_model("Blue, as the sea likes it."),
        )
        state: dict[str, Any] = {}
        for thread, text in [("monday", "Advertise our boats."), ("friday", "Which colour of boat sells best?")]:
            run: Any = {"configurable": {"user_id": "ann", "thread_id": thread}}
            state = graph.invoke({"messages": [("user", text)]}, run)
        print("THE SUPERVISOR REMEMBERED\n" + state["memory_context"])
        for name in memory.threads():
            print("\n" + "/".join(name))
            for turn in memory.thread(*name).turns():
                print(f"  {turn.role}: {turn.text}")


if __name__ == "__main__":
    main()
