"""Threads to a file of JSON lines and back.

The first line names the format and the embedder; then comes a line a thread, each followed by a line a turn. Vectors
are not written: they are made anew on import, so that a file moves between embedders.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tsim_core.errors import ReaderError, StoreError, StoreNotFoundError
from tsim_core.intake import prepare
from tsim_core.readers import parse_time
from tsim_core.types import Turn

if TYPE_CHECKING:
    from tsim_core.memory import EpisodicMemory, Progress

FORMAT = 1
NO_EXPORT = "this is no file that export wrote; `tsim ingest` reads transcripts"


def export(memory: EpisodicMemory, path: str, prefix: tuple[str, ...] = ()) -> int:
    """Write threads to ``path``; see `EpisodicMemory.export`. The file appears only when it is whole."""
    target = Path(path)
    if not target.parent.is_dir():
        raise StoreNotFoundError(f"the folder of {path} does not exist; create it first")
    part = target.with_name(target.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as out:
            count = _write(memory, out, prefix)
        os.replace(part, target)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}; choose another place or mend its permissions"
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return count


def _write(memory: EpisodicMemory, out: TextIO, prefix: tuple[str, ...]) -> int:
    count = 0
    with memory._guard():
        out.write(json.dumps({"tsim": FORMAT, "embedder": memory.embedder.name}) + "\n")
        for row in memory._store.threads(prefix):
            out.write(json.dumps({"thread": list(row.name)}) + "\n")
            for turn_row in memory._store.turns(row.key):
                if turn_row.live:
                    out.write(json.dumps(turn_dict(turn_row.turn)) + "\n")
                    count += 1
    return count


def turn_dict(turn: Turn) -> dict[str, Any]:
    """A turn as JSON data, without what is None."""
    data = {
        "id": turn.id,
        "role": turn.role,
        "text": turn.text,
        "timestamp": turn.timestamp.isoformat() if turn.timestamp else None,
        "metadata": None if turn.metadata is None else dict(turn.metadata),
    }
    return {name: value for name, value in data.items() if value is not None}


def import_(memory: EpisodicMemory, path: str, progress: Progress | None = None) -> int:
    """Read a file that `export` wrote, in one transaction; see `EpisodicMemory.import_`."""
    threads = {name: prepare(turns) for name, turns in _read(path).items()}
    texts = [p.turn.text for turns in threads.values() for p in turns if p.turn.text.strip()]
    vectors = memory.embed_turns(texts, progress) if texts else ()
    ready = dict(zip(texts, vectors, strict=True))
    with memory._guard():
        try:
            with memory._store.transaction():
                added, stored, total = 0, 0, sum(map(len, threads.values()))
                for name, turns in threads.items():
                    before = _size(memory, name)
                    memory.thread(*name)._insert(turns, ready, going_on(progress, stored, total))
                    added += _size(memory, name) - before
                    stored += len(turns)
        except BaseException:
            for name in threads:  # rolled back together, threads that went in as well
                memory._drop(name)
            raise
    return added


def _size(memory: EpisodicMemory, name: tuple[str, ...]) -> int:
    """Number of turns of a thread, superseded ones too."""
    row = memory._store.thread(name)
    return 0 if row is None else memory._store.size(row.key, superseded=True)


def going_on(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Progress of a part, told as that of the whole."""
    return None if progress is None else lambda done, _: progress(before + done, total)


def _read(path: str) -> dict[tuple[str, ...], list[Turn]]:
    threads: dict[tuple[str, ...], list[Turn]] = {}
    current: list[Turn] | None = None
    number = 0
    for number, data in _objects(path):
        where = f"{path}, line {number}"
        if number == 1:
            if "tsim" not in data:
                raise ReaderError(f"{where}: {NO_EXPORT}")
            if data["tsim"] != FORMAT:
                raise ReaderError(
                    f"{where}: format {data['tsim']}, this TSIM reads {FORMAT}; use the one that wrote it"
                )
        elif "thread" in data:
            current = threads.setdefault(tuple(data["thread"]), [])
        elif current is None:
            raise ReaderError(f"{where}: a turn before any thread")
        else:
            try:
                current.append(
                    Turn(
                        data["role"],
                        data["text"],
                        data["id"],
                        parse_time(data.get("timestamp"), where),
                        data.get("metadata"),
                    )
                )
            except KeyError as error:
                raise ReaderError(f"{where}: the turn has no {error}") from None
    if not number:
        raise ReaderError(f"{path} is empty; {NO_EXPORT}")
    return threads


def _objects(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    data = json.loads(line)
                except json.JSONDecodeError as error:
                    what = error.msg if number > 1 else NO_EXPORT
                    raise ReaderError(f"{path}, line {number}: {what}") from error
                if not isinstance(data, dict):
                    raise ReaderError(f"{path}, line {number}: expected an object")
                yield number, data
    except FileNotFoundError:
        raise ReaderError(f"{path} does not exist") from None
    except OSError as error:
        raise ReaderError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ReaderError(f"{path} is not UTF-8; {NO_EXPORT}") from error
