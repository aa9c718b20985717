"""An agent on LangGraph that asks a human before it acts: a pause and its answer leave each turn in memory once.

The graph stops at an interrupt; what was said until then is remembered already. Resuming adds the human's answer and
the rest. A later thread recalls what was decided. Prints what is remembered at the pause and at the end, and what is
recalled later.

    python examples/langgraph_interrupt.py
    TSIM_MODEL=openai:gpt-5-mini python examples/langgraph_interrupt.py
"""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_model import chat_model
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from langgraph_tsim import MemoryState, add_memory, with_memory
from tsim_core import EpisodicMemory

PROMPT = SystemMessage("You keep a server. Before you delete anything, ask with a question that begins with MAY I.")


class State(MessagesState, MemoryState):
    """Messages, and what was recalled for the last of them."""


def main() -> None:
    """Run the example."""
    llm = chat_model(
        "MAY I delete the backup of March?",
        "I deleted the logs and kept the backup of March.",
        "The backup of March is still there: you wanted to keep it.",
    )

    def model(state: State) -> dict[str, Any]:
        return {"messages": [llm.invoke([PROMPT, *with_memory(state)])]}

    def human(state: State) -> dict[str, Any]:
        return {"messages": [HumanMessage(interrupt(str(state["messages"][-1].text)))]}

    def route(state: State) -> Literal["human", "__end__"]:
        return "human" if "MAY I" in str(state["messages"][-1].text) else "__end__"

    with EpisodicMemory() as memory:
        builder = StateGraph(State)
        builder.add_node(model)
        builder.add_node(human)
        builder.add_edge(START, "model")
        builder.add_conditional_edges("model", route)
        builder.add_edge("human", "model")
        add_memory(builder, memory, model_node="model", exclude_messages=True)
        graph = builder.compile(checkpointer=InMemorySaver())
        run: Any = {"configurable": {"user_id": "ann", "thread_id": "cleanup"}}

        def show(title: str) -> None:
            print(f"\n{title}")
            for turn in memory.thread("ann", "cleanup").turns():
                print(f"  {turn.role}: {turn.text}")

        state = graph.invoke({"messages": [("user", "Free some disk space on the server.")]}, run)
        print("PAUSED AT", [pause.value for pause in state.get("__interrupt__", [])])
        show("REMEMBERED AT THE PAUSE")
        graph.invoke(Command(resume="No, keep the backup of March. Delete the logs."), run)
        show("REMEMBERED AT THE END")
        later: Any = {"configurable": {"user_id": "ann", "thread_id": "later"}}
        state = graph.invoke({"messages": [("user", "Do we still have the backup of March?")]}, later)
        print("\nRECALLED LATER\n" + state["memory_context"])


if __name__ == "__main__":
    main()
