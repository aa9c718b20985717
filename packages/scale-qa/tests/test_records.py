import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scale_qa.errors import RecordError
from scale_qa.records import (
    Message,
    NoiseDialogue,
    Record,
    read_noise,
    read_records,
    record_from_dict,
    record_to_dict,
    write_noise,
    write_records,
)


def test_records_survive_the_file(tmp_path, small_set):
    path = tmp_path / "records.jsonl"
    write_records(path, small_set)
    assert read_records(path) == small_set
    first = path.read_bytes()
    write_records(path, read_records(path))
    assert path.read_bytes() == first
    assert b"\r" not in first


def test_the_object_has_the_published_keys(make_record):
    data = record_to_dict(make_record())
    assert list(data) == [
        *("id", "topic", "dialogue", "query", "options", "answer", "expected_doc", "reasoning", "stress", "overlap"),
        "language",
    ]


def test_evidence_turns_are_positions(make_record):
    assert make_record().evidence_turns() == (0, 4)
    assert make_record().answer_text == "nine"


text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(st.lists(text, min_size=2, max_size=6, unique=True), st.data())
def test_any_text_survives(texts, data):
    record = Record(
        id=data.draw(text),
        topic=data.draw(text),
        dialogue=tuple(Message("user", t) for t in texts),
        query=data.draw(text),
        options=tuple(data.draw(st.lists(text, min_size=4, max_size=4, unique=True))),
        answer="D",
        expected_doc=(texts[1],),
    )
    assert record_from_dict(json.loads(json.dumps(record_to_dict(record), ensure_ascii=False))) == record


BAD = {
    "no object": ([1], "expected a JSON object, got list"),
    "a key missing": ({"query": ...}, r"missing key\(s\): query"),
    "an unknown key": ({"score": 1}, r"unknown key\(s\): score"),
    "an option missing": ({"options": ["a", "b", "c"]}, "four different texts, got 3"),
    "an option twice": ({"options": ["a", "b", "c", "a"]}, "four different texts, got 3"),
    "options no list": ({"options": "abcd"}, "'options' must be a list of strings, got str"),
    "an option no text": ({"options": ["a", "b", "c", 4]}, r"'options\[3\]' must be a non-blank string"),
    "a letter too far": ({"answer": "E"}, "one of A, B, C, D, got 'E'"),
    "evidence no turn": ({"expected_doc": ["Scrap the code"]}, r"expected_doc\[0\] is no turn of the dialogue"),
    "evidence twice": ({"expected_doc": ["Noted.", "Noted."]}, "names the same turn twice"),
    "no evidence": ({"expected_doc": []}, "must name at least one turn"),
    "no dialogue": ({"dialogue": []}, "'dialogue' must be a non-empty list"),
    "a role": ({"dialogue": [{"role": "model", "text": "x"}]}, r"dialogue\[0\]: role 'model' is not one of user"),
    "a turn with more": ({"dialogue": [{"role": "user", "text": "x", "id": 1}]}, "exactly 'role' and 'text'"),
    "a blank turn": ({"dialogue": [{"role": "user", "text": " "}]}, r"dialogue\[0\].text' must be a non-blank string"),
    "a blank query": ({"query": ""}, "'query' must be a non-blank string"),
    "a surrogate": ({"query": "\ud800"}, "half a surrogate pair"),
    "a stress cue": ({"stress": ["hurry"]}, "stress 'hurry' is not one of state_overwrite"),
    "an overlap": ({"overlap": "vague"}, "overlap 'vague' is not one of lexical"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_record_is_named_with_file_and_line(tmp_path, make_record, name):
    change, message = BAD[name]
    data = record_to_dict(make_record())
    if isinstance(change, dict):
        data = {key: value for key, value in (data | change).items() if value is not ...}
    else:
        data = change
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(record_to_dict(make_record(id="fine"))) + "\n\n" + json.dumps(data) + "\n")
    with pytest.raises(RecordError, match=message) as error:
        read_records(path)
    assert str(error.value).startswith(f"{path}:3: ")


@pytest.mark.parametrize(
    ("raw", "message"), [(b"{", "not JSON"), (b"\xff\xfe", "not UTF-8"), (b'"text"', "expected a JSON object, got str")]
)
def test_a_line_that_is_no_json_object_is_named(tmp_path, raw, message):
    path = tmp_path / "noise.jsonl"
    write_noise(path, [NoiseDialogue("a", "s", "MIT", (Message("user", "hi"),))])
    path.write_bytes(path.read_bytes() + raw)
    with pytest.raises(RecordError, match=f"noise.jsonl:2: {message}"):
        list(read_noise(path))


def test_an_id_that_comes_twice_names_both_places(tmp_path, make_record):
    for name in ("a", "b"):
        write_records(tmp_path / name, [make_record()])
    with pytest.raises(RecordError, match=r"b:1: id 'our:Legal-001' was already used at .*a:1"):
        read_records(tmp_path / "a", tmp_path / "b")


def test_a_noise_line_needs_source_and_licence(tmp_path):
    path = tmp_path / "noise.jsonl"
    path.write_text('{"id": "a", "turns": [{"role": "user", "text": "hi"}]}\n')
    with pytest.raises(RecordError, match=r"noise.jsonl:1: missing key\(s\): source, licence"):
        list(read_noise(path))


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(RecordError, match="no such file"):
        read_records(tmp_path / "none.jsonl")


def test_a_byte_order_mark_is_passed_over(tmp_path, make_record):
    path = tmp_path / "records.jsonl"
    write_records(path, [make_record()])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_records(path) == [make_record()]
