import json
import subprocess
import sys
import warnings

import pytest
from scale_qa.cli import build_parser, main
from scale_qa.package import load_package

FIXED = ["generate", "audit", "import", "convert", "build"]


@pytest.mark.parametrize("command", FIXED)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert command in capsys.readouterr().out


def test_wrong_usage_exits_with_two(capsys):
    for argv in (["dance"], [], ["build", "--target", "1.5k"], ["convert", "yahoo", "x", "--out", "y"]):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 2
    assert "is no length" in capsys.readouterr().err


def test_generate_audit_and_build_from_a_fresh_clone(tmp_path, capsys):
    records, folder = str(tmp_path / "r.jsonl"), tmp_path / "p"
    assert main(["generate", "--out", records, "--count", "80", "--seed", "2"]) == 0
    assert "80 records from" in capsys.readouterr().out
    assert main(["audit", records]) == 0
    assert "80 records, 0 breaches" in capsys.readouterr().out
    argv = [
        "build",
        "--records",
        records,
        "--target",
        "16k",
        "--arrangement",
        "braided",
        "--questions",
        "40",
        "--out",
        str(folder),
    ]
    assert main(argv) == 0
    out = capsys.readouterr().out
    package = load_package(folder)
    assert package.manifest["counts"]["questions"] == 40
    assert package.digest in out
    assert "noise own (MIT)" in out
    assert "recency reachability" in out


def test_an_audit_with_breaches_fails(tmp_path, capsys):
    path = tmp_path / "r.jsonl"
    main(["generate", "--out", str(path), "--count", "40"])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["query"] += " <b>"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:-2]))
    assert main(["audit", str(path)]) == 1
    out = capsys.readouterr().out
    assert f"breach: {rows[0]['id']}: markup" in out
    assert "breach(es) of domains_balanced" in out


def test_errors_are_one_line_on_stderr(tmp_path, capsys):
    path = tmp_path / "r.jsonl"
    path.write_text("{}\n")
    for argv, message in (
        (["audit", str(path)], f"scale-qa: {path}:1: missing key(s)"),
        (["audit", str(tmp_path / "none")], "no such file"),
        (["generate", "--out", str(path), "--count", "3"], "ask for 40 records or more"),
        (["import", str(tmp_path), "--out", "a", "--noise-out", "b"], "neither runtime/"),
        (["convert", "locomo", str(path), "--out", str(tmp_path / "p")], "not in the format of locomo"),
    ):
        assert main(argv) == 1
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.err.count("\n") == 1


def test_the_help_imports_nothing_heavy():
    code = (
        "import sys; from scale_qa.cli import build_parser; build_parser(); "
        "print([m for m in ('yaml', 'bm25s', 'torch', 'faiss', 'sklearn') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_parser_builds_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_parser()
