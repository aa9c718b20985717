"""A deterministic embedder and a scripted model that keeps what it was given."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field
from tsim_core.embedding import Vectors, unit_rows

CLASSIC = "langchain_classic" if find_spec("langchain_classic") else "langchain"  # where chains are: 1.x, 0.3


def classic(module: str) -> Any:
    """A module of LangChain's chains and agents, under the name that the installed version has for it."""
    return import_module(f"{CLASSIC}.{module}")


class WordEmbedder:
    """Hashed bag of words: texts that share words are alike. Keeps what it embedded."""

    name = "words"
    dimension = 256
    max_tokens: int | None = None

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return word_vectors(texts, self.dimension)


class WordEmbeddings(Embeddings):
    """The same as a LangChain object, with calls counted by method."""

    def __init__(self, model: str = "words-1", dimensions: int | None = 256) -> None:
        self.model = model
        self.dimensions = dimensions
        self.calls: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append("embed_documents")
        return word_vectors(texts, self.dimensions or 64).tolist()

    def embed_query(self, text: str) -> list[float]:
        self.calls.append("embed_query")
        return word_vectors([text], self.dimensions or 64)[0].tolist()

    async def aembed_query(self, text: str) -> list[float]:
        self.calls.append("aembed_query")
        return word_vectors([text], self.dimensions or 64)[0].tolist()


def word_vectors(texts: Sequence[str], dimension: int) -> Vectors:
    array = np.zeros((len(texts), dimension), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in re.findall(r"\w+", text.lower()) or [text]:
            array[row, zlib.crc32(word.encode("utf-8", "surrogatepass")) % dimension] += 1
    return unit_rows(array)


Reply = AIMessage | str | Exception


class ScriptedChat(BaseChatModel):
    """Answers from a script, or by a function of what it is given. Keeps every prompt."""

    replies: list[Any] = Field(default_factory=list)
    answer: Callable[[list[BaseMessage]], Reply] | None = None
    prompts: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.prompts.append(list(messages))
        reply: Reply = self.answer(messages) if self.answer else self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        message = AIMessage(reply) if isinstance(reply, str) else reply
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, Any]:
        return self

    def seen(self, call: int = -1) -> str:
        """The text of a prompt."""
        return "\n".join(str(message.content) for message in self.prompts[call])


def scripted(*replies: Reply) -> ScriptedChat:
    return ScriptedChat(replies=list(replies))


def calls(*names_and_args: tuple[str, dict[str, Any]], text: str = "") -> AIMessage:
    """A message that calls tools."""
    return AIMessage(
        text,
        tool_calls=[
            {"name": name, "args": args, "id": f"call-{name}-{n}", "type": "tool_call"}
            for n, (name, args) in enumerate(names_and_args)
        ],
    )
