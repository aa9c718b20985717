"""Messages to turns and back without loss."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.llms.types import (
    ChatMessage,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.memory import BaseMemory
from llama_index.memory.tsim import TSIMMemory
from llama_index.utils.tsim import message_to_turn, turn_to_message
from llama_index.utils.tsim.messages import query_text, without_injected
from tsim_core import Turn


def test_class():
    assert BaseMemory.__name__ in [b.__name__ for b in TSIMMemory.__mro__]


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=5,
)
BLOCKS = st.one_of(
    st.builds(TextBlock, text=TEXT),
    st.builds(ThinkingBlock, content=TEXT),
    st.builds(ToolCallBlock, tool_call_id=TEXT, tool_name=TEXT, tool_kwargs=st.dictionaries(TEXT, JSON, max_size=2)),
    st.builds(ImageBlock, url=st.just("https://example.org/cat.png")),
    st.builds(DocumentBlock, data=st.just(b"aGVsbG8="), title=TEXT, document_mimetype=st.just("text/plain")),
)
MESSAGES = st.builds(
    ChatMessage,
    role=st.sampled_from(MessageRole),
    blocks=st.lists(BLOCKS, max_size=3),
    additional_kwargs=st.dictionaries(TEXT.filter(lambda k: k not in ("images", "session_id")), JSON, max_size=2),
)


@given(MESSAGES)
def test_round_trip(message):
    assert turn_to_message(message_to_turn(message)).model_dump(mode="json") == message.model_dump(mode="json")


def test_plain_message_is_a_plain_turn():
    now = datetime.now(UTC)
    assert message_to_turn(ChatMessage(role="user", content="hi"), now) == Turn("user", "hi", None, now, None)
    assert message_to_turn(ChatMessage(role="chatbot", content="hi")).role == "assistant"
    assert message_to_turn(ChatMessage(role="assistant", content=None)).text == ""


def test_the_session_is_read_and_never_taken_out():
    message = ChatMessage(role="user", content="hi", additional_kwargs={"session_id": "s"})
    assert message_to_turn(message).metadata is None
    assert message.additional_kwargs == {"session_id": "s"}


def test_a_turn_from_elsewhere_becomes_a_message():
    assert turn_to_message(Turn("Melanie", "hi")) == ChatMessage(role="user", content="Melanie: hi")
    assert turn_to_message(Turn("tool", "4")) == ChatMessage(role="tool", content="4")


@pytest.mark.parametrize(
    ("blocks", "left"),
    [
        (["<memory>\n<episodes>old</episodes>\n</memory>", "hi"], ["hi"]),
        (["\n<episodic_memory>\nold\n</episodic_memory>\n", "hi"], ["hi"]),
        (["<memory>is a tag I write about</memory> in XML"], ["<memory>is a tag I write about</memory> in XML"]),
        (["hi", "there"], ["hi", "there"]),
    ],
)
def test_injected_blocks_are_taken_out_whole(blocks, left):
    message = ChatMessage(role="user", blocks=[TextBlock(text=t) for t in blocks])
    cleaned = without_injected(message)
    assert cleaned is not None
    assert [b.text for b in cleaned.blocks] == left
    assert without_injected(ChatMessage(role="user", content="<memory>\nold</memory>")) is None


def test_a_query_says_equal_things_once():
    same = ChatMessage(content="Which GPU?")
    assert (
        query_text([same, ChatMessage(content=None), same, ChatMessage(content="And CUDA?")]) == "Which GPU?\nAnd CUDA?"
    )
