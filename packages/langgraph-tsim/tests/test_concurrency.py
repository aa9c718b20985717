"""Fifty conversations at once in one process, sync and async: no turn lost, doubled or in the wrong place."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tsim_core import EpisodicMemory

from .conftest import State, WordEmbedder, chat, run_of, said, texts

THREADS, ROUNDS = 50, 3
FOREIGN: list[str] = []


def echo(state: State) -> dict[str, Any]:
    """Answers with the request, and notes when another user's word was recalled."""
    request = str(state["messages"][-1].text)
    user = request.split()[0]
    FOREIGN.extend(w for w in state["memory_context"].split() if w.startswith("user") and w not in ("user:", user))
    return {"messages": [AIMessage(f"echo {request}")]}


def user_of(thread: int) -> str:
    return f"user{thread % 10}"


def request_of(thread: int, n: int) -> str:
    return f"{user_of(thread)} says {n} in conversation {thread}"


def expected(thread: int) -> list[str]:
    return [text for n in range(ROUNDS) for text in (request_of(thread, n), f"echo {request_of(thread, n)}")]


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ":memory:" if request.param == "memory" else str(tmp_path / "memory.db")


def check(memory: EpisodicMemory) -> None:
    assert not FOREIGN
    assert len(memory.threads()) == THREADS
    for thread in range(THREADS):
        assert texts(memory, user_of(thread), f"t{thread}") == expected(thread)
    assert memory.check() == []


def test_sync_runs_in_worker_threads(place: str) -> None:
    with EpisodicMemory(place, embedder=WordEmbedder()) as memory:
        graph = chat(memory, echo)

        def talk(thread: int) -> None:
            for n in range(ROUNDS):
                graph.invoke(said(request_of(thread, n)), run_of(f"t{thread}", user_of(thread)))

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(talk, range(THREADS)))
        check(memory)


async def test_async_runs_in_one_loop(place: str) -> None:
    with EpisodicMemory(place, embedder=WordEmbedder()) as memory:
        graph = chat(memory, echo)

        async def talk(thread: int) -> None:
            for n in range(ROUNDS):
                await graph.ainvoke(said(request_of(thread, n)), run_of(f"t{thread}", user_of(thread)))

        await asyncio.gather(*(talk(thread) for thread in range(THREADS)))
        check(memory)


async def test_runs_that_are_cancelled_at_any_moment_leave_whole_turns(place: str) -> None:
    dice = random.Random(7)
    with EpisodicMemory(place, embedder=WordEmbedder()) as memory:
        graph = chat(memory, echo)

        async def talk(thread: int) -> None:
            run = run_of(f"t{thread}", user_of(thread))
            broken = asyncio.create_task(graph.ainvoke(said(request_of(thread, 0)), run))
            await asyncio.sleep(dice.random() / 5)
            broken.cancel()
            await asyncio.gather(broken, return_exceptions=True)
            await graph.ainvoke(said(request_of(thread, 1)), run)

        await asyncio.gather(*(talk(thread) for thread in range(20)))
        assert not FOREIGN
        for thread in range(20):
            held = texts(memory, user_of(thread), f"t{thread}")
            messages = (await graph.aget_state(run_of(f"t{thread}"))).values["messages"]
            assert held == [m.text for m in messages], "what the graph knows is what is remembered"
            assert len(held) == len(set(held))
        assert memory.check() == []
