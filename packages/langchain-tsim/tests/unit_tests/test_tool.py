"""The search tool: text for the model, episodes as artifact."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_tsim import ScopeError, create_tsim_search_tool
from tsim_core import EpisodicMemory, InputError, Turn


@pytest.fixture
def stored(memory: EpisodicMemory) -> EpisodicMemory:
    memory.thread("alice", "1").extend([Turn("user", "The cat sleeps in the red basket.", "c1")])
    memory.thread("bob", "1").extend([Turn("user", "The cat of Bob sleeps in the garage.", "x1")])
    return memory


def call(query: str) -> dict[str, Any]:
    return {"type": "tool_call", "name": "search_memory", "id": "1", "args": {"query": query}}


def test_content_and_artifact(stored: EpisodicMemory) -> None:
    tool = create_tsim_search_tool(stored, scope=("alice", "1"))
    message = tool.invoke(call("Where does the cat sleep?"))
    assert isinstance(message, ToolMessage)
    assert "red basket" in str(message.content)
    (episode,) = json.loads(json.dumps(message.artifact, allow_nan=False))
    assert [turn["id"] for turn in episode["turns"]] == ["c1"]
    assert tool.invoke({"query": "Where does the cat sleep?"}) == message.content


async def test_the_scope_is_the_runs_and_not_the_models(stored: EpisodicMemory) -> None:
    tool = create_tsim_search_tool(stored, scope=("{user_id}", "{thread_id}"), recall_scope="{user_id}")
    assert set(tool.args) == {"query", "after", "before"}
    config: Any = {"configurable": {"user_id": "bob", "thread_id": "9"}}
    for message in (tool.invoke(call("cat"), config), await tool.ainvoke(call("cat"), config)):
        assert "garage" in str(message.content)
        assert "basket" not in str(message.content)
    with pytest.raises(ScopeError, match="user_id"):
        tool.invoke(call("cat"))


def test_nothing_found_and_times(stored: EpisodicMemory) -> None:
    tool = create_tsim_search_tool(stored, scope="nobody", name="remember", description="d")
    assert (tool.name, tool.description) == ("remember", "d")
    message = tool.invoke(call("cat"))
    assert message.content == "The memory holds no turns in this scope yet."
    assert message.artifact == []
    alice = create_tsim_search_tool(stored, scope=("alice", "1"))
    assert alice.invoke({"query": "cat", "after": "2030-01-01T00:00:00Z"}) == "Nothing was found in memory."


async def test_a_scope_without_turns_is_told_apart_from_one_where_nothing_fits(stored: EpisodicMemory) -> None:
    never = {"query": "cat", "after": "2030-01-01T00:00:00Z"}
    for scope, recall_scope, said in [
        (("alice", "2"), None, "The memory holds no turns in this scope yet."),
        ("alice", None, "The memory holds no turns in this scope yet."),  # a thread above Alice's, with nothing in it
        (("alice", "2"), "alice", "Nothing was found in memory."),
        (("carol", "1"), "carol", "The memory holds no turns in this scope yet."),
    ]:
        tool = create_tsim_search_tool(stored, scope=scope, recall_scope=recall_scope)
        assert (tool.invoke(never), await tool.ainvoke(never)) == (said, said)


def test_limits_are_checked_at_once(memory: EpisodicMemory) -> None:
    with pytest.raises(InputError, match="k=0"):
        create_tsim_search_tool(memory, k=0)
    with pytest.raises(ScopeError):
        create_tsim_search_tool(memory, scope="")
