"""Many users at once, in threads and in tasks: nothing bleeds, and the event loop is never blocked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_tsim import TSIMMemory, TSIMRetriever, create_tsim_search_tool
from tsim_core import EpisodicMemory

from ..helpers import ScriptedChat, WordEmbedder

USERS = [f"user{n:02}x" for n in range(12)]  # none is part of another
ROUNDS = 3


def secret(user: str, n: int) -> str:
    return f"The secret code of {user} number {n} is {user}-{n}."


def others(user: str, text: str) -> list[str]:
    return [other for other in USERS if other != user and other in text]


@pytest.fixture(params=["shared instance", "instance each"])
def memories(request: pytest.FixtureRequest, memory: EpisodicMemory) -> Any:
    """TSIMMemory of a user: one instance that takes the user from the inputs, or one each."""
    if request.param == "shared instance":
        shared = TSIMMemory(memory=memory, scope=("{user}", "chat"), recall_scope="{user}", recent_turns=2)
        return lambda user: shared
    each = {user: TSIMMemory(memory=memory, scope=(user, "chat"), recall_scope=user, recent_turns=2) for user in USERS}
    return lambda user: each[user]


def inputs(user: str, text: str) -> dict[str, str]:
    return {"input": text, "user": user}


def test_threads(memories: Any, memory: EpisodicMemory) -> None:
    def live(user: str) -> list[str]:
        seen = []
        for n in range(ROUNDS):
            memories(user).save_context(inputs(user, secret(user, n)), {"output": f"Noted, {user}."})
            seen.append(memories(user).load_memory_variables(inputs(user, "What is the secret code?"))["history"])
        return seen

    with ThreadPoolExecutor(8) as pool:
        for user, seen in zip(USERS, pool.map(live, USERS), strict=True):
            assert len(memory.thread(user, "chat").turns()) == 2 * ROUNDS
            for n, text in enumerate(seen):
                assert f"{user}-{n}" in text
                assert others(user, text) == []


async def test_tasks(memories: Any, memory: EpisodicMemory) -> None:
    async def live(user: str) -> list[str]:
        seen = []
        for n in range(ROUNDS):
            await memories(user).asave_context(inputs(user, secret(user, n)), {"output": f"Noted, {user}."})
            seen.append(
                (await memories(user).aload_memory_variables(inputs(user, "What is the secret code?")))["history"]
            )
        return seen

    for user, seen in zip(USERS, await asyncio.gather(*map(live, USERS)), strict=True):
        assert len(memory.thread(user, "chat").turns()) == 2 * ROUNDS
        for n, text in enumerate(seen):
            assert f"{user}-{n}" in text
            assert others(user, text) == []


async def test_retriever_and_tool_take_the_user_of_their_own_run(memory: EpisodicMemory) -> None:
    for user in USERS:
        memory.thread(user, "chat").add("user", secret(user, 0))
    retriever = TSIMRetriever(memory=memory, scope=("{user}", "chat"))
    tool = create_tsim_search_tool(memory, scope=("{user}", "chat"))

    async def live(user: str) -> str:
        config: Any = {"configurable": {"user": user}}
        documents = await retriever.ainvoke("secret code", config)
        return str(documents) + await tool.ainvoke({"query": "secret code"}, config)

    for user, text in zip(USERS, await asyncio.gather(*map(live, USERS)), strict=True):
        assert user in text
        assert others(user, text) == []


class SlowEmbedder(WordEmbedder):
    """As slow as a model: a call that ran in the event loop would stop the clock."""

    def embed(self, texts: Any) -> Any:
        time.sleep(0.4)
        return super().embed(texts)


@asynccontextmanager
async def ticker(most: float) -> AsyncIterator[None]:
    """Fails when the event loop stands still for longer than ``most`` seconds."""
    gaps: list[float] = []

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    task = asyncio.create_task(tick())
    await asyncio.sleep(0.02)
    yield
    task.cancel()
    assert gaps
    assert max(gaps) < most, f"the event loop stood still for {max(gaps):.3f} s"


async def test_issue_06_the_event_loop_is_never_blocked(tmp_path: Path) -> None:
    """Issues langchain 23716, langmem 66: the async path does sync I/O or blocks the loop."""
    with EpisodicMemory(tmp_path / "m.db", embedder=SlowEmbedder()) as memory:
        ours = TSIMMemory(memory=memory, scope="a", recent_turns=2)
        retriever = TSIMRetriever(memory=memory, scope="a")
        tool = create_tsim_search_tool(memory, scope="a")
        await ours.asave_context({"input": "warm up"}, {"output": "ok"})
        await retriever.ainvoke("warm up")
        async with ticker(0.35):
            await ours.asave_context({"input": "The cat sleeps."}, {"output": "ok then"})
            await ours.aload_memory_variables({"input": "Where is the cat?"})
            await retriever.ainvoke("cat, again")
            await tool.ainvoke({"query": "cat, once more"})
            await ours.aclear()


async def test_the_ticker_notices_a_call_that_blocks() -> None:
    async def block() -> None:
        async with ticker(0.35):
            time.sleep(0.4)  # noqa: ASYNC251
            await asyncio.sleep(0.1)

    with pytest.raises(AssertionError, match="stood still"):
        await block()


class TestAgents:
    @pytest.fixture(autouse=True)
    def _agents(self) -> None:
        pytest.importorskip("langchain.agents.middleware", reason="LangChain 0.3 has no middleware")

    @staticmethod
    def agent(memory: EpisodicMemory) -> tuple[Any, ScriptedChat]:
        from langchain.agents import create_agent
        from langchain_tsim import TSIMMiddleware
        from langgraph.checkpoint.memory import InMemorySaver

        model = ScriptedChat(answer=lambda prompt: f"Noted: {prompt[-1].content}")
        ours = TSIMMiddleware(memory, scope=("{user}", "{thread_id}"), recall_scope="{user}")
        return create_agent(model, middleware=[ours], checkpointer=InMemorySaver()), model

    @staticmethod
    def check(memory: EpisodicMemory, model: ScriptedChat) -> None:
        for user in USERS:
            assert len(memory.thread(user, f"{user}-thread").turns()) == 2 * ROUNDS
        for prompt in model.prompts:
            owner = next(user for user in USERS if user in str(prompt[-1].content))
            assert others(owner, "".join(str(m.content) for m in prompt)) == []

    async def test_tasks(self, memory: EpisodicMemory) -> None:
        agent, model = self.agent(memory)

        async def live(user: str) -> None:
            config = {"configurable": {"user": user, "thread_id": f"{user}-thread"}}
            for n in range(ROUNDS):
                await agent.ainvoke({"messages": [HumanMessage(secret(user, n))]}, config)

        await asyncio.gather(*map(live, USERS))
        self.check(memory, model)

    def test_threads(self, memory: EpisodicMemory) -> None:
        agent, model = self.agent(memory)

        def live(user: str) -> None:
            config = {"configurable": {"user": user, "thread_id": f"{user}-thread"}}
            for n in range(ROUNDS):
                agent.invoke({"messages": [HumanMessage(secret(user, n))]}, config)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(live, USERS))
        self.check(memory, model)

    async def test_issue_07_the_event_loop_is_never_blocked(self, tmp_path: Path) -> None:
        """Issue langgraph 2875: a sync store call in an async node."""
        with EpisodicMemory(tmp_path / "m.db", embedder=SlowEmbedder()) as memory:
            agent, _ = self.agent(memory)
            config = {"configurable": {"user": "a", "thread_id": "1"}}
            await agent.ainvoke({"messages": [HumanMessage("warm up")]}, config)
            async with ticker(0.35):
                await agent.ainvoke({"messages": [HumanMessage("The cat sleeps.")]}, config)
