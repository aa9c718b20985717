import json
from datetime import UTC, datetime

import pytest
from scale_qa.errors import PackageError
from scale_qa.package import GoldUnit, PackageWriter, Question, load_package
from tsim_core import Turn

LONG = "word " * 1000  # 1,300 tokens


def question(id: str, *evidence: int) -> Question:
    return Question(id, "why?", evidence, "A", ("a", "b", "c", "d"), topic="Legal", stress=("state_overwrite",))


@pytest.fixture
def package(tmp_path):
    writer = PackageWriter(tmp_path / "p")
    turns = [
        Turn("user", LONG),
        Turn("assistant", "short", timestamp=datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
        Turn("user", ""),
    ]
    gold = [GoldUnit("r1", "truth", ((0, 1), (2, 3))), GoldUnit("n1", "noise", ((1, 2),))]
    writer.write_batch(turns, [question("early", 0), question("late", 1, 2)], gold, label="one", source_ids={1: "D1:1"})
    writer.write_batch([Turn("user", "alone")], [question("only", 0)], [])
    return writer.finish(name="test", noise=[])


def test_what_was_written_is_read(package):
    first, second = package
    assert [turn.role for turn in first.turns] == ["user", "assistant", "user"]
    assert first.turns[1].timestamp == datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    assert first.questions == (question("early", 0), question("late", 1, 2))
    assert first.gold[0].turns == (0, 2)
    assert second.turns == (Turn("user", "alone"),)


def test_the_stream_holds_nothing_but_roles_texts_and_times(package):
    rows = [json.loads(line) for line in (package.directory / "batches/000/stream.jsonl").read_text().splitlines()]
    assert [set(row) for row in rows] == [{"role", "text"}, {"role", "text", "timestamp"}, {"role", "text"}]


def test_the_manifest_counts_and_tells_what_recency_reaches(package):
    assert package.manifest["counts"] == {"turns": 4, "questions": 3, "dialogues": 2}
    assert package.manifest["batches"][0]["noise_tokens"] == pytest.approx(1.3)
    assert package.manifest["batches"][0]["label"] == "one"
    assert package.manifest["reachability"] == {"1000": 0.666667, "5000": 1.0, "20000": 1.0}


def test_the_digest_follows_every_byte(package):
    before = package.digest
    assert load_package(package.directory).digest == before
    manifest = package.directory / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"test"', '"other"'))
    assert load_package(package.directory).digest != before


def test_a_changed_file_is_refused(package):
    stream = package.directory / "batches/000/stream.jsonl"
    stream.write_text(stream.read_text().replace("short", "shirt"))
    with pytest.raises(PackageError, match=r"batches/000/stream.jsonl was changed since it was built"):
        load_package(package.directory)


@pytest.mark.parametrize(("what", "message"), [("gone", "is missing"), ("extra", "is not in the manifest")])
def test_a_missing_or_extra_file_is_refused(package, what, message):
    folder = package.directory / "batches/001"
    if what == "gone":
        (folder / "gold.jsonl").unlink()
    else:
        (folder / "more.jsonl").write_text("{}\n")
    with pytest.raises(PackageError, match=message):
        load_package(package.directory)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "scale-qa-package/0"}', '{"format": "scale-qa-package/1"}'])
def test_a_broken_manifest_is_refused(package, text):
    (package.directory / "manifest.json").write_text(text)
    with pytest.raises(PackageError, match=r"not JSON|not a manifest of scale-qa-package/1"):
        load_package(package.directory)


def test_no_package_is_said(tmp_path):
    with pytest.raises(PackageError, match="no package"):
        load_package(tmp_path / "none")


def test_an_unknown_batch_names_the_known(package):
    with pytest.raises(PackageError, match="no batch '007'; there are 000, 001"):
        package.batch("007")


def test_a_writer_leaves_other_folders_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("do not lose")
    with pytest.raises(PackageError, match="not empty and no package"):
        PackageWriter(tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_an_older_package_is_replaced(package):
    writer = PackageWriter(package.directory)
    with pytest.raises(PackageError, match="no package"):  # broken off in between, it does not load
        load_package(package.directory)
    writer.write_batch([Turn("user", "new")], [question("q", 0)], [])
    assert writer.finish(name="new").batch_names == ("000",)


def test_evidence_must_lie_in_the_stream(tmp_path):
    writer = PackageWriter(tmp_path / "p")
    with pytest.raises(PackageError, match="question 'q' has evidence outside of its stream"):
        writer.write_batch([Turn("user", "x")], [question("q", 1)], [])
