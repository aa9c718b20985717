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
