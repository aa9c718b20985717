import json

import pytest
from scale_qa.answers import Answer
from scale_qa.cli import main
from scale_qa.comparison import common_names, compare_systems
from scale_qa.errors import ResultsError
from scale_qa.report import merge, write_report
from scale_qa.results import read_results
from scale_qa.tables import best_bold, decimals, markdown, with_interval


class Always:
    name = "always"

    def answer(self, query, options, context):
        return Answer("B", "why")

    def complete(self, prompt):
        return prompt


@pytest.fixture
def results(make_runner, tmp_path):
    runner = make_runner(Always(), answer="always")
    runner.run(["tsim-paper", "ladder-l0", "bm25-turn", "raptor", "full-context"], tmp_path / "r.json")
    return read_results(tmp_path / "r.json")


def test_a_report_has_every_part(results, tmp_path):
    write_report([results], tmp_path / "out" / "report.md", tmp_path / "out" / "plots")
    text = (tmp_path / "out" / "report.md").read_text()
    for heading in ("Evidence", "Cost", "View hits", "Ablation", "Answers", "Beside the paper", "Notes"):
        assert f"### {heading}" in text
    assert results["package"]["digest"][:12] in text
    assert "**Arrangement** blocks" in text
    assert "source own" in text
    assert "| `tsim-paper` | 1.000 [.510, 1.000]" in text or "| `tsim-paper` | **1.000 [.510, 1.000]**" in text
    views = next(line for line in text.splitlines() if line.startswith("| arXiv 2608.25655v1 |"))
    assert {".638", ".861", ".708"} <= {cell.strip() for cell in views.split("|")}
    assert "RAPTOR: PCA stands in for UMAP" in text
    assert "![Recall by token budget, tiny, 1k tokens, blocks](plots/budget.svg)" in text
    names = {path.name for path in (tmp_path / "out" / "plots").iterdir()}
    assert names == {f"{kind}.{form}" for kind in ("budget", "latency", "ablation") for form in ("svg", "png")}


def test_the_same_results_draw_the_same_bytes(results, tmp_path):
    for name in ("a", "b"):
        write_report([results], tmp_path / name / "report.md", tmp_path / name / "plots")
    for path in (tmp_path / "a").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


def test_packages_of_several_lengths_make_a_plot_over_length(results, tmp_path):
    longer = json.loads(json.dumps(results))
    longer["package"] |= {"digest": "other", "target_tokens": 4_000}
    write_report([results, longer], tmp_path / "report.md", tmp_path / "plots")
    assert (tmp_path / "plots" / "length.svg").exists()
    assert "plots/length.svg" in (tmp_path / "report.md").read_text()


def test_results_of_one_package_are_joined(results):
    other = {**results, "systems": {"sliding-3": results["systems"]["bm25-turn"]}}
    assert len(merge([results, other])[0]["systems"]) == 6
    with pytest.raises(ResultsError, match="two results files measured 'bm25-turn'"):
        merge([results, results])


def test_systems_are_compared_question_by_question(results):
    compared = compare_systems(results, "full-context", results, "bm25-turn")
    assert compared["co-containment"].first == 1.0
    assert compared["co-containment"].n == 1
    assert compared["accuracy"].difference == 0.0
    assert compared["recall@5"].n == 4


def test_other_questions_cannot_be_compared(results):
    other = json.loads(json.dumps(results))
    other["package"]["digest"] = "x"
    with pytest.raises(ResultsError, match="two packages"):
        compare_systems(results, "bm25-turn", other, "bm25-turn")
    with pytest.raises(ResultsError, match="no results of 'bm26'; there are tsim-paper"):
        compare_systems(results, "bm26", results, "bm25-turn")


def test_what_to_compare_is_found(results):
    one = {"systems": {"a": 1}}
    assert common_names(one, {"systems": {"b": 2}}) == [("a", "b")]
    assert common_names({"systems": {"a": 1, "b": 2}}, {"systems": {"b": 2}}) == [("b", "b")]
    with pytest.raises(ResultsError, match="--first and --second"):
        common_names({"systems": {"a": 1, "b": 2}}, {"systems": {"c": 2}})


def test_the_command_line_end_to_end(package, tmp_path, capsys):
    out = tmp_path / "r.json"
    run = ["run", str(package.directory), "--system", "bm25-turn", "--system", "bm25-256", "--out", str(out)]
    assert main([*run, "--budget", "50", "--budget", "600"]) == 0
    assert "bm25-256" in capsys.readouterr().out
    assert main(["report", str(out), "--out", str(tmp_path / "r.md")]) == 0
    assert "50 tokens" in (tmp_path / "r.md").read_text()
    compare = ["compare", str(out), str(out), "--first", "bm25-turn", "--second", "bm25-256"]
    assert main([*compare, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document[0]["figures"]["recall@5"]["n"] == 4
    assert main(compare) == 0
    assert main(["systems"]) == 0
    assert "sliding-3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "{}/package", "--system", "bm26", "--out", "{}/r.json"], "no system 'bm26'"),
        (["run", "{}/package", "--system", "tsim", "--out", "{}/r.json", "--llm"], "--answer PROVIDER:MODEL"),
        (["run", "{}/package", "--system", "tsim", "--out", "{}/r.json", "--answer", "gemma"], "names no provider"),
        (["run", "{}/none", "--system", "tsim", "--out", "{}/r.json"], "no package"),
        (["report", "{}/none.json", "--out", "{}/r.md"], "no results file"),
        (["report", "{}/package/manifest.json", "--out", "{}/r.md"], "not a results file"),
        (["compare", "{}/none.json", "{}/none.json"], "no results file"),
        (["segment-eval", "{}/none.json"], "no such file"),
    ],
)
def test_what_goes_wrong_is_one_clear_line(package, tmp_path, capsys, arguments, message):
    assert main([argument.format(tmp_path) for argument in arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_numbers_in_tables():
    assert [decimals(0.5), decimals(1.0), decimals(None), decimals(12.34, 1)] == [".500", "1.000", "–", "12.3"]
    assert with_interval(0.5, (0.4, 0.6)) == ".500 [.400, .600]"
    assert best_bold([(0.1, "a"), (None, "–"), (0.2, "b")]) == ["a", "–", "**b**"]
    assert best_bold([(0.1, "a"), (0.3, "given the answer"), (0.2, "b")], [1]) == ["a", "given the answer", "**b**"]
    assert markdown(["a", "b"], [["x|y", "1"]]) == "| a | b |\n|---|--:|\n| x\\|y | 1 |"
