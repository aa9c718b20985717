"""An agent of ``create_agent`` with long-term memory: TSIMMiddleware recalls and writes, a tool searches on demand.

In one conversation the user sets a rule. In another, days later, she asks for something that the rule bears on. The
agent is given the rule without being told to look for it, and searches its memory once more by itself. Prints the
system message of the second conversation, what the tool found, the answer, and what is remembered by then.

    python examples/langchain_agent.py
    TSIM_MODEL=openai:gpt-5-mini python examples/langchain_agent.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage, ToolMessage
from langchain_model import chat_model
from langchain_tsim import TSIMMiddleware, create_tsim_search_tool
from langgraph.checkpoint.memory import InMemorySaver
from tsim_core import EpisodicMemory

WHOSE: dict[str, Any] = {"scope": ("{user_id}", "{thread_id}"), "recall_scope": "{user_id}"}
SEARCH = {"name": "search_memory", "args": {"query": "trip by plane or by train"}, "id": "1", "type": "tool_call"}


def main() -> None:
    """Run the example."""
    model = chat_model(
        "Understood: by train, and never before eight.",
        AIMessage("", tool_calls=[SEARCH]),
        "The train at 8:32 gets you to Vienna by noon; I left out the flight and the train at 6:30.",
    )
    given: list[str] = []

    @wrap_model_call
    def watch(request: Any, handler: Callable[[Any], Any]) -> Any:
        given.append(str(request.system_message.content))
        return handler(request)

    with EpisodicMemory() as memory:  # EpisodicMemory("memory.db") to keep it
        agent = create_agent(
            model,
            [create_tsim_search_tool(memory, **WHOSE)],
            system_prompt="You plan trips.",
            middleware=[TSIMMiddleware(memory, **WHOSE), watch],
            checkpointer=InMemorySaver(),
        )

        def ask(thread: str, text: str) -> Any:
            config: Any = {"configurable": {"user_id": "alice", "thread_id": thread}}
            return agent.invoke({"messages": [("user", text)]}, config)["messages"]

        ask("march", "For my trips: I do not fly, I go by train, and never before eight in the morning.")
        messages = ask("april", "How do I get to Vienna for the trip on Tuesday?")
        print("SYSTEM MESSAGE\n" + given[-1])
        for message in messages:
            if isinstance(message, ToolMessage):
                print("\nTHE TOOL FOUND\n" + str(message.content))
        print("\nANSWER\n" + messages[-1].text)
        print("\nREMEMBERED")
        for name in memory.threads(("alice",)):
            print(" / ".join(name), "-", ", ".join(turn.role for turn in memory.thread(*name).turns()))


if __name__ == "__main__":
    main()
