"""Every form of transcript, and what is wrong with a bad one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tsim_core.errors import ReaderError
from tsim_core.readers import parse_turns, read_turns
from tsim_core.types import Turn

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HELLO = [("user", "hello"), ("assistant", "hi, how are you?")]

FORMS: dict[str, str] = {
    "json lines": '{"role": "user", "text": "hello"}\n\n{"role": "assistant", "text": "hi, how are you?"}\n',
    "one json line": '{"role": "user", "content": "hello"}',
    "openai": json.dumps(
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
                {"role": "assistant", "content": "hi, how are you?"},
            ]
        }
    ),
    "sharegpt": json.dumps(
        [{"conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi, how are you?"}]}]
    ),
    "pairs": json.dumps([["user", "hello"], ["model", "hi, how are you?"]]),
    "chatgpt": json.dumps(
        [
            {
                "title": "x",
                "current_node": "c",
                "mapping": {
                    "r": {"message": None, "parent": None},
                    "s": {"message": {"author": {"role": "system"}, "content": {"parts": [""]}}, "parent": "r"},
                    "a": {"message": {"author": {"role": "user"}, "content": {"parts": ["hello"]}}, "parent": "s"},
                    "b": {"message": {"author": {"role": "assistant"}, "content": {"parts": ["other"]}}, "parent": "a"},
                    "c": {
                        "message": {"author": {"role": "assistant"}, "content": {"parts": ["hi, how are you?"]}},
                        "parent": "a",
                    },
                },
            }
        ]
    ),
    "langchain dicts": json.dumps(
        [
            {"type": "human", "data": {"content": "hello", "type": "human", "id": None}},
            {"type": "ai", "data": {"content": "hi, how are you?", "type": "ai", "tool_calls": []}},
        ]
    ),
    "langchain serialised": json.dumps(
        [
            {"lc": 1, "type": "constructor", "id": ["x", "HumanMessage"], "kwargs": {"content": "hello"}},
            {"lc": 1, "type": "constructor", "id": ["x", "AIMessage"], "kwargs": {"content": "hi, how are you?"}},
        ]
    ),
    "llamaindex": json.dumps(
        {
            "store": {
                "chat": [
                    {"role": "user", "blocks": [{"block_type": "text", "text": "hello"}], "additional_kwargs": {}},
                    {"role": "assistant", "blocks": [{"block_type": "text", "text": "hi, how are you?"}]},
                ]
            }
        }
    ),
    "plain": "User: hello\nAssistant: hi,\nhow are you?\n",
    "senders with names": json.dumps(
        {
            "conversation_list": [
                {"message_id": "1", "sender": "user_001", "sender_name": "user", "type": "text", "content": "hello"},
                {"sender": "robot_001", "sender_name": "assistant", "type": "text", "content": "hi, how are you?"},
            ]
        }
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_turns(form: str, tmp_path: Path) -> None:
    path = tmp_path / "talk"
    path.write_text(FORMS[form], encoding="utf-8")
    expected = HELLO[:1] if form == "one json line" else HELLO
    assert [(t.role, " ".join(t.text.split())) for t in read_turns(path)] == expected


def test_ids_times_and_the_rest_are_kept() -> None:
    line = {
        "id": 7,
        "role": "User",
        "text": "x",
        "timestamp": "2026-03-01T12:00:00Z",
        "mood": "good",
        "metadata": {"a": 1},
    }
    assert parse_turns(json.dumps(line)) == [Turn("user", "x", "7", NOON, {"mood": "good", "a": 1})]
    (turn,) = parse_turns('[{"speaker": "Caroline", "dia_id": "D1:3", "text": "hey", "time": 1772366400}]')
    assert (turn.role, turn.id, turn.timestamp) == ("Caroline", "D1:3", NOON)


def test_tool_calls_have_a_blank_text() -> None:
    data = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}
    (turn,) = parse_turns(json.dumps([data]))
    assert turn.text == ""
    assert turn.metadata == {"tool_calls": [{"id": "c1"}]}


def test_images_are_kept_out_of_the_text() -> None:
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:abc"}}]
    (turn,) = parse_turns(json.dumps([{"role": "user", "content": content}]))
    assert turn.text == "look"


def test_plain_text_of_other_speakers_and_times() -> None:
    text = "[2026-03-01 12:00] Ann Lee: see http://x.y: fine\nBob: note: this\nAnn Lee: bye\nBob: bye"
    turns = parse_turns(text)
    assert [(t.role, t.text) for t in turns] == [
        ("Ann Lee", "see http://x.y: fine"),
        ("Bob", "note: this"),
        ("Ann Lee", "bye"),
        ("Bob", "bye"),
    ]
    assert turns[0].timestamp == NOON


@pytest.mark.parametrize("text", ["", "  \n", "[]"])
def test_nothing_is_no_turns(text: str) -> None:
    assert parse_turns(text) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"role": "user", "text": "a"}\n{"role": "user", "te', "line 2"),
        ('{"role": "user", "text": "a"}\n[1, 2, 3]', "line 2: expected a message"),
        ('{"role": "user", "text": "a"}\n{"text": "b"}', "line 2: the message has no role"),
        ('{"role": "user", "text": "a"}\n{"role": "b"}', "line 2: the message has no text"),
        ('{"role": "user", "text": 5}', "line 1: the text is int"),
        ('{"role": "user", "text": "a", "timestamp": "noon"}', "line 1: the time 'noon'"),
        ('[{"role": "user", "text": "a"},\n {"role": ]', "line 2"),
        ('{"title": "x"}', "no list of messages"),
        ('{"role": "user", "txt": "a"}', "line 1: the message has no text; expected .*; found: role, txt"),
        ('[{"role": "user", "txt": "a"}]', "item 1: the message has no text"),
        ("once upon a time", "line 1: expected 'Speaker: text'"),
    ],
)
def test_the_place_of_a_fault_is_named(text: str, message: str) -> None:
    with pytest.raises(ReaderError, match=message):
        parse_turns(text, source="talk")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ReaderError, match="does not exist"):
        read_turns(tmp_path / "none")
    (tmp_path / "latin").write_bytes("User: caf\xe9".encode("latin-1"))
    with pytest.raises(ReaderError, match="not UTF-8"):
        read_turns(tmp_path / "latin")
    with pytest.raises(ReaderError, match="unknown format 'xml'"):
        parse_turns("x", "xml")
