"""Columns of turns in an SQLite table, in blocks: a thread is read by a few large rows and not by one for each turn.

A block holds turns that follow each other, superseded ones too. Blocks of a thread never overlap. What is appended is a
block of its own; small ones are joined when there are many, so that each turn is written twice at most as it ages.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tsim_core.embedding import Vectors
from tsim_core.labels import Labels
from tsim_core.store.columns import Columns

FULL = 1024  # turns of a block, at most
SCHEMA = """
CREATE TABLE blocks (  -- key: the thread in the upper half, the position of the first turn in the lower
  key INTEGER PRIMARY KEY, last INTEGER NOT NULL, size INTEGER NOT NULL, embedded INTEGER NOT NULL,
  names TEXT NOT NULL, rows BLOB NOT NULL, terms BLOB NOT NULL, vectors BLOB NOT NULL);
"""
_ROW = np.dtype(
    [("position", "<u4"), ("label", "<u4"), ("length", "<u4"), ("embedded", "?"), ("tokens", "<f8"), ("time", "<f8")]
)
_COLUMNS = "names, rows, terms, vectors, embedded"
_LOW = 0xFFFFFFFF


class Blocks:
    """The table of blocks. Writes happen within transactions that the caller opens.

    Args:
        db: The connection.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def size(self, thread: int) -> int:
        """Number of turns, superseded ones too."""
        sizes = self._db.execute(
            "SELECT ifnull(sum(size), 0) FROM blocks WHERE key BETWEEN ? AND ?", (thread << 32, thread << 32 | _LOW)
        )
        return int(sizes.fetchone()[0])

    def read(self, thread: int, start: int = 0) -> Iterator[Columns]:
        """Turns from ``start`` on, block by block."""
        cursor = self._db.execute(
            f"SELECT {_COLUMNS} FROM blocks WHERE key BETWEEN ? AND ? AND last >= ? ORDER BY key",
            (thread << 32, thread << 32 | _LOW, start),
        )
        for row in cursor:
            block = _columns(*row)
            yield block if block.positions[0] >= start else block.taken(np.flatnonzero(block.positions >= start))

    def put(self, thread: int, columns: Columns) -> None:
        """Insert turns, or replace those at the same positions."""
        if not len(columns):
            return
        place, inside = self._places(thread, columns.positions)
        for at in np.unique(place[inside]).tolist():
            block = self._block(at)
            kept = block.taken(np.flatnonzero(~np.isin(block.positions, columns.positions)))
            both = Columns.joined([kept, columns.taken(np.flatnonzero(inside & (place == at)))])
            self._drop([at])
            self._write(thread, both.taken(np.argsort(both.positions)))
        for at in np.unique(place[~inside]).tolist():  # between two blocks, or behind the last
            self._write(thread, columns.taken(np.flatnonzero(~inside & (place == at))))
        if columns.positions[0] // FULL != (columns.positions[-1] + 1) // FULL:  # once in so many turns
            self._join_small(thread)

    def take(self, thread: int, positions: Sequence[int]) -> list[Columns]:
        """Remove turns. Returns them, by block; positions that are not there are passed over."""
        wanted = np.array(sorted(positions), dtype=np.int64)
        place, inside = self._places(thread, wanted)
        taken = []
        for at in np.unique(place[inside]).tolist():
            block = self._block(at)
            out = np.isin(block.positions, wanted)
            taken.append(block.taken(np.flatnonzero(out)))
            self._drop([at])
            self._write(thread, block.taken(np.flatnonzero(~out)))
        return taken

    def move(self, thread: int, moves: Mapping[int, int]) -> None:
        """Give turns new positions, by the old ones."""
        taken = self.take(thread, list(moves))
        if taken:
            block = Columns.joined(taken)
            block = replace(block, positions=np.array([moves[p] for p in block.positions.tolist()], dtype=np.int64))
            self.put(thread, block.taken(np.argsort(block.positions)))

    def relabel(self, thread: int, labels: Mapping[int, str]) -> None:
        """Say anew who spoke, by position."""
        place, inside = self._places(thread, np.array(sorted(labels), dtype=np.int64))
        for at in np.unique(place[inside]).tolist():
            block = self._block(at)
            old = [block.labels[row] for row in range(len(block))]
            new = [labels.get(p, label) for p, label in zip(block.positions.tolist(), old, strict=True)]
            if new != old:
                self._drop([at])
                self._write(thread, replace(block, labels=Labels.of(new)))

    def vectors(self, keys: Sequence[int]) -> dict[int, Vectors]:
        """Vectors of turns of any threads, by key; those that have none are missing."""
        found: dict[int, Vectors] = {}
        block, newest, embedded = -1, -1, np.zeros(0, dtype=np.int64)  # the block at hand
        for key in sorted(keys):
            if key > newest:
                block, last, rows = self._db.execute(
                    "SELECT key, last, rows FROM blocks WHERE key <= ? ORDER BY key DESC LIMIT 1", (key,)
                ).fetchone() or (-1, -1, b"")
                table = np.frombuffer(rows, dtype=_ROW)
                newest, embedded = block & ~_LOW | last, table["position"][table["embedded"]]
            at = int(np.searchsorted(embedded, key & _LOW))
            if key <= newest and at < len(embedded) and embedded[at] == key & _LOW:
                with self._db.blobopen("blocks", "vectors", block, readonly=True) as blob:
                    width = len(blob) // len(embedded)
                    blob.seek(at * width)
                    found[key] = np.frombuffer(blob.read(width), dtype="<f4").astype(np.float32)
        return found

    def _places(self, thread: int, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Of each position the key of the block at or before it, -1 where there is none, and whether it is inside."""
        bounds = self._db.execute(
            "SELECT key, last FROM blocks WHERE key BETWEEN ? AND ? ORDER BY key", (thread << 32, thread << 32 | _LOW)
        ).fetchall()
        try:
            keys, lasts = np.array([(-1, -1), *bounds], dtype=np.int64).T
        except (TypeError, ValueError) as error:
            raise sqlite3.DatabaseError(f"the table of blocks is malformed: {error}") from error
        at = np.searchsorted(keys, positions | thread << 32, side="right") - 1
        return keys[at], positions <= lasts[at]

    def _block(self, key: int) -> Columns:
        return _columns(*self._db.execute(f"SELECT {_COLUMNS} FROM blocks WHERE key = ?", (key,)).fetchone())

    def _drop(self, keys: Sequence[int]) -> None:
        self._db.executemany("DELETE FROM blocks WHERE key = ?", [(key,) for key in keys])

    def _write(self, thread: int, columns: Columns) -> None:
        """Insert turns that lie in no block, in pieces that are full but for the last."""
        for start in range(0, len(columns), FULL):
            piece = columns.taken(np.arange(start, min(start + FULL, len(columns))))
            rows = np.empty(len(piece), dtype=_ROW)
            rows["position"], rows["label"], rows["length"] = piece.positions, piece.labels.numbers, piece.lengths
            rows["embedded"], rows["tokens"], rows["time"] = piece.embedded, piece.tokens, piece.timestamps
            self._db.execute(
                "INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    int(piece.positions[0]) | thread << 32,
                    int(piece.positions[-1]),
                    len(piece),
                    int(piece.embedded.sum()),
                    json.dumps(piece.labels.names),
                    rows.tobytes(),
                    piece.terms.astype("<u4").tobytes(),
                    piece.vectors.astype("<f4").tobytes(),
                ),
            )

    def _join_small(self, thread: int) -> None:
        """Make full blocks of the small ones at the end."""
        small = []
        for key, size in self._db.execute(
            "SELECT key, size FROM blocks WHERE key BETWEEN ? AND ? ORDER BY key DESC",
            (thread << 32, thread << 32 | _LOW),
        ):
            if size >= FULL // 2:
                break
            small.append(key)
        if len(small) > 1:
            joined = Columns.joined([self._block(key) for key in reversed(small)])
            self._drop(small)
            self._write(thread, joined)


def _columns(names: str, rows: bytes, terms: bytes, vectors: bytes, embedded: int) -> Columns:
    try:
        table = np.frombuffer(rows, dtype=_ROW)
        columns = Columns(
            table["position"].astype(np.int64),
            Labels(tuple(json.loads(names)), table["label"].astype(np.uint32)),
            table["tokens"].astype(np.float64),
            table["time"].astype(np.float64),
            table["length"].astype(np.int64),
            np.frombuffer(terms, dtype="<u4"),
            table["embedded"].view(np.uint8) != 0,
            np.frombuffer(vectors, dtype="<f4").reshape(embedded, -1) if embedded else np.zeros((0, 0), np.float32),
        )
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a block of columns is malformed: {error}") from error
    whole = columns.lengths.sum() == len(columns.terms) and columns.embedded.sum() == len(columns.vectors)
    ordered = np.all(np.diff(columns.positions) > 0)
    if not (whole and ordered and np.all(columns.labels.numbers < len(columns.labels.names))):
        raise sqlite3.DatabaseError("a block of columns is malformed: its parts do not fit each other")
    return columns
