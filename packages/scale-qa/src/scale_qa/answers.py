"""Answer models: a forced choice among the options, from constrained output. Failures are counted, never hidden."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, Protocol

from pydantic import BaseModel, Field

from scale_qa.errors import AnswerError
from scale_qa.records import LETTERS

PROVIDERS = {
    "openai": "langchain-openai",
    "google_genai": "langchain-google-genai",
    "deepseek": "langchain-deepseek",
    "ollama": "langchain-ollama",
}
Method = Literal["json_schema", "function_calling", "json_mode"]


class Choice(BaseModel):
    """The answer to a four-way question."""

    answer: Literal["A", "B", "C", "D"] = Field(description="Letter of the one option that is right")
    rationale: str = Field(description="One sentence: which part of the conversation decides")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said.

    Attributes:
        letter: The option chosen; None where there is none.
        rationale: Why.
        failure: "no_letter" (it answered, and named no option) or "error" (it did not answer); None otherwise.
        detail: The raw answer or the error, where it failed.
        seconds: Time of the call.
    """

    letter: str | None
    rationale: str = ""
    failure: str | None = None
    detail: str = ""
    seconds: float = 0.0


class Answerer(Protocol):
    """What a run asks of an answer model."""

    @property
    def name(self) -> str:
        """What the report calls it."""
        ...

    def answer(self, query: str, options: Sequence[str], context: str) -> Answer:
        """Choose one of the options. Never raises for what the model does."""
        ...

    def complete(self, prompt: str) -> str:
        """Free text, for memories that want an LLM.

        Raises:
            AnswerError: If the model does not answer.
        """
        ...


def options_text(options: Sequence[str]) -> str:
    """The options as lettered lines."""
    return "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=True))


def question_prompt(query: str, options: Sequence[str], context: str) -> str:
    """The prompt of a four-way question. An empty context says so, which is the no-context control."""
    memory = context if context.strip() else "(nothing was recalled)"
    return (
        "Parts of an earlier conversation with the user:\n\n"
        f"{memory}\n\n---\nThe user now asks: {query}\n\n{options_text(options)}\n\n"
        "Exactly one option fits what was agreed in the conversation. Where two of its statements conflict, the "
        "later one holds. Choose it."
    )


class ChatModelAnswerer:
    """Any LangChain chat model, with its own way of constraining output.

    Args:
        model: A chat model.
        name: What the report calls it.
        method: How the choice is constrained; the model's default when None.
    """

    def __init__(self, model: Any, name: str, method: Method | None = None) -> None:
        self.name = name
        self._model = model
        extra = {} if method is None else {"method": method}
        self._choose = model.with_structured_output(Choice, include_raw=True, **extra)

    def answer(self, query: str, options: Sequence[str], context: str) -> Answer:
        """See `Answerer.answer`."""
        start = perf_counter()
        try:
            reply = self._choose.invoke(question_prompt(query, options, context))
        except ValueError as error:  # the model answered, and the client could not parse it
            return Answer(None, failure="no_letter", detail=str(error)[:500], seconds=perf_counter() - start)
        except Exception as error:  # any client error of any provider: counted and reported by the run
            detail = f"{type(error).__name__}: {error}"[:500]
            return Answer(None, failure="error", detail=detail, seconds=perf_counter() - start)
        seconds = perf_counter() - start
        choice = reply["parsed"]
        if not isinstance(choice, Choice):
            raw = reply["raw"].text if hasattr(reply["raw"], "text") else str(reply["raw"])
            return Answer(None, failure="no_letter", detail=str(raw)[:500], seconds=seconds)
        return Answer(choice.answer, choice.rationale, seconds=seconds)

    def complete(self, prompt: str) -> str:
        """See `Answerer.complete`."""
        try:
            return str(self._model.invoke(prompt).text)
        except Exception as error:  # as above: the provider's own error types are unknown here
            raise AnswerError(f"the model {self.name} does not answer: {error}") from error


def load_answerer(name: str, url: str | None = None, method: Method | None = None) -> ChatModelAnswerer:
    """The chat model of that name.

    Args:
        name: ``provider:model`` as LangChain's ``init_chat_model`` takes it, such as ``ollama:gemma2:9b``,
            ``openai:gpt-4o-mini``, ``google_genai:gemini-2.5-flash`` or ``deepseek:deepseek-chat``.
        url: Base URL of an OpenAI-compatible server, for the ``openai`` provider.
        method: See `ChatModelAnswerer`.

    Raises:
        AnswerError: If the name has no provider, or a package or a key is missing.
    """
    provider, colon, model = name.partition(":")
    if not colon or not model:
        raise AnswerError(f"{name!r} names no provider; write provider:model, such as openai:gpt-4o-mini")
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise AnswerError("answer models come through LangChain; pip install 'scale-qa[answers]'") from error
    extra: dict[str, Any] = {"base_url": url} if url else {}
    if url and provider == "openai" and "OPENAI_API_KEY" not in os.environ:
        extra["api_key"] = "none"  # servers of one's own ask for none, the client insists on one
    try:
        built = init_chat_model(model, model_provider=provider, temperature=0, max_retries=2, **extra)
    except ImportError as error:
        package = PROVIDERS.get(provider, f"langchain-{provider.replace('_', '-')}")
        raise AnswerError(f"{name!r} needs a package that is not here; pip install {package}") from error
    except Exception as error:  # a missing key raises another type with every provider
        raise AnswerError(f"{name!r} cannot be set up: {error}") from error
    return ChatModelAnswerer(built, name, method)
