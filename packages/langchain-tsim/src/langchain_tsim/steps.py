"""The intermediate steps of an agent executor as messages: tool calls, each followed by its answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from langchain_core.agents import AgentAction
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_tsim._json import encode


def step_messages(steps: Iterable[tuple[AgentAction, Any]]) -> list[BaseMessage]:
    """Messages of the steps that a chain returned.

    Calls that the model made in one message stay in one. An action of an agent without tool calls becomes a call with
    its tool, input and log.

    Args:
        steps: Actions and what the tools answered, in order.
    """
    messages: list[BaseMessage] = []
    seen: list[BaseMessage] = []
    for action, observation in steps:
        call_id = getattr(action, "tool_call_id", None)
        if call_id is None:
            call_id = f"call-{uuid4()}"
            messages.append(_call(action, call_id))
        else:
            for message in getattr(action, "message_log", []):
                if not any(message is other for other in seen):
                    seen.append(message)
                    messages.append(message)
        messages.append(ToolMessage(_content(observation), tool_call_id=call_id, name=action.tool))
    return messages


def _call(action: AgentAction, call_id: str) -> AIMessage:
    args = action.tool_input if isinstance(action.tool_input, dict) else {"input": action.tool_input}
    return AIMessage(action.log, tool_calls=[{"name": action.tool, "args": args, "id": call_id, "type": "tool_call"}])


def _content(observation: Any) -> str:
    return observation if isinstance(observation, str) else json.dumps(encode(observation), ensure_ascii=False)
