"""The LangGraph examples run as they stand and print what they say."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from .conftest import run_of, said

EXAMPLES = Path(__file__).parents[3] / "examples"

PRINTED = {
    "langgraph_support_agent": [
        "ANN'S MODEL REMEMBERED\n[1] ",
        "user: Ship my orders to the Oslo office, never to my home.",
        "AFTER A FORK, IN OTHER WORDS\n  user: Where does the scanner that I order get shipped?\n  assistant: The",
        "assistant: The printer goes to the Oslo office, as you decided.\n  user: And the scanner?\n  assistant: Both",
    ],
    "langgraph_supervisor": [
        "THE SUPERVISOR REMEMBERED\n[1] ",
        "ann/monday\n  user: Advertise our boats.\n  assistant: RESEARCH which colour of boat sells best\n"
        "  assistant: Blue boats sell best in the north, red ones in the south.\n  assistant: WRITE a line",
        "ann/friday\n  user: Which colour of boat sells best?\n  assistant: We found",
    ],
    "langgraph_interrupt": [
        "PAUSED AT ['MAY I delete the backup of March?']",
        "REMEMBERED AT THE PAUSE\n  user: Free some disk space on the server.\n  assistant: MAY I delete",
        "  user: No, keep the backup of March. Delete the logs.\n  assistant: I deleted the logs",
        "RECALLED LATER\n[1] ",
    ],
    "langgraph_store": [
        "ann: Where shall I spend my holidays?\n  0.41  My favourite trips go to the mountains.",
        "ben: Where shall I spend my holidays?\n  0.36  I love beaches and warm water.",
        "NAMESPACES [('likes', 'ann'), ('likes', 'ben')]",
    ],
}
UNSEEN = {"langgraph_support_agent": "Bergen"}


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delenv("TSIM_MODEL", raising=False)
    monkeypatch.delenv("TSIM_STORE", raising=False)


@pytest.mark.parametrize("name", PRINTED)
def test_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert [text for text in PRINTED[name] if text not in out] == []
    assert UNSEEN.get(name, "Traceback") not in out


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("langgraph_*.py")} == {*PRINTED, "langgraph_server"}


def test_what_langgraph_json_names_is_a_graph_that_remembers() -> None:
    config = json.loads((EXAMPLES / "langgraph.json").read_text())
    for reference in config["graphs"].values():
        path, name = reference.split(":")
        graph = runpy.run_path(str(EXAMPLES / path))[name]
        graph.invoke(said("My dog is called Rex"), run_of("t1"))
        state = graph.invoke(said("How is my dog called?"), run_of("t2"))
        assert "My dog is called Rex" in state["memory_context"]
