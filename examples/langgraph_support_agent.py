"""A support agent for many users on LangGraph, and time travel: memory follows the branch that the run is on.

Two users talk to one graph in several threads. Ann's rule of one thread is recalled in another, Ben's never. Then
Ann's question is asked once more from an earlier checkpoint, in other words: the first branch leaves memory, and comes
back when the conversation goes on from there. Prints what the model was given to remember and what is remembered after
each step.

    python examples/langgraph_support_agent.py
    TSIM_MODEL=openai:gpt-5-mini python examples/langgraph_support_agent.py
"""

from __future__ import annotations

from typing import Any

from langchain_model import chat_model
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_tsim import MemoryState, add_memory, with_memory
from tsim_core import EpisodicMemory


class State(MessagesState, MemoryState):
    """Messages, and what was recalled for the last of them."""


def build(memory: EpisodicMemory, *replies: str) -> StateGraph[State]:
    """The agent: one model node, with memory around it."""
    llm = chat_model(*replies)

    def model(state: State) -> dict[str, Any]:
        return {"messages": [llm.invoke(with_memory(state))]}

    builder = StateGraph(State)
    builder.add_node(model)
    builder.add_edge(START, "model")
    return add_memory(builder, memory, model_node="model", exclude_messages=True)


def main() -> None:
    """Run the example."""
    with EpisodicMemory() as memory:  # EpisodicMemory("memory.db") to keep it
        graph = build(
            memory,
            "I will only ship Ann's orders to the Oslo office.",
            "I will only ship Ben's orders to his home in Bergen.",
            "The printer goes to the Oslo office, as you decided.",
            "The scanner goes to the Oslo office.",
            "Both go to the Oslo office.",
        ).compile(checkpointer=InMemorySaver())

        def run(user: str, thread: str) -> dict[str, Any]:
            return {"configurable": {"user_id": user, "thread_id": thread}}

        def ask(user: str, thread: str, text: str, config: dict[str, Any] | None = None) -> dict[str, Any]:
            state: dict[str, Any] = graph.invoke({"messages": [("user", text)]}, config or run(user, thread))
            return state

        def show(title: str) -> None:
            print(f"\n{title}")
            for turn in memory.thread("ann", "order").turns():
                print(f"  {turn.role}: {turn.text}")

        ask("ann", "rules", "Ship my orders to the Oslo office, never to my home.")
        ask("ben", "rules", "Ship my orders to my home in Bergen.")
        state = ask("ann", "order", "Where does the printer that I order get shipped?")
        print("ANN'S MODEL REMEMBERED\n" + state["memory_context"])
        show("ANN'S ORDER")

        before = next(s for s in graph.get_state_history(run("ann", "order")) if s.next == ("recall",))
        first = graph.get_state(run("ann", "order")).config
        question = before.values["messages"][-1]
        edited = question.model_copy(update={"content": "Where does the scanner that I order get shipped?"})
        fork = graph.update_state(before.config, {"messages": [edited]})
        # The config of a snapshot does not carry the user: say it again.
        graph.invoke(None, {"configurable": {**fork["configurable"], "user_id": "ann"}})
        show("AFTER A FORK, IN OTHER WORDS")

        back = {"configurable": {**first["configurable"], "user_id": "ann"}}
        ask("ann", "order", "And the scanner?", back)
        show("THE FIRST BRANCH GOES ON")


if __name__ == "__main__":
    main()
