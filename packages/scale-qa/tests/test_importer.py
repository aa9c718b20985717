import json
from pathlib import Path

import pytest
from scale_qa.errors import ImportFormatError, RecordError
from scale_qa.importer import import_package, read_literals, split_options

DIALOGUE = [("The gate code is seven.", "user"), ("Noted.", "model"), ("Now it is nine.", "user"), ("Done.", "model")]
OTHER = [("Soup?", "user"), ("With salt.", "model")]
QUERY = {
    "name": "Q1",
    "query": "Which code?\nA) seven\nB) nine\nC) eight\nD) ten",
    "expected_doc": ["The gate code is seven.", "Now it is nine."],
    "expected_answer_keywords": ["B"],
    "topic": "Legal",
    "creator": "codex",
    "global_id": "codex:Legal-001",
}


@pytest.fixture
def publish(tmp_path):
    def publish(history=(DIALOGUE, OTHER), queries=(QUERY,), noise=(OTHER, [("alone", "user")]), mode="full") -> Path:
        folder = tmp_path / "D" / "runtime" / mode
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "test_cases.py").write_text(
            f'"""Generated."""\nGROUND_TRUTH_HISTORY = {list(history)!r}\n'
            f"EVALUATION_QUERIES: list = {list(queries)!r}\n"
        )
        (folder / "processed_noise.py").write_text(f"# -*- coding: utf-8 -*-\nNOISE = {list(noise)!r}\n")
        return tmp_path / "D"

    return publish


def test_a_published_package_becomes_records_and_noise(publish):
    imported = import_package(publish())
    (record,) = imported.records
    assert record.id == "codex:Legal-001"
    assert [turn.role for turn in record.dialogue] == ["user", "assistant", "user", "assistant"]
    assert (record.query, record.options, record.answer) == ("Which code?", ("seven", "nine", "eight", "ten"), "B")
    assert record.evidence_turns() == (0, 2)
    assert [len(noise.turns) for noise in imported.noise] == [2, 2]
    assert imported.notes == {
        "dialogues without a question (added to the noise)": 1,
        "noise dialogues of less than one exchange (left out)": 1,
    }


def test_the_folder_of_one_mode_will_do(publish):
    assert import_package(publish() / "runtime" / "full").records == import_package(publish()).records


def test_two_modes_are_read_together_and_equal_questions_once(publish):
    publish(mode="other")
    imported = import_package(publish())
    assert len(imported.records) == 1
    assert imported.notes["questions that an earlier mode held already"] == 1


def test_one_id_with_two_questions_is_an_error(publish):
    root = publish(mode="other", queries=[{**QUERY, "query": QUERY["query"].replace("Which", "What")}])
    publish()
    with pytest.raises(ImportFormatError, match="id 'codex:Legal-001' was already used by another question"):
        import_package(root)


def test_a_question_is_matched_by_evidence_where_places_differ(publish):
    imported = import_package(publish(history=[OTHER, DIALOGUE]))
    assert imported.records[0].dialogue[0].text == "The gate code is seven."
    assert imported.notes["questions that do not stand at their dialogue's place (matched by evidence)"] == 1


def test_evidence_that_is_nowhere_is_counted(publish):
    imported = import_package(publish(queries=[{**QUERY, "expected_doc": ["never said"]}]))
    assert imported.records == []
    assert imported.notes["questions whose evidence is in no dialogue (left out)"] == 1


EVIL = {
    "an import": "import os\n",
    "a call": "__import__('os').system('touch pwned')\n",
    "a call in a value": "NOISE = [open('pwned', 'w')]\n",
    "a comprehension": "NOISE = [x for x in (1, 2)]\n",
    "a function": "def f():\n    open('pwned', 'w')\n",
    "a walrus": "NOISE = (x := [])\n",
    "an f-string": 'NOISE = f\'{open("pwned", "w")}\'\n',
    "a decorated class": "class A:\n    open('pwned', 'w')\n",
    "a loop": "while True:\n    pass\n",
    "an attribute": "NOISE = os.environ\n",
    "two targets": "NOISE = OTHER = []\n",
    "an augmented assignment": "NOISE = []\nNOISE += [1]\n",
}


