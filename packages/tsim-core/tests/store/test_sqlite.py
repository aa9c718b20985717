"""The SQLite file: damaged, forbidden, and left as it was by those who only read."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tsim_core import EpisodicMemory, InputError, ReadOnlyError, StoreError, StoreFormatError, TSIMConfig, Turn

from ..conftest import WordEmbedder

WORDS = ["red", "blue", "green", "cat", "dog", "fish", "bread", "soup", "key", "code"]


def written(path: Path, config: TSIMConfig | None = None) -> Path:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    with EpisodicMemory(path, embedder=WordEmbedder(), config=config) as memory:
        for name in ("a", "b"):
            memory.thread(name).extend(
                Turn("user", f"{WORDS[i % 10]} {WORDS[i % 7]} {i} " * 9, timestamp=noon, metadata={"i": i})
                for i in range(60)
            )
    return path


def uses(memory: EpisodicMemory, out: Path) -> list[Callable[[], object]]:
    return [
        lambda: memory.recall("red cat", prefix=("a",)),
        lambda: memory.thread("b").episodes(),
        lambda: memory.export(out),
        memory.stats,
        lambda: memory.thread("a").add("user", "a new cat"),
        lambda: memory.thread("b").reconcile([Turn("user", "x"), Turn("user", "y")]),
        lambda: memory.thread("a").forget(["t3"]),
    ]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # damaged vectors hold any number
def test_bytes_overwritten_anywhere_are_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    whole = written(tmp_path / "m.db").read_bytes()
    place, said, unseen = random.Random(7), [], []
    for trial in range(40):
        bad, at = bytearray(whole), place.randrange(100, len(whole) - 2000)
        bad[at : at + 2000] = place.randbytes(2000) if trial % 2 else bytes(2000)
        path = tmp_path / f"{trial}.db"
        path.write_bytes(bad)
        try:
            memory = EpisodicMemory(path, embedder=WordEmbedder())
        except StoreFormatError as error:
            said.append(str(error))
            continue
        with memory:
            problems = memory.check()
            for use in uses(memory, tmp_path / "out.jsonl"):
                try:
                    use()
                except StoreError as error:
                    said.append(str(error))
                    unseen += [] if problems else [error]
                except InputError:  # a thread or turn whose name was overwritten
                    unseen += [] if problems else [path]
    assert len(said) > 20
    assert all("damaged" in text for text in said)
    assert unseen == [], "check tells of whatever is in the way"


def test_a_thread_that_is_whole_can_be_saved_from_a_damaged_file(tmp_path: Path) -> None:
    path = written(tmp_path / "m.db")
    with EpisodicMemory(path, embedder=WordEmbedder()) as memory:
        memory._store._db.execute("UPDATE turns SET text = x'ff' WHERE key >> 32 = 1")  # type: ignore[attr-defined]
        with pytest.raises(StoreFormatError, match=r"damaged.*tsim export"):
            memory.export(tmp_path / "all.jsonl")
        assert any(problem.startswith("thread a: ") for problem in memory.check())
        assert not any(problem.startswith("thread b: ") for problem in memory.check())
        assert memory.export(tmp_path / "b.jsonl", prefix=("b",)) == 60


@pytest.fixture
def modes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make permissions count for root as they do for anybody."""
    access = os.access

    def by_mode(path: Any, mode: int, **options: Any) -> bool:
        return access(path, mode, **options) and (mode != os.W_OK or bool(os.stat(path).st_mode & 0o200))

    monkeypatch.setattr("tsim_core.store.sqlite.os.access", by_mode)


@pytest.mark.usefixtures("modes_count")
def test_a_file_in_a_folder_that_is_not_writable_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    path = written(folder / "m.db")
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        with EpisodicMemory(path, embedder=WordEmbedder(), read_only=True) as memory:
            assert len(memory.thread("a")) == 60
            assert memory.recall("red cat", prefix=("a",)).episodes
            assert os.listdir(folder) == ["m.db"]
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize("mode", [0o644, 0o444])
@pytest.mark.usefixtures("modes_count")
def test_reading_leaves_what_it_found(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path / "m.db")
    path.chmod(mode)
    before = path.read_bytes()
    with EpisodicMemory(path, embedder=WordEmbedder(), read_only=True) as memory:
        assert memory.thread("a").recall("red cat").episodes
        with pytest.raises(ReadOnlyError):
            memory.thread("a").add("user", "x")
    assert path.read_bytes() == before
    if mode == 0o644:
        assert os.listdir(tmp_path) == ["m.db"]


@pytest.mark.usefixtures("modes_count")
def test_a_folder_that_is_not_writable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)

    def refused(*_: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    if os.geteuid() == 0:  # whom no mode stops
        monkeypatch.setattr("tsim_core.store.sqlite.SQLiteStore._connect", refused)
    try:
        with pytest.raises(ReadOnlyError, match=r"the folder .*locked.* is not writable"):
            EpisodicMemory(folder / "m.db", embedder=WordEmbedder())
    finally:
        folder.chmod(0o755)


def test_what_a_killed_writer_left_is_read(tmp_path: Path) -> None:
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        memory.thread("a").add("user", "red cat")
        for end in ("", "-wal"):
            shutil.copy(tmp_path / f"m.db{end}", tmp_path / f"copy.db{end}")
    with EpisodicMemory(tmp_path / "copy.db", embedder=WordEmbedder(), read_only=True) as memory:
        assert [turn.text for turn in memory.thread("a").turns()] == ["red cat"]
