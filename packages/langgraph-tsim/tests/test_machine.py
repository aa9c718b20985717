"""Random sequences of run, replay, fork, trim, interrupt, failure and restart against a plain model of the memory."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from langgraph_tsim import add_memory
from tsim_core import EpisodicMemory

from .conftest import State, WordEmbedder, at, edited, run_of, said, texts

RUNS = [("alice", "a1"), ("alice", "a2"), ("bob", "b1")]
picks = st.integers(0, 1_000)


class Conversations(RuleBasedStateMachine):
    """Three threads of two users. All that is said is made of words that occur once: word7, word8, ..."""

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "memory.db"
        self.saver = InMemorySaver()
        self.words = 0
        self.fails = False
        self.recalled: list[str] = []
        self.expected: dict[tuple[str, str], list[tuple[str | None, str]]] = {run: [] for run in RUNS}
        self.paused: dict[tuple[str, str], bool] = dict.fromkeys(RUNS, False)
        self.open()

    def open(self) -> None:
        self.memory = EpisodicMemory(self.path, embedder=WordEmbedder())

        def model(state: State) -> dict[str, Any]:
            self.recalled.append(state["memory_context"])
            if self.fails:
                raise ConnectionError("no model")
            asks = "approve" in str(state["messages"][-1].text)
            return {"messages": [AIMessage(self.say("may I?" if asks else "done"))]}

        def approve(state: State) -> dict[str, Any]:
            return {"messages": [HumanMessage(self.say(f"you {interrupt('may I?')}"))]}

        builder = StateGraph(State)
        builder.add_node("model", model)
        builder.add_node("approve", approve)
        builder.add_edge(START, "model")
        builder.add_conditional_edges(
            "model", lambda state: "approve" if "may I?" in state["messages"][-1].text else END, ["approve", END]
        )
        builder.add_edge("approve", "model")
        self.graph: Any = add_memory(builder, self.memory, model_node="model").compile(checkpointer=self.saver)

    def say(self, text: str) -> str:
        self.words += 1
        return f"{text} word{self.words}"

    def messages(self, key: tuple[str, str]) -> list[BaseMessage]:
        return list(self.graph.get_state(run_of(key[1], key[0])).values.get("messages", []))

    def run(self, key: tuple[str, str], given: Any, config: dict[str, Any] | None = None) -> None:
        """A run; afterwards the conversation is remembered, and what was trimmed before it."""
        self.recalled.clear()
        out = self.graph.invoke(given, config or run_of(key[1], key[0]))
        self.paused[key] = "__interrupt__" in out
        now = [(m.id, str(m.text)) for m in out["messages"]]
        before = self.expected[key]
        ids = {id_ for id_, _ in now}
        shared = next((i for i, (id_, _) in enumerate(before) if id_ in ids), len(before))
        self.expected[key] = before[:shared] + now
        known = {
            word for k, held in self.expected.items() if k[0] == key[0] for _, text in held for word in _words(text)
        }
        for text in self.recalled:
            assert _words(text) <= known, "another branch's or another user's words were recalled"

    def snapshots(self, key: tuple[str, str]) -> list[Any]:
        return [s for s in self.graph.get_state_history(run_of(key[1], key[0])) if s.next == ("recall",)]

    @rule(key=st.sampled_from(RUNS), approval=st.booleans())
    def ask(self, key: tuple[str, str], approval: bool) -> None:
        self.run(key, said(self.say("approve this" if approval else "do this")))

    @rule(key=st.sampled_from(RUNS), pick=picks)
    def replay(self, key: tuple[str, str], pick: int) -> None:
        if found := self.snapshots(key):
            self.run(key, None, at(found[pick % len(found)].config, key[0]))

    @rule(key=st.sampled_from(RUNS), pick=picks)
    def fork(self, key: tuple[str, str], pick: int) -> None:
        if found := self.snapshots(key):
            chosen = found[pick % len(found)]
            update = edited(chosen.values["messages"][-1], self.say("do that instead"))
            self.run(key, None, at(self.graph.update_state(chosen.config, update), key[0]))

    @rule(key=st.sampled_from(RUNS), pick=picks)
    def trim(self, key: tuple[str, str], pick: int) -> None:
        messages = self.messages(key)
        if len(messages) > 1 and not self.paused[key]:
            gone = messages[: 1 + pick % (len(messages) - 1)]
            self.graph.update_state(run_of(key[1], key[0]), {"messages": [RemoveMessage(m.id) for m in gone]})

    @precondition(lambda self: any(self.paused.values()))
    @rule(answer=st.sampled_from(["agree", "refuse"]))
    def resume(self, answer: str) -> None:
        key = next(k for k, paused in self.paused.items() if paused)
        self.run(key, Command(resume=answer))

    @rule(key=st.sampled_from(RUNS))
    def fail(self, key: tuple[str, str]) -> None:
        self.fails = True
        with pytest.raises(ConnectionError):
            self.graph.invoke(said(self.say("do this")), run_of(key[1], key[0]))
        self.fails = False
        self.paused[key] = False

    @rule()
    def restart(self) -> None:
        self.memory.close()
        self.open()

    @invariant()
    def what_must_be_remembered_is(self) -> None:
        for (user, thread), held in self.expected.items():
            assert texts(self.memory, user, thread) == [text for _, text in held]
        assert self.memory.check() == []

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()
            self.folder.cleanup()


def _words(text: str) -> set[str]:
    return set(re.findall(r"word\d+", text))


TestConversations = Conversations.TestCase
TestConversations.settings = settings(max_examples=15, stateful_step_count=12, suppress_health_check=list(HealthCheck))