@pytest.mark.parametrize("name", EVIL)
@pytest.mark.parametrize("file", ["test_cases.py", "processed_noise.py"])
def test_a_package_with_code_in_it_is_refused_and_never_executed(publish, tmp_path, monkeypatch, name, file):
    monkeypatch.chdir(tmp_path)
    root = publish()
    path = root / "runtime" / "full" / file
    path.write_text(EVIL[name] + path.read_text())
    with pytest.raises(ImportFormatError, match="was not executed") as error:
        import_package(root)
    assert f"{file}:" in str(error.value)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("text", ["NOISE = (", "NOISE = " + "(" * 500 + ")" * 500, "NOISE = '\x00'"])
def test_a_file_that_is_no_python_is_an_error(tmp_path, text):
    path = tmp_path / "processed_noise.py"
    path.write_text(text)
    with pytest.raises(ImportFormatError, match="not readable as Python literals"):
        read_literals(path, ("NOISE",))


def test_a_name_that_is_not_assigned_is_named(tmp_path):
    path = tmp_path / "processed_noise.py"
    path.write_text("NOICE = []")
    with pytest.raises(ImportFormatError, match="does not assign NOISE; it assigns NOICE"):
        read_literals(path, ("NOISE",))


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        (
            [{**QUERY, "expected_answer_keywords": ["E"]}],
            r"EVALUATION_QUERIES\[0\]: 'answer' must be one of A, B, C, D",
        ),
        ([{k: v for k, v in QUERY.items() if k != "topic"}], r"EVALUATION_QUERIES\[0\]: 'topic'"),
        (["Q"], r"EVALUATION_QUERIES\[0\]"),
    ],
)
def test_a_malformed_question_is_named(publish, queries, message):
    with pytest.raises((ImportFormatError, RecordError), match=message):
        import_package(publish(queries=queries))


@pytest.mark.parametrize("dialogue", [[("x", "robot")], [("x",)], [3], [(" ", "user")]])
def test_a_malformed_dialogue_is_named(publish, dialogue):
    with pytest.raises(ImportFormatError, match=r"GROUND_TRUTH_HISTORY\[1\]: expected \(text, role\) pairs"):
        import_package(publish(history=[DIALOGUE, dialogue]))


def test_no_package_is_said(tmp_path):
    with pytest.raises(ImportFormatError, match=r"neither runtime/<mode>/test_cases.py nor test_cases.py"):
        import_package(tmp_path)


@pytest.mark.parametrize(
    "query",
    [
        "Which?\nA) one\nB) two\nC) three\nD) four",
        "Which? A. one B. two C. three D. four",
        "Which?\n\nOptions:\n(A) one\n(B) two\n(C) three\n(D) four\n",
        "Plan A: or not? Which?\nA: one\nB: two\nC: three\nD: four",
    ],
)
def test_options_in_the_query_are_split_off(query):
    stem, options = split_options(query)
    assert stem.endswith("Which?")
    assert options == ("one", "two", "three", "four")


@pytest.mark.parametrize("query", ["Which plan, A. or B.?", "A) one B) two C) three D) four", "Just this"])
def test_a_query_without_a_list_stays_whole(query):
    assert split_options(query) == (query, ())


def test_the_command_writes_files_that_build(publish, tmp_path, capsys):
    from scale_qa.cli import main
    from scale_qa.records import read_noise, read_records

    out, noise = tmp_path / "r.jsonl", tmp_path / "n.jsonl"
    assert main(["import", str(publish()), "--out", str(out), "--noise-out", str(noise)]) == 0
    assert len(read_records(out)) == 1
    assert len(list(read_noise(noise))) == 2
    assert "note: 1 dialogues without a question" in capsys.readouterr().out
    assert json.loads(out.read_text())["options"] == ["seven", "nine", "eight", "ten"]
