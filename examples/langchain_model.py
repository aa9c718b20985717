"""The chat model of the LangChain examples: scripted, or any real one by TSIM_MODEL=provider:model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class ScriptedModel(BaseChatModel):
    """Gives its replies one after the other, whatever it is asked."""

    replies: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.replies.pop(0))])

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> ScriptedModel:
        """Whatever the tools, the script stays the same."""
        return self


def chat_model(*replies: str | AIMessage) -> BaseChatModel:
    """The model that TSIM_MODEL names, such as ``openai:gpt-5-mini``, or one that gives these replies.

    A real one needs its LangChain package, such as ``pip install langchain-openai``, and its key.
    """
    if name := os.environ.get("TSIM_MODEL"):
        from langchain.chat_models import init_chat_model

        return init_chat_model(name)
    return ScriptedModel(replies=[AIMessage(r) if isinstance(r, str) else r for r in replies])
