"""The append-only file that keeps a run's questions until its results are written."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from scale_qa.errors import RunError


class Journal:
    """Rows and finished batches of a run, a JSON line each, flushed one by one.

    Use `open`. A last line that was broken off in writing is dropped; anything else that is no line of a journal is
    an error.
    """

    def __init__(self, path: Path, file: IO[str]) -> None:
        self._path = path
        self._file = file
        self._rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        self._batches: dict[tuple[str, str], dict[str, Any]] = {}
        self._begun: dict[str, str] = {}

    @classmethod
    def open(cls, path: Path, identity: Mapping[str, Any], fresh: bool = False) -> Journal:
        """Start a journal, or go on with the one that is there.

        Args:
            path: The file.
            identity: What makes two runs the same: only then the old rows count.
            fresh: Start anew whatever is there.

        Raises:
            RunError: If the file belongs to another run, or is no journal.
        """
        lines: list[dict[str, Any]] = []
        if path.exists() and not fresh:
            raw = path.read_bytes()
            whole = raw[: raw.rfind(b"\n") + 1]
            try:
                lines = [json.loads(line) for line in whole.splitlines()]
            except (UnicodeDecodeError, json.JSONDecodeError) as error:
                raise RunError(f"{path} is no journal of a run ({error}); delete it or pass --fresh") from error
            if lines and lines[0].get("identity") != identity:
                raise RunError(
                    f"{path} holds a broken-off run of another package or with other settings; finish that one, "
                    "choose another --out, or pass --fresh to drop it"
                )
            if len(whole) < len(raw):
                path.write_bytes(whole)
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a" if lines else "w", encoding="utf-8", newline="\n")
        journal = cls(path, file)
        if not lines:
            journal._write({"identity": dict(identity)})
        for line in lines[1:]:
            if "begun" in line:
                journal.begin(line["system"], line["begun"], again=True)
                continue
            key = (line["system"], line["batch"])
            if "row" in line:
                journal._rows[key].append(line["row"])
            else:
                journal._batches[key] = line["finished"]
        return journal

    def begin(self, system: str, code: str, again: bool = False) -> bool:
        """Begin or go on with a system: rows that were measured by other code are dropped.

        Args:
            system: Its name.
            code: Fingerprint of its code.
            again: Whether the line is in the file already.

        Returns:
            Whether rows were dropped.
        """
        if self._begun.get(system) == code:
            return False
        stale = [key for key in (*self._rows, *self._batches) if key[0] == system]
        for key in stale:
            self._rows.pop(key, None)
            self._batches.pop(key, None)
        self._begun[system] = code
        if not again:
            self._write({"system": system, "begun": code})
        return bool(stale)

    def rows(self, system: str, batch: str) -> list[dict[str, Any]]:
        """The rows so far, in the order of the questions."""
        return list(self._rows[system, batch])

    def finished(self, system: str, batch: str) -> dict[str, Any] | None:
        """The facts of a batch that was finished; None for one that was not."""
        return self._batches.get((system, batch))

    def add_row(self, system: str, batch: str, row: dict[str, Any]) -> None:
        """Keep the outcome of one question."""
        self._rows[system, batch].append(row)
        self._write({"system": system, "batch": batch, "row": row})

    def finish_batch(self, system: str, batch: str, facts: dict[str, Any]) -> None:
        """Keep what is only known at the end of a batch."""
        self._batches[system, batch] = facts
        self._write({"system": system, "batch": batch, "finished": facts})

    def remove(self) -> None:
        """Delete the file: its run is written."""
        self._file.close()
        self._path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()
