import json

import pytest
from scale_qa.answers import Answer
from scale_qa.errors import AnswerError, PackageError, RunError, UnknownSystemError
from scale_qa.package import load_package
from scale_qa.results import read_results
from scale_qa.run import written_turns
from scale_qa.systems import windows as window_systems


class Scripted:
    """Answers as it is told, one a question."""

    name = "scripted"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def answer(self, query, options, context):
        self.asked.append((query, context))
        return self.answers[(len(self.asked) - 1) % len(self.answers)]

    def complete(self, prompt):
        return prompt


def without_times(results):
    """Results without what no two runs share."""
    kept = json.loads(json.dumps(results))
    kept["run"].pop("date")
    kept["run"].pop("machine")
    for system in kept["systems"].values():
        system.pop("ingest_ms_per_turn")
        system.pop("retrieval_ms")
        for row in system["questions"]:
            row.pop("retrieval_ms")
    return kept


def test_results_have_the_fixed_shape(make_runner, tmp_path):
    results = make_runner().run(["bm25-turn", "dense-turn"], tmp_path / "r.json")
    assert results == read_results(tmp_path / "r.json")
    assert not (tmp_path / "r.json.partial").exists()
    assert results["package"]["name"] == "tiny"
    assert results["package"]["arrangement"] == "blocks"
    system = results["systems"]["bm25-turn"]
    assert set(system["recall_at_tokens"]) == {"600", "1300", "2600"}
    assert set(system["context_tokens"]) == {"mean", "median", "p95", "max"}
    assert set(system["retrieval_ms"]) == {"p50", "p95"}
    for name in ("recall_at_5", "recall_at_5_hard", "co_containment", "ingest_ms_per_turn", "vectors", "strata"):
        assert name in system
    assert [row["id"] for row in system["questions"]] == ["gate", "release", "bread", "winter"]
    assert results["systems"]["dense-turn"]["vectors"] == 24


def test_the_figures_are_right(make_runner, tmp_path):
    results = make_runner(k=1).run(["bm25-turn", "full-context"], tmp_path / "r.json")
    turn, whole = results["systems"]["bm25-turn"], results["systems"]["full-context"]
    # A single turn can hold neither both gate codes nor what shares no word with its question.
    assert {row["id"]: row["covered"] for row in turn["questions"]} == {
        "gate": False,
        "release": True,
        "bread": True,
        "winter": False,
    }
    assert turn["recall_at_1"] == 0.5
    assert turn["co_containment"] == 0.0
    assert turn["evidence_found"] == pytest.approx(3 / 5)
    assert (whole["recall_at_1"], whole["co_containment"]) == (1.0, 1.0)
    assert turn["strata"]["domain"]["Legal"]["n"] == 2
    assert turn["strata"]["stress"]["state_overwrite"]["recall_at_1"] == 0.0
    assert turn["strata"]["overlap"]["unlabelled"]["n"] == 1
    low, high = turn["intervals"]["recall_at_1"]
    assert low < 0.5 < high


def test_hard_is_what_one_bm25_window_does_not_settle(make_runner, tmp_path):
    results = make_runner().run(["bm25-turn"], tmp_path / "r.json")
    # The whole thread fits into one window of 256 tokens: everything is settled but what shares no term.
    assert {key: facts["hard"] for key, facts in results["questions"].items()} == dict.fromkeys(
        ("gate", "release", "bread", "winter"), False
    )
    assert results["systems"]["bm25-turn"]["recall_at_5_hard"] is None


def test_a_broken_off_run_goes_on_and_ends_the_same(make_runner, tmp_path, monkeypatch):
    answers = [Answer("B", "because"), Answer("A", "so"), Answer(None, failure="no_letter", detail="?")]
    settings = {"write_back": True, "answer": "scripted"}
    names = ["bm25-turn", "sliding-3"]
    whole = make_runner(Scripted(*answers, answers[0]), **settings).run(names, tmp_path / "whole.json")

    class Broken(Scripted):
        def answer(self, *args):
            if len(self.asked) == 5:
                raise KeyboardInterrupt
            return super().answer(*args)

    with pytest.raises(KeyboardInterrupt):
        make_runner(Broken(*answers, answers[0]), **settings).run(names, tmp_path / "broken.json")
    assert not (tmp_path / "broken.json").exists()
    rest = Scripted(answers[1], answers[2], answers[0])
    resumed = make_runner(rest, **settings).run(names, tmp_path / "broken.json")
    assert len(rest.asked) == 3
    assert without_times(resumed) == without_times(whole)


