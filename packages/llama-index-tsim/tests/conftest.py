"""Deterministic models that record what they were given."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import BaseMemoryBlock, Memory
from pydantic import PrivateAttr
from tsim_core import TSIMConfig

TOPICS = {
    "cat": {"cat", "vet", "tuna", "whiskers", "kitten", "猫"},
    "gpu": {"gpu", "cuda", "driver", "rtx", "4090", "显卡"},
    "trip": {"paris", "louvre", "train", "hotel", "trip", "巴黎"},
}
DIMENSION = 64


def vector_of(text: str) -> list[float]:
    """One axis for each topic, hashed words on the others."""
    vector = np.full(DIMENSION, 1e-3)
    for word in re.findall(r"\w+", text.lower()):
        for axis, words in enumerate(TOPICS.values()):
            if any(w == word or (not w.isascii() and w in word) for w in words):
                vector[axis] += 3.0
        vector[len(TOPICS) + crc32(word.encode("utf-8", "surrogatepass")) % (DIMENSION - len(TOPICS))] += 0.3
    return list((vector / np.linalg.norm(vector)).tolist())


class TopicEmbedding(BaseEmbedding):
    """Embeds texts by topic words and records them."""

    model_name: str = "topics"
    flavour: str = "plain"
    api_key: str = "sk-very-secret"
    _texts: list[str] = PrivateAttr(default_factory=list)
    _queries: list[str] = PrivateAttr(default_factory=list)
    _async_calls: int = PrivateAttr(default=0)

    @classmethod
    def class_name(cls) -> str:
        return "TopicEmbedding"

    @property
    def texts(self) -> list[str]:
        return self._texts

    @property
    def queries(self) -> list[str]:
        return self._queries

    @property
    def async_calls(self) -> int:
        return self._async_calls

    def _get_query_embedding(self, query: str) -> list[float]:
        self._queries.append(query)
        return vector_of(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        self._async_calls += 1
        await asyncio.sleep(0.01)
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        self._texts.append(text)
        return vector_of(text)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        self._async_calls += 1
        await asyncio.sleep(0.01)
        return self._get_text_embedding(text)


class RecordingLLM(MockFunctionCallingLLM):
    """Answers by a script, or "noted"; records the messages of each call."""

    _given: list[list[ChatMessage]] = PrivateAttr(default_factory=list)

    @property
    def given(self) -> list[list[ChatMessage]]:
        return self._given

    @property
    def last(self) -> str:
        """The text of all messages of the last call."""
        return "\n".join(str(message) for message in self._given[-1])

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        answer = self.response_generator([ChatMessage(content=prompt)])
        return super().complete(answer.content, formatted, **kwargs)

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        return self.complete(prompt, formatted, **kwargs)


@pytest.fixture
def topic_vector() -> Callable[[str], list[float]]:
    return vector_of


@pytest.fixture
def embed_model() -> TopicEmbedding:
    return TopicEmbedding()


@pytest.fixture
def make_llm() -> Callable[..., RecordingLLM]:
    def make(answers: Sequence[ChatMessage | str] = ()) -> RecordingLLM:
        script = list(answers)

        def respond(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
            llm.given.append([message.model_copy(deep=True) for message in messages])
            answer = script.pop(0) if script else "noted"
            return ChatMessage(role="assistant", content=answer) if isinstance(answer, str) else answer

        llm = RecordingLLM(response_generator=respond, is_chat_model=True)
        return llm

    return make


@pytest.fixture
def config() -> TSIMConfig:
    """Cuts exactly where the topic changes."""
    paper = TSIMConfig.paper().replace(theta_s=0.5, b=0.0, l_min=0, l_max=100_000, min_messages=1)
    return TSIMConfig.default().replace(segmentation=paper.segmentation, linking=None)


@pytest.fixture
async def make_memory() -> AsyncIterator[Callable[..., Memory]]:
    """Makes LlamaIndex memories and closes their connections, which they leave open."""
    made: list[Memory] = []

    def make(*blocks: BaseMemoryBlock[Any], session: str = "s", **settings: Any) -> Memory:
        settings = {"token_limit": 300, "chat_history_token_ratio": 0.05, "token_flush_size": 10} | settings
        made.append(Memory.from_defaults(session_id=session, memory_blocks=list(blocks), **settings))
        return made[-1]

    yield make
    for memory in made:
        if memory.sql_store._async_engine is not None:
            await memory.sql_store._async_engine.dispose()


TRANSCRIPT = """\
User: My cat Whiskers is ill.
Assistant: Take the cat to the vet.
User: Does the cat get tuna?
Assistant: No tuna for the cat, says the vet.

User: Which GPU do I need?
Assistant: An RTX 4090 GPU.
User: And which CUDA driver for the GPU?
Assistant: CUDA driver 550 for that GPU.

User: Let us plan the trip to Paris.
Assistant: Take the train to Paris for the trip.
"""


@pytest.fixture
def transcript() -> str:
    """Three topics: four turns about a cat, four about a GPU, two about a trip."""
    return TRANSCRIPT


@pytest.fixture
def chat() -> list[ChatMessage]:
    """The transcript as messages."""
    pairs = [line.split(": ", 1) for line in TRANSCRIPT.splitlines() if line]
    return [ChatMessage(role=who.lower(), content=text) for who, text in pairs]
