"""Threads to a file of JSON lines and back.

The first line names the format and the embedder; then comes a line a thread, each followed by a line a turn. Vectors
are not written: they are made anew on import, so that a file moves between embedders.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsim_core.errors import ReaderError, StoreNotFoundError
from tsim_core.intake import prepare
from tsim_core.readers import parse_time
from tsim_core.types import Turn

if TYPE_CHECKING:
    from tsim_core.memory import EpisodicMemory, Progress

FORMAT = 1


def export(memory: EpisodicMemory, path: str, prefix: tuple[str, ...] = ()) -> int:
    """Write threads to ``path``; see `EpisodicMemory.export`. The file appears only when it is whole."""
    target = Path(path)
    if not target.parent.is_dir():
        raise StoreNotFoundError(f"the folder of {path} does not exist; create it first")
    count = 0
    part = target.with_name(target.name + ".part")
    with memory._guard(), part.open("w", encoding="utf-8") as out:
        out.write(json.dumps({"tsim": FORMAT, "embedder": memory.embedder.name}) + "\n")
        for row in memory._store.threads(prefix):
            out.write(json.dumps({"thread": list(row.name)}) + "\n")
            for turn_row in memory._store.turns(row.key):
                if turn_row.live:
                    out.write(json.dumps(turn_dict(turn_row.turn)) + "\n")
                    count += 1
    os.replace(part, target)
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
                stored, total = 0, sum(map(len, threads.values()))
                for name, turns in threads.items():
                    memory.thread(*name)._insert(turns, ready, going_on(progress, stored, total))
                    stored += len(turns)
        except BaseException:
            for name in threads:  # rolled back together, threads that went in as well
                memory._drop(name)
            raise
    return sum(map(len, threads.values()))


def going_on(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Progress of a part, told as that of the whole."""
    return None if progress is None else lambda done, _: progress(before + done, total)


def _read(path: str) -> dict[tuple[str, ...], list[Turn]]:
    threads: dict[tuple[str, ...], list[Turn]] = {}
    current: list[Turn] | None = None
    for number, data in _objects(path):
        where = f"{path}, line {number}"
        if number == 1:
            if data.get("tsim") != FORMAT:
                raise ReaderError(f'{where}: not an export of this version of TSIM (expected "tsim": {FORMAT})')
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
    return threads


def _objects(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    data = json.loads(line)
                except json.JSONDecodeError as error:
                    raise ReaderError(f"{path}, line {number}: {error.msg}") from error
                if not isinstance(data, dict):
                    raise ReaderError(f"{path}, line {number}: expected an object")
                yield number, data
    except FileNotFoundError:
        raise ReaderError(f"{path} does not exist") from None
    except UnicodeDecodeError as error:
        raise ReaderError(f"{path} is not UTF-8") from error