def test_a_line_that_was_broken_off_in_writing_is_dropped(make_runner, tmp_path):
    whole = make_runner().run(["bm25-turn"], tmp_path / "whole.json")
    runner = make_runner()
    runner.progress.advance = lambda questions: (_ for _ in ()).throw(KeyboardInterrupt) if questions else None
    with pytest.raises(KeyboardInterrupt):
        runner.run(["bm25-turn"], tmp_path / "r.json")
    partial = tmp_path / "r.json.partial"
    partial.write_bytes(partial.read_bytes() + b'{"system": "bm25-tu')
    assert without_times(make_runner().run(["bm25-turn"], tmp_path / "r.json")) == without_times(whole)


def test_results_can_be_extended(make_runner, tmp_path):
    out = tmp_path / "r.json"
    make_runner().run(["bm25-turn"], out)
    before = read_results(out)["systems"]["bm25-turn"]
    extended = make_runner().run(["bm25-turn", "bm25-256"], out)
    assert list(extended["systems"]) == ["bm25-turn", "bm25-256"]
    assert extended["systems"]["bm25-turn"] == before


def test_other_settings_do_not_mix(make_runner, tmp_path):
    out = tmp_path / "r.json"
    make_runner().run(["bm25-turn"], out)
    with pytest.raises(RunError, match="other settings; choose another --out or pass --fresh"):
        make_runner(k=3).run(["bm25-turn"], out)
    assert "recall_at_3" in make_runner(k=3).run(["bm25-turn"], out, fresh=True)["systems"]["bm25-turn"]


def test_a_partial_file_of_another_run_is_refused(make_runner, tmp_path):
    out = tmp_path / "r.json"
    (tmp_path / "r.json.partial").write_text('{"identity": {"package": "other"}}\n')
    with pytest.raises(RunError, match="broken-off run of another package"):
        make_runner().run(["bm25-turn"], out)
    (tmp_path / "r.json.partial").write_text("no journal\n")
    with pytest.raises(RunError, match="no journal of a run"):
        make_runner().run(["bm25-turn"], out)
    make_runner().run(["bm25-turn"], out, fresh=True)


def test_write_back_adds_turns_and_never_the_key(make_runner, package, tmp_path):
    seen = []

    class Watching(window_systems.LexicalSpans):
        def ingest(self, turns):
            seen.extend(turn.text for turn in turns)
            super().ingest(turns)

    spec = window_systems.SPECS[6]
    assert spec.name == "bm25-turn"
    from functools import partial

    from scale_qa.systems import SystemSpec
    from scale_qa.systems.spans import single_turns

    runner = make_runner(Scripted(Answer("C", "I recall ten.")), write_back=True, answer="scripted")
    watched = SystemSpec("w", "", partial(Watching, spanner=single_turns))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scale_qa.run.find_system", lambda name: watched if name == "w" else spec)
        runner.run(["w"], tmp_path / "r.json")
    assert len(seen) == 24 + 4 * 2
    assert seen[12] == "Which gate code holds at Marrowgate?\nA. seven\nB. nine\nC. ten\nD. two"
    assert seen[13] == "C. I recall ten."


def test_without_an_answer_model_the_reply_says_nothing(package):
    question = next(iter(package)).questions[0]
    asked, reply = written_turns(question, None)
    assert reply.text == "I have answered that."
    assert asked.role == "user"


def test_options_can_be_part_of_the_query(make_runner, tmp_path):
    plain = make_runner().run(["bm25-turn"], tmp_path / "a.json")
    form = make_runner(query_form="options").run(["bm25-turn"], tmp_path / "b.json")
    assert form["run"]["settings"]["query_form"] == "options"
    # "nine" stands in the options and in the last gate turn only.
    found = [r["systems"]["bm25-turn"]["questions"][0]["recall_at"]["1"] for r in (plain, form)]
    assert found == [False, False]


def test_failures_of_the_model_are_counted_and_not_wrong(make_runner, tmp_path):
    answers = [
        Answer("B", "why not"),
        Answer(None, failure="no_letter", detail="Hm."),
        Answer(None, failure="error", detail="timeout"),
        Answer("A", "why"),
    ]
    results = make_runner(Scripted(*answers), answer="scripted").run(["bm25-turn"], tmp_path / "r.json")
    system = results["systems"]["bm25-turn"]
    assert system["accuracy"] == 0.5
    figures = system["answers"]
    assert (figures["asked"], figures["answered"], figures["right"]) == (4, 2, 1)
    assert (figures["no_letter"], figures["errors"], figures["accuracy_of_asked"]) == (1, 1, 0.25)
    # "why" is the reference: one rationale equals it, the other shares a word of three.
    assert 0.5 < figures["rationale_similarity"] < 1.0


