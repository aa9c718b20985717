import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scale_qa.convert import CONVERTERS, convert, write
from scale_qa.errors import ImportFormatError

LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "I bought a kayak."},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "Nice!", "blip_caption": "a red kayak", "img_url": ["x"]},
        ],
        "session_10_date_time": "9:00 am on 1 June, 2023",
        "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "I sold mine."}],
        "session_2_date_time": "9:00 am on 10 May, 2023",
        "session_2": [{"speaker": "Ana", "dia_id": "D2:1", "text": "It leaks."}],
    },
    "qa": [
        {"question": "What did Ana buy?", "answer": "a kayak", "evidence": ["D1:1"], "category": 4},
        {"question": "What is wrong?", "answer": 7, "evidence": ["D1:2; D2:1", "D:10:1"], "category": 1},
        {"question": "Who?", "adversarial_answer": "Bo", "evidence": ["D2:1", "D9:9", "D"], "category": 5},
        {"question": "Never?", "answer": "-", "evidence": [], "category": 3},
        {"question": "Where?", "answer": "-", "evidence": ["D9:9"], "category": 3},
    ],
}


def package_of(tmp_path, source, data, name="file.json"):
    path = tmp_path / name
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return write(source, convert(source, [path]), tmp_path / "p")


def test_locomo(tmp_path):
    package = package_of(tmp_path, "locomo", [LOCOMO])
    (batch,) = package
    assert [turn.text for turn in batch.turns] == [
        "Ana: I bought a kayak.",
        "Bo: Nice! [shares a picture: a red kayak]",
        "Ana: It leaks.",
        "Bo: I sold mine.",
    ]
    assert [turn.role for turn in batch.turns] == ["user", "assistant", "user", "assistant"]
    assert batch.turns[0].timestamp == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert [(q.evidence, q.answer, q.topic) for q in batch.questions] == [
        ((0,), "a kayak", "single-hop"),
        ((1, 2, 3), "7", "multi-hop"),
        ((2,), "not mentioned in the conversation", "adversarial"),
    ]
    assert package.manifest["left_out"] == {
        "evidence ids that are no turn (the question is kept with its others)": 1,
        "questions with no evidence turn that exists": 1,
        "questions without evidence": 1,
    }
    assert [unit.spans for unit in batch.gold] == [((0, 2),), ((2, 3),), ((3, 4),)]
    ids = [json.loads(line) for line in (package.directory / "batches/000/source_ids.jsonl").read_text().splitlines()]
    assert ids[2] == {"turn": 2, "id": "D2:1"}


def test_no_session_mark_reaches_the_stream(tmp_path):
    package = package_of(tmp_path, "locomo", [LOCOMO])
    stream = (package.directory / "batches/000/stream.jsonl").read_text()
    assert "session" not in stream
    assert "D1:" not in stream


def test_realtalk(tmp_path):
    chat = {
        "name": {"speaker_1": "Ana", "speaker_2": "Bo"},
        "session_1_date_time": "29.12.2023, 10:00:00",
        "session_1": [
            {"speaker": "Bo", "dia_id": "D1:1", "clean_text": "Morning", "date_time": "29.12.2023, 10:00:05"},
            {"speaker": "Ana", "dia_id": "D1:2", "clean_text": "", "date_time": "29.12.2023, 10:01:00"},
        ],
        "qa": [{"question": "Who greets?", "answer": "Bo", "evidence": ["D1:1"], "category": 1}],
    }
    (batch,) = package_of(tmp_path, "realtalk", chat)
    assert [(turn.role, turn.text) for turn in batch.turns] == [("assistant", "Bo: Morning"), ("user", "")]
    assert batch.turns[1].timestamp == datetime(2023, 12, 29, 10, 1, tzinfo=UTC)
    assert batch.questions[0].id == "file:0"


