"""The examples that need no framework run, and print what they say."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def printed(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_forgetting(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("forgetting.py", monkeypatch, capsys).splitlines() == [
        "alice: My blood group is A negative.",
        "bob: My blood group is B positive.",
        "in the file before: True",
        "in the file after forgetting: False",
        "exported for alice: 1 turn",
        "threads left: [('bob', 'health')]",
    ]


def test_explain_recall(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed("explain_recall.py", monkeypatch, capsys, "What did Wiebke offer?")
    assert out.startswith("419 turns, ")
    assert "What did Wiebke offer?\n" in out
    assert "lexical" in out.split("What did Wiebke offer?")[1].splitlines()[1], "the rare name speaks for the best"
    budgets = [line for line in out.splitlines() if line.startswith("at most")]
    assert len(budgets) == 3
    counts = [int(line.split(": ")[1].split()[0]) for line in budgets]
    assert counts == sorted(counts), "more room, more episodes"


def test_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    out = printed("demo.py", monkeypatch, capsys, "--all")
    assert re.search(r"^419 turns, 08 January to 02 June 2026: \d+ episodes", out, re.MULTILINE)
    count = re.search(r"(\d+) of 12 requests came with every rule", out)
    assert count is not None
    assert out.count("What a right answer takes from it") == 12
    assert ("did not come: " in out) == (int(count[1]) < 12)
    assert re.search(r"\bm\d{3}\b", out) is None, "a reader does not know our ids"


def test_demo_names_a_command_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    command = runpy.run_path(str(EXAMPLES / "demo.py"))["command"]
    monkeypatch.setattr(sys, "argv", ["examples/demo.py"])
    monkeypatch.chdir(EXAMPLES.parent)
    monkeypatch.setattr(sys, "executable", str(EXAMPLES.parent / ".venv" / "bin" / "python"))
    assert command() == ".venv/bin/python examples/demo.py"
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    assert command() == "/usr/bin/python3 examples/demo.py"


def test_every_script_is_where_readers_look() -> None:
    page = (EXAMPLES.parent / "docs" / "tutorials" / "index.md").read_text(encoding="utf-8")
    helpers = {"langchain_model.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} - helpers == set(re.findall(r"`(\w+\.py)`", page))
