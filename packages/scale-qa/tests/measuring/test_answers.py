"""Answer backends over HTTP.

The cassettes were recorded from the server beside this file; ``pytest --record-mode=rewrite -m vcr`` records them anew.
The other tests talk to that server live.
"""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from scale_qa.answers import Answer, ChatModelAnswerer, load_answerer, question_prompt
from scale_qa.cli import main
from scale_qa.errors import AnswerError
from scale_qa.results import read_results

PORT = 18127  # of the recordings
OPTIONS = ("seven", "nine", "ten", "two")
CONTEXT = "user: The gate code is seven.\nuser: Scrap that, it is nine."

spec = importlib.util.spec_from_file_location("answer_server", Path(__file__).with_name("answer_server.py"))
answer_server = importlib.util.module_from_spec(spec)
spec.loader.exec_module(answer_server)


@pytest.fixture(scope="module")
def vcr_config():
    def kept(request):
        """What the server needs; the rest tells of the machine that recorded."""
        request.headers = {
            key: value for key, value in request.headers.items() if key.lower() in ("accept", "content-type")
        }
        return request

    return {"before_record_request": kept, "decode_compressed_response": True}


@pytest.fixture
def recorded(record_mode):
    """Base URL of the server whose answers are on the cassettes; it runs only while they are recorded."""
    if record_mode == "none":
        yield f"http://127.0.0.1:{PORT}/v1"
    else:
        with answer_server.serving(PORT) as url:
            yield url


@pytest.fixture
def live():
    with answer_server.serving() as url:
        yield url


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.vcr
def test_a_choice_comes_from_constrained_output(recorded):
    answerer = load_answerer("openai:tiny-chooser", recorded)
    answer = answerer.answer("Which code?", OPTIONS, CONTEXT)
    assert (answer.letter, answer.failure) == ("B", None)
    assert answer.rationale == "The conversation ends on option B."


@pytest.mark.vcr
def test_prose_is_no_letter(recorded):
    answer = load_answerer("openai:tiny-mumbler", recorded).answer("Which code?", OPTIONS, CONTEXT)
    assert (answer.letter, answer.failure) == (None, "no_letter")
    assert "It depends" in answer.detail


@pytest.mark.vcr
def test_a_server_that_fails_is_an_error_and_no_answer(recorded):
    answerer = load_answerer("openai:tiny-broken", recorded)
    answer = answerer.answer("Which code?", OPTIONS, CONTEXT)
    assert (answer.letter, answer.failure) == (None, "error")
    assert "out of order" in answer.detail
    with pytest.raises(AnswerError, match="does not answer"):
        answerer.complete("Say something.")


def test_free_text_is_for_memories_that_want_it(live):
    assert load_answerer("openai:tiny-chooser", live).complete("Summarise this.") == "About: Summarise this."


def test_a_whole_run_over_http(live, package, tmp_path, capsys):
    out = tmp_path / "r.json"
    command = ["run", str(package.directory), "--system", "bm25-256", "--system", "no-context", "--out", str(out)]
    assert main([*command, "--answer", "openai:tiny-chooser", "--answer-url", live, "--llm"]) == 0
    results = read_results(out)
    assert results["run"]["settings"]["write_back"] is True
    # Asked after the gate, the last code said is nine; without context the first option is taken.
    gate = results["systems"]["bm25-256"]["questions"][0]["answer"]
    assert (gate["letter"], gate["right"]) == ("B", True)
    assert results["systems"]["no-context"]["questions"][0]["answer"]["letter"] == "A"
    assert "accuracy" in capsys.readouterr().out


def test_a_backend_that_is_down_ends_the_run_with_a_way_on(package, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("scale_qa.run.FAILURES_IN_A_ROW", 2)
    with answer_server.serving() as url:
        pass  # nobody listens there any more
    command = ["run", str(package.directory), "--system", "bm25-256", "--out", str(tmp_path / "r.json")]
    assert main([*command, "--answer", "openai:tiny-chooser", "--answer-url", url]) == 1
    error = capsys.readouterr().err
    assert "failed on 2 questions in a row" in error
    assert "it goes on" in error
    lines = (tmp_path / "r.json.partial").read_text().splitlines()
    assert [json.loads(line)["row"]["answer"]["failure"] for line in lines[2:]] == ["error", "error"]


def test_a_model_that_refuses_the_schema_is_counted():
    class Model:
        def with_structured_output(self, schema, include_raw, **extra):
            assert (include_raw, extra) == (True, {"method": "json_mode"})
            return self

        def invoke(self, prompt):
            return {"parsed": None, "raw": "E", "parsing_error": ValueError("no letter")}

    answer = ChatModelAnswerer(Model(), "m", "json_mode").answer("q", OPTIONS, "")
    assert answer == Answer(None, failure="no_letter", detail="E", seconds=answer.seconds)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gemma2", "write provider:model"),
        ("openai:", "write provider:model"),
        ("ollama:gemma2:9b", "pip install langchain-ollama"),
        ("google_genai:gemini-2.5-flash", "pip install langchain-google-genai"),
        ("nobody:model", "cannot be set up"),
    ],
)
def test_a_backend_that_cannot_be_built_says_why(name, message, monkeypatch):
    for module in ("langchain_ollama", "langchain_google_genai"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(AnswerError, match=message):
        load_answerer(name)


def test_the_prompt_holds_context_question_and_options():
    prompt = question_prompt("Which code?", OPTIONS, CONTEXT)
    assert prompt.index(CONTEXT) < prompt.index("Which code?") < prompt.index("A. seven\nB. nine\nC. ten\nD. two")
    assert "(nothing was recalled)" in question_prompt("Which code?", OPTIONS, "")