def longmemeval(id="q1", has_answer=True):
    return {
        "question_id": id,
        "question_type": "temporal-reasoning",
        "question": "Which came first?",
        "question_date": "2023/06/01 (Thu) 10:00",
        "answer": 3,
        "haystack_session_ids": ["late", "early"],
        "haystack_dates": ["2023/05/30 (Tue) 20:42", "2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [
            [{"role": "user", "content": "I sold it.", "has_answer": has_answer}],
            [
                {"role": "user", "content": "I bought it.", "has_answer": has_answer},
                {"role": "assistant", "content": "Ok"},
            ],
        ],
    }


def test_longmemeval_in_the_order_of_time(tmp_path):
    package = package_of(
        tmp_path, "longmemeval", [longmemeval(), longmemeval("q2", False), longmemeval("q3_abs", False)]
    )
    (batch,) = package
    assert [turn.text for turn in batch.turns] == ["I bought it.", "Ok", "I sold it."]
    (question,) = batch.questions
    assert (question.evidence, question.answer) == ((0, 2), "3")
    assert question.asked_at == datetime(2023, 6, 1, 10, tzinfo=UTC)
    assert package.manifest["left_out"] == {
        "conversations without a usable question": 2,
        "questions whose turns carry no has_answer": 1,
        "unanswerable questions": 1,
    }


def message(role, id, content, anchor=None):
    return {"role": role, "id": id, "time_anchor": anchor, "index": "1,1", "content": content}


@pytest.fixture
def beam(tmp_path):
    folder = tmp_path / "100K" / "7"
    (folder / "probing_questions").mkdir(parents=True)
    first = [message("user", 0, "I use Flask. ->-> 1,1", "March-15-2024"), message("assistant", 1, "Good ->-> idea")]
    chat = [
        {"batch_number": 1, "time_anchor": None, "turns": [first]},
        {"batch_number": 2, "time_anchor": None, "turns": [[message("user", "2", "No, Django.   ->-> 2, 3 ")]]},
    ]
    asked = {
        "knowledge_update": [{"question": "Which?", "answer": "Django", "source_chat_ids": {"old": [0], "new": [2]}}],
        "summarization": [{"question": "Sum up", "ideal_summary": "x", "source_chat_ids": [0, 99]}],
        "abstention": [{"question": "Why?", "ideal_response": "unknown"}],
    }
    with gzip.open(folder / "chat.json.gz", "wt") as out:
        json.dump(chat, out)
    (folder / "probing_questions" / "probing_questions.json").write_text(json.dumps(asked))
    return folder


@pytest.mark.parametrize("by", ["file", "folder"])
def test_beam(beam, tmp_path, by):
    path = beam / "chat.json.gz" if by == "file" else beam
    package = write("beam", convert("beam", [path]), tmp_path / "p")
    (batch,) = package
    assert [turn.text for turn in batch.turns] == ["I use Flask.", "Good ->-> idea", "No, Django."]
    assert {turn.timestamp for turn in batch.turns} == {datetime(2024, 3, 15, tzinfo=UTC)}
    assert [(q.id, q.evidence, q.answer) for q in batch.questions] == [
        ("100K-7:knowledge_update-0", (0, 2), "Django"),
        ("100K-7:summarization-0", (0,), "x"),
    ]
    assert package.manifest["left_out"] == {
        "abstention questions": 1,
        "evidence ids that are no turn (the question is kept with its others)": 1,
    }
    assert package.manifest["batches"][0]["label"] == "100K-7"


def test_beam_needs_its_questions(beam, tmp_path):
    (beam / "probing_questions" / "probing_questions.json").unlink()
    with pytest.raises(ImportFormatError, match=r"probing_questions.json: no such file"):
        write("beam", convert("beam", [beam]), tmp_path / "p")


