"""Chats in the shape of published evaluation sets."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tsim_core.errors import ReaderError
from tsim_core.readers import parse_turns

LOCOMO: dict[str, Any] = {
    "qa": [{"question": "Who keeps bees?"}],
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Back again."}],
        "session_10_date_time": "12:05 am on 1 June, 2023",
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Ann", "dia_id": "D2:1", "text": "I keep bees."},
            {"speaker": "Bo", "dia_id": "D2:2", "text": "Show me!", "blip_caption": "a hive"},
        ],
        "session_11_date_time": "3:00 pm on 2 June, 2023",
    },
}


def test_locomo_sessions_follow_each_other_by_number() -> None:
    turns = parse_turns(json.dumps(LOCOMO, indent=1))
    assert [(t.role, t.text, t.id) for t in turns] == [
        ("Ann", "I keep bees.", "D2:1"),
        ("Bo", "Show me!", "D2:2"),
        ("Bo", "Back again.", "D10:1"),
    ]
    assert [t.timestamp for t in turns] == [
        datetime(2023, 5, 8, 13, 56, tzinfo=UTC),
        datetime(2023, 5, 8, 13, 56, tzinfo=UTC),
        datetime(2023, 6, 1, 0, 5, tzinfo=UTC),
    ]
    assert turns[0].metadata is None
    assert turns[1].metadata == {"blip_caption": "a hive"}
    assert parse_turns(json.dumps(LOCOMO["conversation"])) == turns
    assert parse_turns(json.dumps([LOCOMO])) == turns


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("session_2_date_time", "yesterday", "session_2: the time 'yesterday'"),
        ("session_2", [{"speaker": "Ann"}], "session_2, item 1: expected an object with speaker and text"),
        ("session_2", ["hello"], "session_2, item 1"),
    ],
)
def test_what_locomo_never_has_is_an_error(field: str, value: object, match: str) -> None:
    with pytest.raises(ReaderError, match=match):
        parse_turns(json.dumps({**LOCOMO["conversation"], field: value}))


def event(kind: int, data: dict[str, Any], test: str = "") -> dict[str, Any]:
    return {"type": kind, "timestamp": 1700000000.5, "test_id": test, "data": data}


def test_a_goodai_log_gives_its_messages_and_nothing_else() -> None:
    log = [
        event(3, {"message": "Understood?", "is_question": False}),
        event(5, {"message": "Yes.", "is_question": False}),
        event(7, {}),
        event(1, {"tokens": 32338}, "Colours - 0"),
        event(0, {"message": "My colour is brown.", "is_question": False}, "Colours - 0"),
        event(4, {"message": "Got it.", "is_question": False}, "Colours - 0"),
        event(8, {"response": []}, "Colours - 0"),
    ]
    turns = parse_turns("\n".join(map(json.dumps, log)))
    assert [(t.role, t.text, t.metadata) for t in turns] == [
        ("user", "Understood?", None),
        ("assistant", "Yes.", None),
        ("user", "My colour is brown.", {"test_id": "Colours - 0"}),
        ("assistant", "Got it.", {"test_id": "Colours - 0"}),
    ]
    assert turns[0].timestamp == datetime(2023, 11, 14, 22, 13, 20, 500000, tzinfo=UTC)
    with pytest.raises(ReaderError, match="line 2: the message has no text"):
        parse_turns("\n".join(map(json.dumps, [log[0], event(0, {})])))
