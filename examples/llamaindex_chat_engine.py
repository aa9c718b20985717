"""A chat engine that keeps everything, with a prompt that stays small.

Talks through three topics and prints, for the last question, the messages that the model was given: the latest ones and
the earlier episode that bears on the question.

    python examples/llamaindex_chat_engine.py
    TSIM_MODEL=openai:gpt-4o-mini python examples/llamaindex_chat_engine.py      # with llama-index-llms-openai

Without TSIM_MODEL a scripted model answers.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.memory.tsim import TSIMMemory

TALK = [
    "New projects run on a single consumer GPU, an RTX 4090. That is the rule from now on.",
    "My sourdough is dense. I let the dough proof for two hours.",
    "We fly to Lisbon in May and look for a quiet quarter to stay in.",
    "Is the tram pass worth it in Lisbon?",
    "I start a new project tomorrow. Which GPU may it use?",
]


def scripted(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
    """Answers from what it was given: the rule, if the prompt holds it."""
    question, rest = str(messages[-1].content), "\n".join(str(m) for m in messages[:-1])
    if "Which GPU" in question:
        answer = "A single RTX 4090, by your rule." if "RTX 4090" in rest else "I do not know."
    else:
        answer = "I see."
    return ChatMessage(role="assistant", content=answer)


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


def main() -> None:
    # store="memory.db" keeps it on disk; a window this small shows what is recalled
    memory = TSIMMemory.from_defaults(session_id="monday", token_limit=60, similarity_top_k=1)
    engine = SimpleChatEngine.from_defaults(llm=model(), memory=memory)
    for message in TALK[:-1]:
        engine.chat(message)

    question = TALK[-1]
    answer = engine.chat(question)
    print("The model was given:\n")
    for given in memory.get(question)[:-1]:  # without the answer, which is stored by now
        print(f"  {given.role.value}: {given.content}".replace("\n", "\n    "))
    print(f"\nIt answered: {answer}")
    print(f"\nThe memory keeps all {len(memory.get_all())} messages.")


if __name__ == "__main__":
    main()