def goodai_rows():
    clock = iter(range(0, 100_000, 60))

    def say(task, number, user, reply, question=False, test_id=None):
        id = test_id if test_id is not None else f"{task} - {number}"
        kinds = (0, 4) if id else (3, 5)
        for kind, text in zip(kinds, (user, reply), strict=True):
            yield {
                "type": kind,
                "timestamp": next(clock),
                "test_id": id,
                "data": {"message": text, "is_question": question},
            }
        yield {"type": 6, "timestamp": next(clock), "test_id": id, "data": {"tokens": 1, "time": 0}}

    yield from say("Colours", 0, "My favourite colour is Brown.", "ok")
    yield from say("NameList", 0, "Call me Terence.", "ok")
    yield from say("", 0, "trivia", "answers", test_id="")
    yield from say("ChapterBreak", 0, "a chapter", "ok")
    yield from say("Restaurant", 0, "You are the customer.", "ok")
    yield from say("Jokes", 0, "joke one", "ha")  # at 15 min
    yield from say("Colours", 0, "It is Cream now.", "ok")
    yield from say("Restaurant", 0, "Waiter: the menu?", "tea", question=True)
    yield from say("Restaurant", 0, "Waiter: no tea.", "water", question=True)
    yield from say("Jokes", 0, "joke two", "ha")  # at 27 min
    yield from say("NameList", 0, "I go by Chris.", "ok")
    yield from say("Colours", 0, "What is my favourite colour?", "Cream", question=True)  # at 33 min
    yield from say("Colours", 1, "Purple is my favourite colour.", "ok")
    yield from say("Jokes", 0, "Which joke did I tell you about 12 minutes ago?", "two", question=True)  # at 39 min
    yield from say("NameList", 0, "All my names?", "Terence, Chris", question=True)
    yield from say("Restaurant", 0, "Stop the game.", "ok")
    yield from say("Colours", 1, "What is my favourite colour?", "Purple", question=True)


def test_goodai(tmp_path):
    text = "".join(json.dumps(row) + "\n" for row in goodai_rows())
    package = package_of(tmp_path, "goodai", text, "master_log.jsonl")
    first, second = package
    told = [turn.text for turn in first.turns]
    asked = {q.topic: [told[i] for i in q.evidence] for q in first.questions}
    assert asked == {
        "Colours": ["It is Cream now."],
        "NameList": ["Call me Terence.", "I go by Chris."],
        "Restaurant": ["You are the customer."],
        "Jokes": ["joke two"],
    }
    assert "trivia" in told
    assert "Waiter: no tea." in told  # a later move of the game is history
    for gone in ("What is my favourite colour?", "Cream", "Waiter: the menu?", "tea", "a chapter", "Stop the game."):
        assert gone not in told
    assert "Purple is my favourite colour." not in told
    later = [turn.text for turn in second.turns]
    assert "What is my favourite colour?" in later  # the earlier round stays, a near-duplicate
    assert later.count("What is my favourite colour?") == 1
    assert [later[i] for i in second.questions[0].evidence] == ["Purple is my favourite colour."]
    assert package.manifest["left_out"] == {"turns of ChapterBreak": 2}


@pytest.mark.parametrize("source", CONVERTERS)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"not (readable as )?JSON"),
        ("[7]", r"not in the format|expected a JSON object|no such file"),
        ('{"a": 1}', "format|no such"),
    ],
)
def test_a_file_that_is_something_else_is_named(tmp_path, source, text, message):
    with pytest.raises(ImportFormatError, match=message):
        package_of(tmp_path, source, text)


def test_nothing_usable_is_an_error(tmp_path):
    with pytest.raises(ImportFormatError, match=r"no usable question in these files; left out: .*has_answer.: 1"):
        package_of(tmp_path, "longmemeval", [longmemeval(has_answer=False)])


DATA = os.environ.get("SCALE_QA_DATA")


@pytest.mark.skipif(not DATA, reason="SCALE_QA_DATA names no folder of evaluation data")
def test_the_real_files(tmp_path):
    root = Path(DATA or "")
    for source, pattern, questions in (
        ("locomo", "locomo/locomo_5.json", 997),
        ("beam", "beam/100K/*/chat.json.gz", 179),
        ("goodai", "goodai_ltm/*.jsonl", 60),
        ("longmemeval", "longmemeval/longmemeval_single*.json", 1),
    ):
        paths = sorted(root.glob(pattern))
        package = write(source, convert(source, paths), tmp_path / source)
        assert package.manifest["counts"]["questions"] == questions
