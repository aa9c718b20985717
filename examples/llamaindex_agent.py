"""An agent whose memory outlives its process.

Runs an agent, saves its context as JSON, restores it as another process would, and asks about what was said before.
Prints each question with its answer, what the restored agent's model was given from memory, and the tool messages that
were kept.

    python examples/llamaindex_agent.py
    TSIM_MODEL=openai:gpt-4o-mini python examples/llamaindex_agent.py      # with llama-index-llms-openai

Without TSIM_MODEL a scripted model answers.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.agent.workflow import AgentInput, FunctionAgent
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.workflow import Context, JsonSerializer
from llama_index.memory.tsim import TSIMMemory


def weigh(animal: str) -> str:
    """Weigh an animal on the kitchen scales."""
    return f"The {animal} weighs 4.2 kg."


def scripted(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
    """Calls the tool when asked to weigh, and answers from what it was given."""
    question, rest = messages[-1], "\n".join(str(m) for m in messages)
    if question.role.value == "tool":
        return ChatMessage(role="assistant", content=str(question.content))
    if "Weigh" in str(question.content):
        call = ToolCallBlock(tool_call_id="call-1", tool_name="weigh", tool_kwargs={"animal": "cat"})
        return ChatMessage(role="assistant", blocks=[call])
    if "may she eat" in str(question.content):
        answer = "No tuna: she is allergic." if "allergic to tuna" in rest else "I do not know."
        return ChatMessage(role="assistant", content=answer)
    return ChatMessage(role="assistant", content="Noted.")


def model() -> LLM:
    """The model that TSIM_MODEL names as provider:model, or the scripted one."""
    name = os.environ.get("TSIM_MODEL")
    if name is None:
        return MockFunctionCallingLLM(response_generator=scripted, is_chat_model=True)
    provider, _, which = name.partition(":")
    module = importlib.import_module(f"llama_index.llms.{provider.replace('-', '_')}")
    wanted = provider.replace("-", "").replace("_", "").lower()
    kind = next(getattr(module, n) for n in module.__all__ if n.lower() == wanted)
    return kind(model=which)  # type: ignore[no-any-return]


async def talk(folder: Path) -> None:
    agent = FunctionAgent(tools=[weigh], llm=model(), system_prompt="You help at home.")
    memory = TSIMMemory.from_defaults(
        store=str(folder / "memory.db"), namespace=["kim"], session_id="home", token_limit=40, similarity_top_k=1
    )
    context = Context(agent)
    for question in (
        "My cat Luna is allergic to tuna, says the vet.",
        "Weigh the cat, please.",
        "The dishwasher shows error E15, and there is water under it.",
        "The plumber comes on Friday at nine.",
    ):
        answer = await agent.run(question, ctx=context, memory=memory)
        print(f"- {question}\n  {answer}")

    saved = json.dumps(context.to_dict(serializer=JsonSerializer()))
    memory.memory.close()
    restored = Context.from_dict(agent, json.loads(saved), serializer=JsonSerializer())

    question = "What may she eat, our cat Luna?"
    handler = agent.run(question, ctx=restored)
    async for event in handler.stream_events():
        if isinstance(event, AgentInput):
            recalled = [m for m in event.input if "[1]" in str(m.content) and m.role.value == "system"]
    print(f"\nrestored, the model is given:\n{recalled[-1].content}")
    print(f"\n- {question}\n  {await handler}")

    kept: TSIMMemory = await restored.store.get("memory")
    tools = [m for m in kept.get_all() if m.role.value == "tool"]
    print(f"\nkept tool results: {[m.content for m in tools]}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(talk(Path(folder)))


if __name__ == "__main__":
    main()
