"""The LangChain examples run as they stand and print what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import langchain_classic.chains  # noqa: F401 - it sets warning filters when it is imported: before a test's own
import pytest

EXAMPLES = Path(__file__).parents[4] / "examples"

PRINTED = {
    "langchain_conversation_chain": (["single consumer GPU, and I never pay more", "Take a used RTX 3060"], []),
    "langchain_retrieval_qa": (["It faces north", "score", "lexical:", "mint and chives"], ["faces south", "tax form"]),
    "langchain_lcel": (["allergic to nuts", "gluten", "-> Pasta", "-> Rice"], []),
    "langchain_agent": (
        [
            "You plan trips.",
            "THE TOOL FOUND",
            "I do not fly",
            "8:32",
            "alice / april - user, assistant, tool, assistant",
        ],
        [],
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_example(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delenv("TSIM_MODEL", raising=False)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    shown, hidden = PRINTED[name]
    assert [text for text in shown if text not in out] == []
    assert [text for text in hidden if text in out] == []
    if name == "langchain_lcel":
        alice, bob = out.split("BOB")
        assert "gluten" not in alice
        assert "nuts" not in bob


def test_any_real_model_by_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSIM_MODEL", "openai:any-model")
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    module = runpy.run_path(str(EXAMPLES / "langchain_model.py"))
    model = module["chat_model"]("scripted")
    assert type(model).__name__ == "ChatOpenAI"
    assert model.model_name == "any-model"