def test_a_backend_that_is_down_stops_the_run_and_keeps_what_was_answered(make_runner, tmp_path, monkeypatch):
    monkeypatch.setattr("scale_qa.run.FAILURES_IN_A_ROW", 2)
    down = Answer(None, failure="error", detail="connection refused")
    with pytest.raises(AnswerError, match=r"2 questions in a row \(connection refused\)"):
        make_runner(Scripted(Answer("B"), down), answer="scripted").run(["full-context"], tmp_path / "r.json") and (
            make_runner(Scripted(down), answer="scripted").run(["bm25-turn"], tmp_path / "r.json")
        )
    up = Scripted(Answer("B"))
    results = make_runner(up, answer="scripted").run(["bm25-turn"], tmp_path / "r.json")
    assert results["systems"]["bm25-turn"]["answers"]["errors"] + len(up.asked) == 4


def test_unknown_systems_are_refused_before_anything_runs(make_runner, tmp_path):
    with pytest.raises(UnknownSystemError, match="there are tsim"):
        make_runner().run(["bm25-turn", "bm26"], tmp_path / "r.json")
    with pytest.raises(RunError, match="no system named"):
        make_runner().run([], tmp_path / "r.json")
    assert list(tmp_path.glob("r.json*")) == []


def test_a_package_that_was_changed_is_refused(package):
    stream = package.directory / "batches/000/stream.jsonl"
    stream.write_text(stream.read_text().replace("seven", "eight"))
    with pytest.raises(PackageError, match="was changed since it was built"):
        load_package(package.directory)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "k 0"),
        ({"budgets": ()}, "budgets"),
        ({"budgets": (0,)}, "budgets"),
        ({"query_form": "x"}, "query form"),
    ],
)
def test_impossible_settings_are_refused(make_runner, settings, message):
    with pytest.raises(RunError, match=message):
        make_runner(**settings)


class Notes:
    """Keeps what a run tells."""

    def __init__(self):
        self.notes = []

    def start(self, system, batch, step): ...

    def advance(self, questions): ...

    def note(self, text):
        self.notes.append(text)


OWN_MEMORY = """
from scale_qa.systems.spans import LexicalSpans, windows

def mine(resources):
    return LexicalSpans(resources, windows({size}))
"""


def test_what_other_code_measured_is_measured_anew(make_runner, tmp_path):
    source, out = tmp_path / "mine.py", tmp_path / "r.json"
    names = [f"{source}:mine", "bm25-turn"]
    source.write_text(OWN_MEMORY.format(size=8))
    first = make_runner().run(names, out)
    assert first["systems"][names[0]]["code"] != first["systems"]["bm25-turn"]["code"]
    unchanged = make_runner()
    unchanged.progress = Notes()
    assert unchanged.run(names, out)["systems"] == first["systems"]
    assert unchanged.progress.notes == []
    source.write_text(OWN_MEMORY.format(size=800))
    changed = make_runner()
    changed.progress = Notes()
    second = changed.run(names, out)
    assert changed.progress.notes == [f"{names[0]}: its code has changed since r.json was written; measured anew"]
    assert second["systems"]["bm25-turn"] == first["systems"]["bm25-turn"]
    assert second["systems"][names[0]]["vectors"] == first["systems"][names[0]]["vectors"] == 0
    assert second["systems"][names[0]]["co_containment"] > first["systems"][names[0]]["co_containment"]


def test_a_broken_off_run_drops_the_rows_of_other_code(make_runner, tmp_path, monkeypatch):
    out = tmp_path / "r.json"
    runner = make_runner()
    runner.progress = Notes()
    runner.progress.advance = lambda questions: (_ for _ in ()).throw(KeyboardInterrupt) if questions else None
    with pytest.raises(KeyboardInterrupt):
        runner.run(["bm25-turn"], out)
    same = make_runner()
    same.progress = Notes()
    with monkeypatch.context() as patch:
        patch.setattr("scale_qa.run.fingerprint", lambda spec: "other code")
        resumed = same.run(["bm25-turn"], out)
    assert same.progress.notes == ["bm25-turn: its code has changed since the run broke off; measured anew"]
    assert [row["id"] for row in resumed["systems"]["bm25-turn"]["questions"]] == ["gate", "release", "bread", "winter"]


def test_the_code_of_tsim_counts_for_tsim_alone(monkeypatch, tmp_path):
    from scale_qa import fingerprint as module
    from scale_qa.systems import find_system

    before = {name: module.fingerprint(find_system(name)) for name in ("tsim", "tsim-paper", "bm25-256", "raptor")}
    assert before["tsim"] == before["tsim-paper"]
    real = module.resources.files
    core = tmp_path / "core"
    core.mkdir()
    (core / "config.py").write_text("theta_s = 0.7\n")
    monkeypatch.setattr(module.resources, "files", lambda name: core if name == "tsim_core" else real(name))
    after = {name: module.fingerprint(find_system(name)) for name in before}
    assert {name for name in before if before[name] != after[name]} == {"tsim", "tsim-paper"}
