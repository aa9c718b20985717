import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scale_qa.errors import ImportFormatError, RecordError
from scale_qa.noise_readers import FORMATS, alternating, parse_source, read_dump

MESSAGE = {"lang": "en", "deleted": False, "message_tree_id": "t1"}
FLAT_TREE = [
    {**MESSAGE, "message_id": "m1", "parent_id": None, "role": "prompter", "text": "Hi?", "rank": None},
    {**MESSAGE, "message_id": "m2", "parent_id": "m1", "role": "assistant", "text": "second best", "rank": 1},
    {**MESSAGE, "message_id": "m3", "parent_id": "m1", "role": "assistant", "text": "best", "rank": 0},
    {**MESSAGE, "message_id": "m4", "parent_id": "m3", "role": "prompter", "text": "gone", "rank": 0, "deleted": True},
]


def nested(message, *replies):
    return {**message, "replies": list(replies)}


DUMPS = {
    "oasst": [
        FLAT_TREE,
        [{"message_tree_id": "t1", "tree_state": "x", "prompt": nested(FLAT_TREE[0], *map(nested, FLAT_TREE[1:3]))}],
    ],
    "mtbench101": [[{"task": "GR", "id": 1, "history": [{"user": "Hi?", "bot": "best"}]}]],
    "mt-eval": [
        [[{"user": "Hi?", "sys": "best", "id": 0}], [{"user": "x", "sys": ""}]],
        [{"question_id": 81, "category": "writing", "conversation": [{"user": "Hi?", "sys": "best"}]}],
    ],
    "ultrachat": [
        [{"id": "0", "data": ["Hi?", "best"]}],
        [
            {
                "prompt": "Hi?",
                "prompt_id": "p",
                "messages": [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "best"}],
            }
        ],
    ],
    "wildchat": [
        [
            {
                "conversation_hash": "h",
                "toxic": False,
                "conversation": [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "best"}],
            },
            {"conversation_hash": "i", "toxic": True, "conversation": [{"role": "user", "content": "bad"}]},
        ]
    ],
    "sharegpt": [
        [
            {
                "id": "s",
                "conversations": [
                    {"from": "system", "value": "Be."},
                    {"from": "human", "value": "Hi?"},
                    {"from": "gpt", "value": "best"},
                ],
            }
        ]
    ],
}
CASES = [(format, rows) for format, variants in DUMPS.items() for rows in variants]


@pytest.mark.parametrize(("format", "rows"), CASES)
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("packed", [True, False])
def test_each_format_is_read_and_told(tmp_path, format, rows, named, packed):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path = tmp_path / ("dump.jsonl.gz" if packed else "dump.jsonl")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    (noise,) = read_dump(path, format if named else "auto")
    assert [(turn.role, turn.text) for turn in noise.turns] == [("user", "Hi?"), ("assistant", "best")]
    assert noise.source == format
    assert noise.licence


@pytest.mark.parametrize("indent", [None, 2])
def test_one_json_list_is_read_too(tmp_path, indent):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(DUMPS["sharegpt"][0], indent=indent))
    assert [noise.id for noise in read_dump(path)] == ["s"]


def test_our_own_format_needs_no_name(tmp_path):
    path = tmp_path / "noise.jsonl"
    path.write_text('{"id": "a", "source": "s", "licence": "MIT", "turns": [{"role": "user", "text": "hi"}]}\n')
    assert [noise.source for noise in read_dump(path)] == ["s"]
    path.write_text(path.read_text() + '{"id": "b"}\n')
    with pytest.raises(RecordError, match=r"noise.jsonl:2: missing key"):
        list(read_dump(path))


@pytest.mark.parametrize(
    ("text", "format", "message"),
    [
        ('{"id": 1}\n', "auto", r"dump:1: cannot tell the format; name it"),
        ("", "auto", "no dialogue in it"),
        (
            '{"task": "GR", "id": 1, "history": []}\n{"id": 2}\n',
            "auto",
            r"dump:2: not in the format of mtbench101: KeyError",
        ),
        ('{"task": "GR", "id": 1, "history": []}\n{\n', "mtbench101", r"dump:2: not JSON"),
        ("[1, 2", "sharegpt", "not readable as JSON"),
        ("{}\n", "yahoo", "unknown noise format 'yahoo'; known: auto, jsonl, oasst"),
    ],
)
def test_what_is_not_of_the_format_is_named(tmp_path, text, format, message):
    path = tmp_path / "dump"
    path.write_text(text)
    with pytest.raises(ImportFormatError, match=message):
        list(read_dump(path, format))


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(ImportFormatError, match="no such file"):
        list(read_dump(tmp_path / "none"))


def test_sources_are_split_at_a_known_format_only():
    assert parse_source("oasst:a/b.jsonl")[0] == "oasst"
    assert parse_source("c:/noise.jsonl")[0] == "auto"
    assert str(parse_source("c:/noise.jsonl")[1]) == "c:/noise.jsonl"


turns = st.lists(
    st.tuples(st.sampled_from(["user", "GPT", "system", "tool", "human"]), st.sampled_from(["x", " ", "y\n"]))
)


@given(turns)
def test_what_is_taken_alternates_from_a_user_on(turns):
    messages = alternating(turns)
    assert [message.role for message in messages] == [("user", "assistant")[i % 2] for i in range(len(messages))]
    assert all(message.text.strip() for message in messages)


def test_every_format_is_tested():
    assert {format for format, _ in CASES} | {"jsonl"} == set(FORMATS)
