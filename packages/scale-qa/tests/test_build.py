import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scale_qa.arrange import ARRANGEMENTS
from scale_qa.build import Plan, build, select
from scale_qa.errors import BuildError, PackageError
from scale_qa.noise import NoisePool
from scale_qa.package import load_package
from scale_qa.records import DOMAINS
from scale_qa.tokens import words


class DataSet:
    """Hypothesis prints the arguments of a failing call: these have no long repr."""

    def __init__(self, records, pool):
        self.records, self.pool = records, pool


@pytest.fixture
def data_set(small_set, own_pool):
    return DataSet(small_set, own_pool)


def files_of(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_every_question_finds_its_evidence_at_its_positions(tmp_path, small_set, own_pool, arrangement):
    package = build(small_set, own_pool, Plan(target=16_000, arrangement=arrangement), tmp_path / "p")
    records = {record.id: record for record in small_set}
    seen = []
    for batch in package:
        texts = [turn.text for turn in batch.turns]
        for question in batch.questions:
            record = records[question.id]
            assert [texts[i] for i in question.evidence] == [
                turn.text for turn in record.dialogue if turn.text in record.expected_doc
            ]
            assert (question.query, question.options, question.answer) == (record.query, record.options, record.answer)
            seen.append(question.id)
        for unit in batch.gold:
            if unit.kind == "truth":
                assert tuple(texts[i] for i in unit.turns) == tuple(turn.text for turn in records[unit.id].dialogue)
        covered = sorted(i for unit in batch.gold for i in unit.turns)
        assert covered == list(range(len(batch.turns)))
    assert sorted(seen) == sorted(records)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    target=st.integers(2_000, 9_000),
    cap=st.sampled_from([0.3, 0.5, 0.82, 1.0]),
    count=st.integers(1, 30),
    arrangement=st.sampled_from(ARRANGEMENTS),
    seed=st.integers(0, 3),
)
def test_lengths_hold_for_any_plan(tmp_path, data_set, target, cap, count, arrangement, seed):
    plan = Plan(target=target, truth_cap=cap, arrangement=arrangement, seed=seed, noise_seed=seed)
    package = build(data_set.records[:count], data_set.pool, plan, tmp_path / "p")
    asked = 0
    for batch in package:
        size = {unit.id: 1.3 * sum(words(batch.turns[i].text) for i in unit.turns) for unit in batch.gold}
        truth = sum(size[unit.id] for unit in batch.gold if unit.kind == "truth")
        assert 0.9 * target - 2 <= sum(size.values()) <= target
        if package.manifest["mode"] == "length-batched":
            assert truth <= cap * target + 1e-6
        assert len(size) == len(batch.gold)  # no dialogue twice in a batch
        asked += len(batch.questions)
    assert asked == count


def test_the_same_plan_gives_the_same_bytes_in_another_process(tmp_path):
    code = """
import sys
from pathlib import Path
from scale_qa.build import Plan, build
from scale_qa.families import shipped_families
from scale_qa.generate import generate
from scale_qa.noise import NoisePool, own_noise
with NoisePool() as pool:
    pool.add(own_noise(5), up_to_words=20_000)
    build(generate(shipped_families(), 60, 3), pool, Plan(target=16_000, arrangement="braided"), Path(sys.argv[1]))
"""
    for name, hashseed in (("a", "1"), ("b", "2")):
        env = {**os.environ, "PYTHONHASHSEED": hashseed, "LC_ALL": "C"}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=True, env=env)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_bytes_are_pinned(tmp_path, make_record, make_pool):
    """A change of these bytes makes earlier results incomparable: change the format's number with it."""
    records = [make_record(id=f"r{i}", dialogue=make_record().dialogue) for i in range(3)]
    build(records, make_pool(20, 12), Plan(target=200, arrangement="shuffled"), tmp_path / "p")
    joined = b"".join(files_of(tmp_path / "p").values())
    assert hashlib.sha256(joined).hexdigest() == "6f06011087436525db0b1804ac048ed326d3bd791e2c3a23472ee0da242fc12f"


def test_seeds_and_arrangements_change_the_stream_only(tmp_path, small_set, own_pool):
    packages = {}
    for name, plan in {
        "a": Plan(16_000),
        "seed": Plan(16_000, seed=8),
        "noise": Plan(16_000, noise_seed=8),
        "braided": Plan(16_000, arrangement="braided"),
    }.items():
        packages[name] = build(small_set[:40], own_pool, plan, tmp_path / name)
    assert len({package.digest for package in packages.values()}) == 4
    noise = {
        name: {unit.id for batch in package for unit in batch.gold if unit.kind == "noise"}
        for name, package in packages.items()
    }
    assert noise["a"] == noise["seed"] == noise["braided"] != noise["noise"]


def test_full_corpus_where_all_truth_fits(tmp_path, small_set, own_pool):
    package = build(small_set[:20], own_pool, Plan(target=16_000), tmp_path / "p")
    assert package.manifest["mode"] == "full-corpus"
    assert package.batch_names == ("000",)


