"""TSIM as the long-term store of a graph: what nodes put into ``runtime.store`` is found by its meaning.

The store holds what users like, and a node searches it for each request. It needs no model service, and keeps one
user's items out of another's search. Prints the items found for each request, best first, with their scores, the
answers, and the namespaces.

    python examples/langgraph_store.py
    TSIM_MODEL=openai:gpt-5-mini python examples/langgraph_store.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langchain_core.messages import SystemMessage
from langchain_model import chat_model
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph_tsim import TSIMStore


@dataclass
class Context:
    """Who asks."""

    user_id: str


LIKES = {
    "ann": ["I like my coffee black and strong.", "My favourite trips go to the mountains.", "I read crime novels."],
    "ben": ["I drink tea only.", "I love beaches and warm water."],
}


def main() -> None:
    """Run the example."""
    llm = chat_model("A hut in the Jotunheimen.", "A week by the sea in Portugal.", "An espresso, no sugar.")

    def model(state: MessagesState, runtime: Runtime[Context]) -> dict[str, Any]:
        assert runtime.store is not None
        request = str(state["messages"][-1].text)
        found = runtime.store.search(("likes", runtime.context.user_id), query=request, limit=2)
        print(f"\n{runtime.context.user_id}: {request}")
        for item in found:
            print(f"  {item.score:.2f}  {item.value['text']}")
        known = "\n".join(item.value["text"] for item in found)
        return {"messages": [llm.invoke([SystemMessage(f"What the user likes:\n{known}"), *state["messages"]])]}

    builder = StateGraph(MessagesState, context_schema=Context)
    builder.add_node(model)
    builder.add_edge(START, "model")
    with TSIMStore(index={"fields": ["text"]}) as store:  # TSIMStore("store.db") to keep it
        graph = builder.compile(store=store)
        for user, texts in LIKES.items():
            for i, text in enumerate(texts):
                store.put(("likes", user), str(i), {"text": text})
        for user, request in [
            ("ann", "Where shall I spend my holidays?"),
            ("ben", "Where shall I spend my holidays?"),
            ("ann", "What should I order at the bar?"),
        ]:
            state = graph.invoke({"messages": [("user", request)]}, context=Context(user))
            print(f"  -> {state['messages'][-1].text}")
        print("\nNAMESPACES", store.list_namespaces())


if __name__ == "__main__":
    main()
