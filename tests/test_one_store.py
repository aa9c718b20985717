"""One store file through every door: a chain writes it, a graph goes on, an engine and the command line read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import PromptTemplate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.retrievers.tsim import TSIMRetriever
from tsim_core import EpisodicMemory
from tsim_core.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")

NAME = ("ann", "lab")


class State(MessagesState):
    memory_context: str


def test_the_same_episodes_and_recalls_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from langchain_classic.chains import LLMChain
    from langchain_tsim import TSIMMemory
    from langgraph_tsim import add_memory, with_memory

    path = str(tmp_path / "memory.db")
    seen: list[str] = []

    # a chain writes
    chat = GenericFakeChatModel(messages=iter([AIMessage("Noted: one consumer GPU."), AIMessage("Sage and butter.")]))
    prompt = PromptTemplate.from_template("{history}\n{input}")
    chain = LLMChain(llm=chat, prompt=prompt, memory=TSIMMemory(memory=path, scope=NAME))
    chain.invoke({"input": "From now on new projects run on a single consumer GPU."})
    chain.invoke({"input": "What goes well with roast pumpkin?"})

    # a graph goes on with the same thread
    def model(state: State) -> dict[str, list[AIMessage]]:
        seen.append("\n".join(str(m.content) for m in with_memory(state)))
        return {"messages": [AIMessage("Then plan for one card.")]}

    builder = StateGraph(State).add_node("model", model).add_edge(START, "model")
    graph = add_memory(builder, path, model_node="model").compile(checkpointer=InMemorySaver())
    config = {"configurable": {"user_id": NAME[0], "thread_id": NAME[1]}}
    graph.invoke({"messages": [("user", "Which GPU hardware may the churn project use?")]}, config)
    assert "single consumer GPU" in seen[0]

    query = "GPU hardware for a new project"
    with EpisodicMemory(path, read_only=True) as memory:
        assert memory.threads() == [NAME]
        thread = memory.thread(*NAME)
        assert [turn.text for turn in thread.turns()] == [
            "From now on new projects run on a single consumer GPU.",
            "Noted: one consumer GPU.",
            "What goes well with roast pumpkin?",
            "Sage and butter.",
            "Which GPU hardware may the churn project use?",
            "Then plan for one card.",
        ]
        expected = thread.recall(query)
        assert memory.check() == []

        # an engine reads
        retriever = TSIMRetriever(memory, NAME)
        nodes = retriever.retrieve(query)
        assert [n.score for n in nodes] == [pytest.approx(e.score) for e in expected.episodes]
        answer = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query(query)
        assert "single consumer GPU" in str(answer)

    # the command line reads
    assert main(["recall", query, "--store", path, "--thread", "/".join(NAME), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [e["id"] for e in data["episodes"]] == [e.id for e in expected.episodes]
    assert data["text"] == expected.text