def test_longest_first_best_fit(tmp_path, make_record, make_pool):
    """Sizes 60, 50, 40, 30, 20 into a cap of 100 words: 60+40, 50+30+20."""
    sizes = {"a": 60, "b": 50, "c": 40, "d": 30, "e": 20}
    records = []
    for id, size in sizes.items():
        record = make_record(id=id)
        filler = "x " * (size - sum(words(turn.text) for turn in record.dialogue) + words(record.dialogue[1].text))
        dialogue = (record.dialogue[0], replace(record.dialogue[1], text=filler), *record.dialogue[2:])
        records.append(replace(record, dialogue=dialogue))
    plan = Plan(target=163, truth_cap=0.8)  # 125 words, of which 100 of truth
    package = build(records, make_pool(80, 5), plan, tmp_path / "p")
    assert [sorted(q.id for q in batch.questions) for batch in package] == [["a", "c"], ["b", "d", "e"]]


def test_a_dialogue_longer_than_a_batch_is_an_error(tmp_path, small_set, own_pool):
    with pytest.raises(BuildError, match=r"target 150 is too small: the dialogue of .* raise --target"):
        build(small_set, own_pool, Plan(target=150), tmp_path / "p")


def test_too_little_noise_says_how_much_is_missing(tmp_path, make_record, make_pool):
    record = make_record()
    size = sum(words(turn.text) for turn in record.dialogue)
    with pytest.raises(BuildError, match=r"too little noise: batch 0 of 1300 tokens lacks (\d+) tokens") as error:
        build([record], make_pool(5, 100), Plan(target=1300), tmp_path / "p")
    missing = 1.3 * (1000 - 500 - size)
    assert f"lacks {missing:.0f} tokens" in str(error.value)
    with pytest.raises(PackageError, match="no package"):
        load_package(tmp_path / "p")


def test_noise_in_pieces_too_large_for_the_gap_is_an_error(tmp_path, make_record, make_pool):
    with pytest.raises(BuildError, match=r"lacks \d+ tokens, and each noise dialogue that is left is longer than that"):
        build([make_record()], make_pool(5, 400), Plan(target=650), tmp_path / "p")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrangement": "spiral"}, "unknown arrangement 'spiral'; known: interleaved"),
        ({"truth_cap": 0}, "truth cap is a share"),
        ({"truth_cap": 1.1}, "truth cap is a share"),
        ({"target": 0}, "positive number of tokens"),
    ],
)
def test_a_bad_plan_is_an_error(changes, message):
    with pytest.raises(BuildError, match=message):
        Plan(**{"target": 1000, **changes})


def test_no_records_is_an_error(tmp_path, own_pool):
    with pytest.raises(BuildError, match="no records"):
        build([], own_pool, Plan(target=1000), tmp_path / "p")


def test_the_manifest_names_seeds_noise_and_records(tmp_path, small_set, own_pool):
    package = build(small_set, own_pool, Plan(target=16_000, seed=3, noise_seed=4), tmp_path / "p")
    manifest = package.manifest
    assert manifest["seeds"] == {"build": 3, "noise": 4}
    assert manifest["arrangement"] == "interleaved"
    assert manifest["records"]["count"] == 120
    (noise,) = manifest["noise"]
    assert (noise["source"], noise["licence"]) == ("own", "MIT")
    assert noise["tokens"] == pytest.approx(sum(batch["noise_tokens"] for batch in manifest["batches"]))
    placed = [unit.id for batch in package for unit in batch.gold if unit.kind == "noise"]
    assert noise["also_in_an_earlier_batch"] == len(placed) - len(set(placed))
    assert set(manifest["files"]) == {
        f"batches/{name}/{part}.jsonl" for name in package.batch_names for part in ("stream", "questions", "gold")
    }
    json.dumps(manifest)


def test_a_selection_spreads_over_topics_and_letters(small_set):
    chosen = select(small_set, 20, 1)
    assert sorted(record.topic for record in chosen) == sorted(DOMAINS * 2)
    assert sorted(record.answer for record in chosen) == sorted("ABCD" * 5)
    assert select(small_set, 20, 1) == chosen != select(small_set, 20, 2)
    with pytest.raises(BuildError, match="cannot take 121 of 120"):
        select(small_set, 121, 1)


def test_noise_is_read_from_disk_as_the_stream_is_written(tmp_path, small_set, own_pool, monkeypatch):
    """Only the dialogues that are running are in memory, whatever the target."""
    loaded = []
    load = NoisePool.load

    def watched(pool, entry):
        loaded.append(entry)
        return load(pool, entry)

    monkeypatch.setattr(NoisePool, "load", watched)
    package = build(small_set[:10], own_pool, Plan(target=16_000, arrangement="braided"), tmp_path / "p")
    noise = [unit for batch in package for unit in batch.gold if unit.kind == "noise"]
    assert len(loaded) == len(noise)
