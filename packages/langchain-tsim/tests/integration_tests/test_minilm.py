"""The default embedder, a real model, in a chain's memory and in a file."""

from __future__ import annotations

from pathlib import Path

from langchain_tsim import TSIMMemory, TSIMRetriever


def test_from_one_session_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    first = TSIMMemory(memory=path, scope=("alice", "monday"))
    first.save_context({"input": "My kitten naps in the laundry basket."}, {"output": "Cosy!"})
    first.save_context({"input": "She wakes at six to eat."}, {"output": "An early bird."})
    TSIMMemory(memory=first.memory, scope=("alice", "tuesday")).save_context(
        {"input": "I booked a berth for the yacht in Kiel."}, {"output": "Fair winds."}
    )
    assert not isinstance(first.memory, str | Path)
    first.memory.close()

    later = TSIMMemory(memory=path, scope=("alice", "friday"), recall_scope="alice", k=1)
    text = later.load_memory_variables({"input": "Where does my cat sleep?"})["history"]
    assert "laundry basket" in text
    assert "yacht" not in text
    (found,) = TSIMRetriever(memory=later.memory, scope=("alice", "friday"), recall_scope="alice", k=1).invoke(
        "harbour, boat"
    )
    assert "berth" in found.page_content
