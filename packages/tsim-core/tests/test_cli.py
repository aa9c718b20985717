"""The command line, as a user runs it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from tsim_core.cli import main

TALK = """User: From now on, new projects run on a single consumer GPU.
Assistant: Noted: one consumer GPU for new projects.
User: What goes well with roast pumpkin?
Assistant: Sage butter and toasted hazelnuts.
User: And for dessert?
Assistant: A pear tart, if you have the time.
"""


@pytest.fixture
def store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "talk.txt").write_text(TALK)
    path = tmp_path / "m.db"
    assert main(["ingest", str(tmp_path / "talk.txt"), "--store", str(path), "--thread", "alice/work"]) == 0
    assert "6 turns added to alice/work" in capsys.readouterr().out
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_recall_prints_the_episode(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "recall", "Which hardware?", "--store", store, "--thread", "alice/work", "--explain")
    assert status == 0
    assert "single consumer GPU" in out
    assert "tokens handed over" in out
    assert "lexical" in out


def test_recall_json_is_one_document(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "recall", "pumpkin", "--store", store, "--prefix", "alice", "-k", 1, "--json")
    data = json.loads(out)
    assert set(data) == {"query", "episodes", "text", "tokens"}
    (episode,) = data["episodes"]
    assert sum(episode["evidence"].values()) == pytest.approx(episode["score"])
    assert episode["turns"][0].keys() == {"id", "role", "text", "timestamp"}
    assert episode["thread"] == ["alice", "work"]


def test_segment_tiles_the_thread_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "talk.txt").write_text(TALK)
    status, out, _ = run(capsys, "segment", tmp_path / "talk.txt", "--json")
    segments = json.loads(out)["segments"]
    assert status == 0
    assert segments[0]["start"] == 0
    assert segments[-1]["end"] == 6
    assert all(a["end"] == b["start"] for a, b in pairwise(segments))
    assert {s["cut"] for s in segments} <= {"shift", "max", "end"}
    assert segments[0]["episode"] == 0
    _, out, _ = run(capsys, "segment", tmp_path / "talk.txt", "--preset", "paper")
    assert "single consumer GPU" in out


def test_threads_stats_and_check(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "threads", "--store", store, "--json")
    assert json.loads(out)["threads"][0] | {"episodes": 0} == {"thread": ["alice", "work"], "turns": 6, "episodes": 0}
    _, out, _ = run(capsys, "stats", "--store", store, "--json")
    assert json.loads(out)["turns"] == 6
    status, out, _ = run(capsys, "check", "--store", store)
    assert (status, out) == (0, "the store is sound\n")


def test_export_import_forget_reindex(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "export", "--store", store, "--out", tmp_path / "e.jsonl")[0] == 0
    status, out, _ = run(capsys, "import", tmp_path / "e.jsonl", "--store", tmp_path / "n.db")
    assert (status, out.split()[0]) == (0, "6")
    new = tmp_path / "n.db"
    assert run(capsys, "forget", "--store", new, "--thread", "alice/work", "--turn", "t0")[1] == "1 turns forgotten\n"
    assert run(capsys, "reindex", "--store", new, "--preset", "paper")[0] == 0
    assert run(capsys, "forget", "--store", new, "--thread", "alice/work", "--all")[1] == "5 turns forgotten\n"
    assert run(capsys, "threads", "--store", new)[1] == "no threads\n"


@pytest.mark.parametrize(
    "command", ["recall x --thread a", "threads", "stats", "check", "reindex", "forget --thread a --all"]
)
def test_a_missing_store_is_an_error(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, *command.split(), "--store", tmp_path / "none.db")
    assert status == 1
    assert out == ""
    assert "no store at" in err
    assert not (tmp_path / "none.db").exists()


def test_a_bad_line_stores_nothing_of_any_file(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.jsonl").write_text('{"role": "user", "text": "a"}\n{"role": "user"')
    files = [tmp_path / "talk.txt", tmp_path / "bad.jsonl"]
    status, _, err = run(capsys, "ingest", *files, "--store", store, "--thread", "bob")
    assert status == 1
    assert "bad.jsonl, line 2" in err
    assert "bob" not in run(capsys, "threads", "--store", store)[1]


def test_an_unknown_thread_names_those_there_are(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "recall", "x", "--store", store, "--thread", "bob")
    assert status == 1
    assert "no thread 'bob'" in err
    assert "alice/work" in err


def test_wrong_usage_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["recall"])
    assert error.value.code == 2


def ingest(capsys: pytest.CaptureFixture[str], store: Path, text: str, *more: object) -> tuple[int, str, str]:
    path = store.parent / "more.txt"
    path.write_text(text)
    return run(capsys, "ingest", path, "--store", store, "--thread", "alice/work", *more)


def test_a_transcript_is_taken_in_once_however_often_it_is_read(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ": 0 turns added to alice/work, 6 were there already" in ingest(capsys, store, TALK)[1]
    grown = TALK + "User: And to drink?\nAssistant: Perry.\n"
    assert ": 2 turns added to alice/work, 6 were there already" in ingest(capsys, store, grown)[1]
    trimmed = "\n".join(grown.splitlines()[4:]) + "\nUser: Thanks.\n"
    assert ": 1 turns added to alice/work, 4 were there already" in ingest(capsys, store, trimmed)[1]
    assert (
        ": 2 turns added to alice/work\n" in ingest(capsys, store, "User: Thanks.\nAssistant: Any time.", "--again")[1]
    )
    status, out, err = ingest(capsys, store, TALK + "User: Something else.\n")
    assert (status, out) == (1, "")
    assert "6 of its 7 turns are in the thread already" in err
    assert "--again" in err
    assert ": 7 turns added to alice/work\n" in ingest(capsys, store, TALK + "User: Something else.\n", "--again")[1]


def test_another_transcript_that_shares_a_few_words_is_taken_in_whole(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "User: And for dessert?\nAssistant: Ice cream.\nUser: Which one?\nAssistant: Pistachio.\n"
    assert ": 4 turns added to alice/work\n" in ingest(capsys, store, other)[1]


def test_ids_tell_turns_apart_where_there_are_any(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps({"id": id_, "role": "user", "text": "And for dessert?"}) for id_ in "ab"]
    assert ": 2 turns added to alice/work\n" in ingest(capsys, store, "\n".join(lines))[1]
    assert ": 0 turns added to alice/work, 2 were there" in ingest(capsys, store, "\n".join(lines), "--again")[1]
    status, _, err = ingest(capsys, store, lines[0].replace("dessert", "supper"))
    assert status == 1
    assert "the id 'a'" in err


def test_files_of_one_command_are_not_doubled(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "talk.txt"] * 2
    out = run(capsys, "ingest", *files, "--store", store, "--thread", "bob")[1]
    assert "6 turns added to bob\n" in out
    assert "0 turns added to bob, 6 were there already" in out


def test_explain_fits_a_terminal_and_numbers_episodes_as_the_text_does(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(capsys, "recall", "dessert", "--store", store, "--thread", "alice/work", "--explain")[1]
    text, table = out.rsplit("\n\n", 1)
    numbers = [line.split()[0] for line in text.splitlines() if line.startswith("[")]
    assert len(numbers) > 1
    assert [line.split()[0] for line in table.splitlines()[2:-1]] == sorted(
        numbers
    )  # by rank; the text is in order of time
    assert max(map(len, table.splitlines())) <= 100
    (episode, *_) = json.loads(
        run(capsys, "recall", "dessert", "--store", store, "--thread", "alice/work", "--json")[1]
    )["episodes"]
    shown = [float(cell) for cell in table.splitlines()[2].split()[1:-2]]
    assert shown == pytest.approx([episode["score"], *episode["evidence"].values()], abs=0.006)


def test_stats_tell_of_views_that_the_configuration_has(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [line.split()[0] for line in run(capsys, "stats", "--store", store)[1].splitlines()] == [
        *("threads", "turns", "superseded", "episodes", "segments", "vectors", "embedder", "dimension", "bytes")
    ]
    paper = tmp_path / "paper.db"
    run(capsys, "ingest", tmp_path / "talk.txt", "--store", paper, "--thread", "a", "--preset", "paper")
    assert json.loads(run(capsys, "stats", "--store", paper, "--json")[1])["summaries"] == 1


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("recall x --prefix alicia", "no thread that begins with 'alicia'"),
        ("export --prefix alicia --out OUT", "no thread that begins with 'alicia'"),
        ("export --out none/OUT", "the folder of none/OUT does not exist"),
        ("forget --thread alice/work", "--turn ID, --before or --after a time, or --all"),
        ("inspect --thread alice/work", "later version"),
    ],
)
def test_errors_speak_the_command_lines_language(
    command: str, message: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, *command.split(), "--store", store)
    assert (status, out) == (1, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_damaged_store_is_no_traceback(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = store.stat().st_size
    with store.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (size - 8192))
    for command in (["check"], ["recall", "x", "--thread", "alice/work"]):
        status, out, err = run(capsys, *command, "--store", store)
        assert status == 1
        assert "damaged" in out + err
