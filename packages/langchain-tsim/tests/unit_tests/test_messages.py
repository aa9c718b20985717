"""Messages become turns and come back as they were."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)
from langchain_tsim import MessageError, to_messages, to_turns
from langchain_tsim.messages import whole_tail
from pydantic import BaseModel
from tsim_core import EpisodicMemory, Turn

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
CALL = {"name": "search", "args": {"q": "GPU", "n": 2}, "id": "call-1", "type": "tool_call"}
WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)

MESSAGES: list[BaseMessage] = [
    HumanMessage("hello", id="h1"),
    HumanMessage("hello", name="Ann", additional_kwargs={"mood": "calm"}),
    HumanMessage([{"type": "text", "text": "What is this?"}, IMAGE, "and this"]),
    HumanMessage([IMAGE]),
    HumanMessage(""),
    HumanMessage("an own field", priority=3),
    AIMessage("fine", id="a1", response_metadata={"model": "m", "logprob": float("-inf")}),
    AIMessage("fine", usage_metadata={"input_tokens": 3, "output_tokens": 1, "total_tokens": 4}),
    AIMessage("", tool_calls=[CALL, {**CALL, "id": "call-2"}]),
    AIMessage("x", invalid_tool_calls=[{"name": "f", "args": "{", "id": "c", "error": "no JSON"}]),
    AIMessage(
        [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "So"}, {"type": "text", "text": " it is."}]
    ),
    SystemMessage("be brief"),
    ToolMessage("42", tool_call_id="call-1", name="search", status="error"),
    ToolMessage("42", tool_call_id="call-1", artifact=[Document("page", metadata={"n": 1}, id="d")]),
    ToolMessage(
        "42", tool_call_id="call-1", artifact={1: (b"x", {UUID(int=1)}, Decimal("1.5"), date(2026, 1, 2), WHEN)}
    ),
    ToolMessage("42", tool_call_id="call-1", artifact={"$type": "not ours", "m": AIMessage("inner")}),
    ToolMessage([{"type": "text", "text": "one"}, IMAGE], tool_call_id="call-1"),
    FunctionMessage("7", name="f"),
    ChatMessage("hi", role="moderator"),
    RemoveMessage(id="h1"),
    HumanMessageChunk("he"),
    AIMessageChunk("he", id="run-1"),
    AIMessageChunk("", tool_call_chunks=[{"name": "f", "args": '{"a', "id": "c", "index": 0}]),
    AIMessageChunk("", tool_call_chunks=[{"name": "f", "args": '{"a": 1}', "id": "c", "index": 0}]),
    SystemMessageChunk("s"),
    ToolMessageChunk("t", tool_call_id="call-1", artifact={"a": 1}),
    FunctionMessageChunk("t", name="f"),
    ChatMessageChunk("t", role="user"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_every_message_comes_back_as_it_was(message: BaseMessage) -> None:
    before = message.model_dump()
    turns = to_turns([message], timestamp=WHEN)
    json.dumps(turns[0].metadata, allow_nan=False)
    (back,) = to_messages(turns)
    assert type(back) is type(message)
    assert back == message
    assert message.model_dump() == before


def test_every_message_survives_the_store(memory: EpisodicMemory) -> None:
    """Issue langchain-redis 51: tool_calls and tool_call_id lost on reload."""
    thread = memory.thread("alice")
    unique = [m.model_copy(update={"id": f"m{i}"}) for i, m in enumerate(MESSAGES)]
    thread.extend(to_turns(unique))
    assert to_messages(thread.turns()) == unique


json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(
    content=st.text()
    | st.lists(st.text() | st.fixed_dictionaries({"type": st.sampled_from(["text", "x"]), "text": st.text()})),
    id=st.none() | st.text(),
    name=st.none() | st.text(),
    extra=st.dictionaries(st.text(max_size=5), json_data, max_size=3),
)
def test_any_message_comes_back(content: Any, id: str | None, name: str | None, extra: dict[str, Any]) -> None:
    for message in (
        HumanMessage(content, id=id, name=name, additional_kwargs=extra),
        ToolMessage(content, id=id, name=name, tool_call_id="c", artifact=extra),
    ):
        assert to_messages(to_turns([message])) == [message]


@given(
    role=st.sampled_from(["user", "assistant", "system", "tool", "narrator"]),
    text=st.text(),
    id=st.none() | st.text(min_size=1),
    timestamp=st.none() | st.datetimes(timezones=st.just(UTC)),
    metadata=st.none()
    | st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=3),
)
def test_any_turn_from_elsewhere_comes_back(
    role: str, text: str, id: str | None, timestamp: Any, metadata: Any
) -> None:
    turn = Turn(role, text, id, timestamp, metadata)
    assert to_turns(to_messages([turn])) == [turn]


def test_turns_of_another_tool_become_usable_messages() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "GPU"}'}}
    turns = [
        Turn("assistant", "", metadata={"tool_calls": [call]}),
        Turn("tool", "one GPU", metadata={"tool_call_id": "c1", "name": "search"}),
        Turn("tool", "an answer to no call"),
    ]
    ai, tool, orphan = to_messages(turns)
    assert isinstance(ai, AIMessage)
    assert ai.tool_calls == [{"name": "search", "args": {"q": "GPU"}, "id": "c1", "type": "tool_call"}]
    assert isinstance(tool, ToolMessage)
    assert (tool.tool_call_id, tool.name, tool.content) == ("c1", "search", "one GPU")
    assert isinstance(orphan, ChatMessage)
    assert to_turns([ai, tool, orphan]) == turns


def test_roles_texts_and_times() -> None:
    turns = to_turns(
        [
            ("human", "hello"),
            {"role": "assistant", "content": "hi"},
            "as a human",
            HumanMessage("then", additional_kwargs={"timestamp": "2026-01-02T03:04:05"}),
            ChatMessage("x", role="narrator"),
        ],
        timestamp=WHEN,
    )
    assert [(t.role, t.text) for t in turns] == [
        ("user", "hello"),
        ("assistant", "hi"),
        ("user", "as a human"),
        ("user", "then"),
        ("narrator", "x"),
    ]
    assert [t.timestamp for t in turns] == [WHEN, WHEN, WHEN, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), WHEN]


def test_issue_10_list_content_is_read_and_no_image_is_embedded() -> None:
    """Issue mem0 2286: list content crashes; no base64 gets embedded."""
    turns = to_turns([m for m in MESSAGES if isinstance(m.content, list)])
    assert [t.text for t in turns] == ["What is this?\nand this", "", "So it is.", "one"]
    assert all("base64" not in t.text for t in turns)


def test_metadata_stands_beside_the_message() -> None:
    (turn,) = to_turns([HumanMessage("x", name="Ann")], metadata={"project": "p"})
    assert turn.metadata is not None
    assert (turn.metadata["project"], turn.metadata["name"]) == ("p", "Ann")
    assert to_messages([turn]) == [HumanMessage("x", name="Ann")]


class Mood(Enum):
    CALM = "calm"


class Answer(BaseModel):
    n: int


@dataclasses.dataclass
class Point:
    x: int


def test_pydantic_models_and_dataclasses_become_data() -> None:
    message = AIMessage("x", additional_kwargs={"parsed": Answer(n=1), "at": Point(2), "mood": Mood.CALM})
    (back,) = to_messages(to_turns([message]))
    assert back.additional_kwargs == {"parsed": {"n": 1}, "at": {"x": 2}, "mood": "calm"}


def test_numpy_values_become_plain_numbers_and_lists() -> None:
    artifact = {"score": np.float32(0.5), "rows": np.arange(4).reshape(2, 2)}
    (back,) = to_messages(to_turns([ToolMessage("x", tool_call_id="c", artifact=artifact)]))
    assert isinstance(back, ToolMessage)
    assert back.artifact == {"score": 0.5, "rows": [[0, 1], [2, 3]]}


def test_what_cannot_be_stored_is_an_error_that_names_the_message() -> None:
    message = ToolMessage("42", tool_call_id="c", id="m7", artifact={"a": [object()]})
    with pytest.raises(MessageError, match=r"tool message 'm7'.*builtins\.object"):
        to_turns([message])
    (turn,) = to_turns([message], artifacts=False)
    assert to_messages([turn]) == [ToolMessage("42", tool_call_id="c", id="m7")]
    with pytest.raises(MessageError, match="not a list of messages"):
        to_turns([3])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "data",
    [{}, {"type": "alien"}, {"type": "tool"}, {"type": "ai", "x": {"$type": "pickle", "value": ""}}],
)
def test_malformed_stored_data_is_an_error(data: dict[str, Any]) -> None:
    with pytest.raises(MessageError, match="'t1'"):
        to_messages([Turn("assistant", "x", "t1", None, {"langchain": data})])


def test_issue_17_a_tail_never_parts_a_call_from_its_answers() -> None:
    """Issues langmem 112, langchain 38352: trimming orphans tool messages."""
    turns = to_turns(
        [
            HumanMessage("q"),
            AIMessage("", tool_calls=[CALL, {**CALL, "id": "call-2"}]),
            ToolMessage("1", tool_call_id="call-1"),
            ToolMessage("2", tool_call_id="call-2"),
            AIMessage("done"),
        ]
    )
    assert [len(whole_tail(turns, n)) for n in range(7)] == [0, 1, 4, 4, 4, 5, 5]
