"""A small deterministic embedder, a memory on it, and scripted graphs. The whole suite runs with strict msgpack."""

from __future__ import annotations

import os

os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"  # before langgraph is imported

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde import _msgpack
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_tsim import MemoryState, add_memory, with_memory
from tsim_core import EpisodicMemory
from tsim_core.embedding import Vectors, unit_rows


class WordEmbedder:
    """Hashed bag of words: texts that share words are alike. Counts what it embeds."""

    name = "words"
    dimension = 256
    max_tokens: int | None = None

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        array = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()) or [text]:
                array[row, zlib.crc32(word.encode("utf-8", "surrogatepass")) % self.dimension] += 1
        return unit_rows(array)


class State(MessagesState, MemoryState):
    pass


class Model:
    """A scripted model as a node: it keeps what it saw, and answers with the n-th of its answers."""

    def __init__(self, *answers: str | BaseMessage) -> None:
        self.answers = list(answers)
        self.saw: list[list[BaseMessage]] = []

    def __call__(self, state: State) -> dict[str, Any]:
        self.saw.append(with_memory(state))
        answer = self.answers[len(self.saw) - 1] if self.answers else f"answer {len(self.saw)}"
        return {"messages": [AIMessage(answer) if isinstance(answer, str) else answer]}

    def prompt(self, call: int = -1) -> str:
        """All text of a call, the recalled part too."""
        return "\n".join(str(message.text) for message in self.saw[call])

    def recalled(self, call: int = -1) -> str:
        """The recalled part alone."""
        first = str(self.saw[call][0].text)
        return first.partition("<memory>")[2].partition("</memory>")[0]


@pytest.fixture(scope="session", autouse=True)
def strict_msgpack() -> None:
    assert _msgpack.STRICT_MSGPACK_ENABLED


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def memory(embedder: WordEmbedder) -> Iterator[EpisodicMemory]:
    with EpisodicMemory(embedder=embedder) as memory:
        yield memory


def chat(memory: EpisodicMemory, model: Any, checkpointer: Any = None, **options: Any) -> Any:
    """A graph of one model with memory around it."""
    builder = StateGraph(State)
    builder.add_node("model", model)
    builder.add_edge(START, "model")
    add_memory(builder, memory, model_node="model", **options)
    return builder.compile(checkpointer=InMemorySaver() if checkpointer is None else checkpointer)


def run_of(thread: object = "t1", user: object = "alice", **more: Any) -> dict[str, Any]:
    """Configuration of a run."""
    return {"configurable": {"thread_id": thread, **({} if user is None else {"user_id": user}), **more}}


def at(config: Any, user: object = "alice") -> dict[str, Any]:
    """Configuration of a run that starts at a checkpoint: a snapshot's config does not carry the user."""
    return {"configurable": {**config["configurable"], **({} if user is None else {"user_id": user})}}


def before(graph: Any, node: str, run: dict[str, Any]) -> Any:
    """The latest snapshot of a thread before a node."""
    return next(s for s in graph.get_state_history(run) if s.next == (node,))


def edited(message: BaseMessage, text: str) -> dict[str, Any]:
    """Update of a state: the same message with another text."""
    return {"messages": [message.model_copy(update={"content": text})]}


def said(text: str) -> dict[str, Any]:
    """Input of a graph: one human message."""
    return {"messages": [("user", text)]}


def texts(memory: EpisodicMemory, *name: str) -> list[str]:
    """What a thread of the memory holds."""
    return [turn.text for turn in memory.thread(*name).turns()]
