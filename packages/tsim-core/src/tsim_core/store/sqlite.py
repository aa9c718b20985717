"""The store in one SQLite file."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from tsim_core.embedding import Vectors
from tsim_core.errors import ReadOnlyError, StoreError, StoreFormatError, StoreNotFoundError
from tsim_core.intake import content_digest
from tsim_core.labels import label_of
from tsim_core.store import blocks
from tsim_core.store.base import ClusterRow, SegmentRow, ThreadRow, TurnRow
from tsim_core.store.columns import Columns
from tsim_core.types import Turn

APPLICATION_ID = 0x5453494D  # "TSIM"
SCHEMA_VERSION = 2
BUSY_SECONDS = 30
CHUNK = 500  # below SQLite's limit of parameters in a statement

# A row key holds the thread in its upper half and the position in its lower: a thread's rows lie side by side on disk.
SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE threads (  -- AUTOINCREMENT: a number is never reused, so nobody takes a new thread for an old one
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, next INTEGER NOT NULL, epoch INTEGER NOT NULL,
  state TEXT NOT NULL);
CREATE TABLE turns (
  key INTEGER PRIMARY KEY, live INTEGER NOT NULL, id TEXT NOT NULL, role TEXT NOT NULL,
  timestamp TEXT, tokens REAL NOT NULL, digest INTEGER NOT NULL, content INTEGER NOT NULL,
  text NOT NULL, metadata TEXT);
CREATE UNIQUE INDEX turns_id ON turns (key >> 32, id);
CREATE INDEX turns_digest ON turns (digest);
CREATE INDEX turns_superseded ON turns (key) WHERE NOT live;
CREATE TABLE segments (
  key INTEGER PRIMARY KEY, last INTEGER NOT NULL, tokens REAL NOT NULL, cut TEXT NOT NULL, episode INTEGER NOT NULL,
  closed_at INTEGER, similarity REAL, threshold REAL, strength REAL);
CREATE TABLE checkpoints (key INTEGER PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE summaries (key INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE clusters (
  key INTEGER PRIMARY KEY, members TEXT NOT NULL, centroid BLOB NOT NULL, vector BLOB NOT NULL);
{blocks.SCHEMA}"""
KEYED = ("turns", "blocks", "segments", "checkpoints", "summaries", "clusters")
TURN_COLUMNS = "key, live, id, role, timestamp, tokens, digest, text, metadata"


def encode_name(name: Sequence[str]) -> str:
    """A namespace as one string, reversibly: ("team_a",) and ("team", "a") stay apart, and any text is allowed."""
    return json.dumps(list(name))


def _text(value: str) -> str | bytes:
    """Text as SQLite takes it; a lone surrogate is no UTF-8, so such text is kept as bytes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def _untext(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def _vector(blob: bytes) -> Vectors:
    return np.frombuffer(blob, dtype="<f4").astype(np.float32)


def _blob(vector: Vectors) -> bytes:
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


class SQLiteStore:
    """One SQLite file in WAL mode; ``:memory:`` for one that dies with the process.

    Args:
        path: The file. Created with its schema where it is missing, unless ``must_exist`` or ``read_only``.
        read_only: Refuse writes.
        must_exist: A missing file is an error.

    Raises:
        StoreNotFoundError: The file is missing and must exist, or its folder is missing.
        StoreFormatError: The file is no TSIM store, or from a newer version.
        StoreError: SQLite cannot open it.
    """

    def __init__(self, path: str, *, read_only: bool = False, must_exist: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        in_memory = path == ":memory:"
        if in_memory and read_only:
            raise StoreNotFoundError("a read-only memory needs a file: ':memory:' is always empty")
        if not in_memory:
            file = Path(path)
            if file.is_dir():
                raise StoreFormatError(f"{path} is a folder; give the path of a file")
            if not file.exists() and (must_exist or read_only):
                raise StoreNotFoundError(
                    f"there is no store at {path}; create one with `tsim ingest FILE --store {path} --thread NAME` "
                    "or EpisodicMemory(path)"
                )
            if not file.parent.is_dir():
                raise StoreNotFoundError(f"the folder of {path} does not exist; create it first")
        self._depth = 0
        try:
            with self._errors("open"):
                self._db = self._connect(path)
                self._prepare(in_memory)
                self._blocks = blocks.Blocks(self._db)
        except BaseException:
            if hasattr(self, "_db"):
                self._db.close()
            raise

    def _connect(self, path: str) -> sqlite3.Connection:
        if self.read_only:
            uri = f"{Path(path).absolute().as_uri()}?{self._read_mode(path)}"
            return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)

    @staticmethod
    def _read_mode(path: str) -> str:
        """How SQLite is to open a file that is only read, in the parameters of a URI."""
        folder_writable = os.access(Path(path).absolute().parent, os.W_OK)
        if folder_writable and os.access(path, os.W_OK):
            return "mode=rw"  # else it could not clear away its -wal and -shm files; query_only keeps it from writing
        if folder_writable or os.path.exists(path + "-wal"):
            return "mode=ro"  # sees what another process has in its WAL
        return "immutable=1"  # no files of a writer, and none can be made beside it

    def _prepare(self, in_memory: bool) -> None:
        db = self._db
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != APPLICATION_ID:
            raise StoreFormatError(f"{self.path} is an SQLite file but no TSIM store; give another path")
        if version > SCHEMA_VERSION:
            raise StoreFormatError(
                f"{self.path} has schema version {version}, this TSIM knows up to {SCHEMA_VERSION}; "
                "upgrade it (pip install -U tsim-core)"
            )
        if tables and version < SCHEMA_VERSION:
            raise StoreFormatError(
                f"{self.path} has schema version {version}, of before the first release, this TSIM knows "
                f"{SCHEMA_VERSION}; write it anew with `tsim ingest`"
            )
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA mmap_size = 1073741824")
        if self.read_only:
            db.execute("PRAGMA query_only = ON")
            if not tables:
                raise StoreFormatError(f"{self.path} is empty: no TSIM store was written to it")
            return
        if not tables:
            db.execute("PRAGMA page_size = 8192")
        if not in_memory:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
        if not tables:
            with self.transaction():
                (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
                if not tables:  # another process may have been quicker
                    for statement in SCHEMA.split(";"):
                        db.execute(statement)

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (json.JSONDecodeError, UnicodeDecodeError) as error:  # of what is stored: input was checked before
            raise self._damaged(str(error)) from error
        except sqlite3.DatabaseError as error:
            message = str(error)
            if "not a database" in message:
                raise StoreFormatError(f"{self.path} is no SQLite file, or its beginning is damaged") from error
            if "malformed" in message or "decode" in message:
                raise self._damaged(message) from error
            if "readonly" in message or "read-only" in message or "unable to open" in message:
                raise self._forbidden(message) from error
            if "locked" in message or "busy" in message:
                raise StoreError(
                    f"{self.path} stayed locked by another process for {BUSY_SECONDS} s; nothing was stored, try again"
                ) from error
            raise StoreError(f"could not {doing} {self.path}: {message}; nothing was stored") from error

    def _damaged(self, what: str) -> StoreFormatError:
        return StoreFormatError(
            f"{self.path} is damaged ({what}). Go back to a copy of it; where there is none, save the threads that can "
            f"still be read, each with: tsim export --store {self.path} --prefix THREAD --out FILE"
        )

    def _forbidden(self, message: str) -> StoreError:
        """The error of a file that SQLite may not open or write."""
        folder = Path(self.path).absolute().parent
        if self.read_only:
            return StoreError(
                f"{self.path} cannot be read: {message}. Its permissions, or those of the -wal and -shm files that a "
                "writer left beside it, are in the way: mend them, or copy all three to another folder"
            )
        if not os.access(folder, os.W_OK):
            cause = f"the folder {folder}, where SQLite keeps its log, is not writable"
        else:
            cause = message
        return ReadOnlyError(
            f"{self.path} cannot be written: {cause}; mend the permissions, or only read it, with read_only=True"
        )

    def reporting(self) -> AbstractContextManager[None]:
        """See `Store.reporting`."""
        return self._errors("read")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store.transaction`. Nested ones join the outer."""
        if self.read_only:
            raise ReadOnlyError(f"{self.path} was opened with read_only=True; open it without to write")
        with self._errors("write to"):
            if self._depth:
                yield
                return
            self._db.execute("BEGIN IMMEDIATE")
            self._depth = 1
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See `Store.snapshot`."""
        with self._errors("read"):
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("COMMIT")

    def close(self) -> None:
        """See `Store.close`."""
        self._db.close()

    # meta and threads

    def meta(self) -> dict[str, str]:
        """All settings."""
        return dict(self._db.execute("SELECT name, value FROM meta"))

    def set_meta(self, values: Mapping[str, str]) -> None:
        """Write settings."""
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def thread(self, name: Sequence[str]) -> ThreadRow | None:
        """The thread of that name."""
        rows = self._threads("WHERE name = ?", (encode_name(name),))
        return rows[0] if rows else None

    def threads(self, prefix: Sequence[str] = ()) -> list[ThreadRow]:
        """Threads whose namespace begins with ``prefix``, in the order of their creation."""
        if not prefix:
            return self._threads("ORDER BY id", ())
        exact = encode_name(prefix)
        start = exact[:-1] + ","
        return self._threads("WHERE name = ? OR substr(name, 1, ?) = ? ORDER BY id", (exact, len(start), start))

    def _threads(self, where: str, arguments: tuple[Any, ...]) -> list[ThreadRow]:
        rows = self._db.execute(f"SELECT id, name, next, epoch, state FROM threads {where}", arguments)
        return [ThreadRow(r[0], tuple(json.loads(r[1])), r[2], r[3], json.loads(r[4])) for r in rows]

    def put_thread(self, row: ThreadRow) -> ThreadRow:
        """See `Store.put_thread`."""
        values = (row.key or None, encode_name(row.name), row.next, row.epoch, json.dumps(row.state))
        cursor = self._db.execute("INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?)", values)
        return row if row.key else ThreadRow(cursor.lastrowid or 0, row.name, row.next, row.epoch, row.state)

    # turns and vectors

    def columns(self, thread: int, start: int = 0, superseded: bool = False) -> Iterator[Columns]:
        """See `Store.columns`."""
        out = np.zeros(0, dtype=np.int64)
        if not superseded:
            rows = self._db.execute(
                "SELECT key & 4294967295 FROM turns WHERE key BETWEEN ? AND ? AND NOT live", _range(thread)
            )
            out = np.fromiter((position for (position,) in rows), dtype=np.int64)
        for block in self._blocks.read(thread, start):
            yield block.taken(np.flatnonzero(~np.isin(block.positions, out))) if len(out) else block

    def turns(self, thread: int, positions: Sequence[int] | None = None) -> Iterator[TurnRow]:
        """See `Store.turns`."""
        if positions is None:
            cursor = self._db.execute(
                f"SELECT {TURN_COLUMNS} FROM turns WHERE key BETWEEN ? AND ? ORDER BY key", _range(thread)
            )
            for row in cursor:
                yield _turn_row(row)
            return
        for chunk in _chunks([_key(thread, p) for p in positions]):
            cursor = self._db.execute(
                f"SELECT {TURN_COLUMNS} FROM turns WHERE key IN ({_marks(chunk)}) ORDER BY key", chunk
            )
            for row in cursor.fetchall():
                yield _turn_row(row)

    def newest(self, thread: int, count: int | None = None) -> list[TurnRow]:
        """See `Store.newest`."""
        rows = self._db.execute(
            f"SELECT {TURN_COLUMNS} FROM turns WHERE key BETWEEN ? AND ? AND live ORDER BY key DESC LIMIT ?",
            (*_range(thread), -1 if count is None else count),
        ).fetchall()
        return [_turn_row(row) for row in reversed(rows)]

    def size(self, thread: int, superseded: bool = False) -> int:
        """See `Store.size`. Neither part reads the turns themselves."""
        every = self._blocks.size(thread)
        if superseded:
            return every
        out = self._db.execute("SELECT count(*) FROM turns WHERE key BETWEEN ? AND ? AND NOT live", _range(thread))
        return every - int(out.fetchone()[0])

    def outline(self, thread: int) -> list[tuple[int, str, str, int, int, bool]]:
        """See `Store.outline`."""
        rows = self._db.execute(
            "SELECT key & 4294967295, id, role, digest, content, live FROM turns "
            "WHERE key BETWEEN ? AND ? ORDER BY key",
            _range(thread),
        )
        return [(*row[:5], bool(row[5])) for row in rows]

    def find_ids(self, thread: int, ids: Sequence[str]) -> dict[str, int]:
        """Positions of the turns with these ids."""
        found: dict[str, int] = {}
        for chunk in _chunks(list(ids)):
            found.update(
                self._db.execute(
                    f"SELECT id, key & 4294967295 FROM turns WHERE key >> 32 = ? AND id IN ({_marks(chunk)})",
                    [thread, *chunk],
                ).fetchall()
            )
        return found

    def find_vectors(self, texts: Mapping[int, str]) -> dict[str, Vectors]:
        """See `Store.find_vectors`."""
        text_at: dict[int, str] = {}
        for chunk in _chunks(list(texts)):
            rows = self._db.execute(
                f"SELECT key, digest, text FROM turns WHERE digest IN ({_marks(chunk)}) GROUP BY digest", chunk
            )
            text_at |= {key: texts[digest] for key, digest, text in rows if _untext(text) == texts[digest]}
        return {text_at[key]: vector for key, vector in self._blocks.vectors(list(text_at)).items()}

    def put_turns(self, thread: int, rows: Iterable[TurnRow], columns: Columns) -> None:
        """See `Store.put_turns`."""
        records = []
        for row in rows:
            turn = row.turn
            records.append(
                (
                    _key(thread, row.position),
                    int(row.live),
                    turn.id,
                    turn.role,
                    turn.timestamp.isoformat() if turn.timestamp else None,
                    row.tokens,
                    row.digest,
                    content_digest(turn),
                    _text(turn.text),
                    _metadata(turn),
                )
            )
        self._db.executemany("INSERT OR REPLACE INTO turns VALUES (?,?,?,?,?,?,?,?,?,?)", records)
        self._blocks.put(thread, columns)

    def annotate(self, thread: int, turns: Mapping[int, Turn]) -> None:
        """See `Store.annotate`."""
        self._db.executemany(
            "UPDATE turns SET metadata = ?, content = ? WHERE key = ?",
            [(_metadata(t), content_digest(t), _key(thread, p)) for p, t in turns.items()],
        )
        self._blocks.relabel(thread, {position: label_of(turn) for position, turn in turns.items()})

    def move_turns(self, thread: int, moves: Mapping[int, int]) -> None:
        """See `Store.move_turns`."""
        pairs = [(_key(thread, new), _key(thread, old)) for old, new in moves.items()]
        self._db.executemany("UPDATE turns SET key = ? WHERE key = ?", pairs)
        self._blocks.move(thread, moves)

    def set_live(self, thread: int, positions: Sequence[int], live: bool) -> None:
        """Mark turns as live or superseded."""
        self._db.executemany(
            "UPDATE turns SET live = ? WHERE key = ?", [(int(live), _key(thread, p)) for p in positions]
        )

    def delete_turns(self, thread: int, positions: Sequence[int]) -> None:
        """Delete turns with all that is derived from them alone."""
        self._delete("turns", thread, positions)
        self._blocks.take(thread, positions)

    # segments, checkpoints and the views of the paper

    def segments(self, thread: int) -> list[SegmentRow]:
        """All segments in order."""
        rows = self._db.execute(
            "SELECT key & 4294967295, last, tokens, cut, episode, closed_at, similarity, threshold, strength "
            "FROM segments WHERE key BETWEEN ? AND ? ORDER BY key",
            _range(thread),
        ).fetchall()
        if any(None in row[:5] for row in rows):
            raise sqlite3.DatabaseError("the table of segments is malformed")
        return list(map(SegmentRow._make, rows))

    def put_segments(self, thread: int, rows: Iterable[SegmentRow]) -> None:
        """Insert or replace segments."""
        self._db.executemany(
            "INSERT OR REPLACE INTO segments VALUES (?,?,?,?,?,?,?,?,?)",
            [(_key(thread, row.start), *row[1:]) for row in rows],
        )

    def delete_segments(self, thread: int, starts: Sequence[int]) -> None:
        """Delete segments by their starts."""
        self._delete("segments", thread, starts)

    def checkpoints(self, thread: int) -> dict[int, dict[str, Any]]:
        """States by the position of the turn that was not yet taken."""
        rows = self._db.execute(
            "SELECT key & 4294967295, state FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key",
            _range(thread),
        )
        return {position: json.loads(state) for position, state in rows}

    def put_checkpoint(self, thread: int, position: int, state: Mapping[str, Any]) -> None:
        """Write a checkpoint."""
        self._db.execute(
            "INSERT OR REPLACE INTO checkpoints VALUES (?, ?)",
            (_key(thread, position), json.dumps(dict(state))),
        )

    def delete_checkpoints(self, thread: int, start: int) -> None:
        """See `Store.delete_checkpoints`."""
        self._db.execute("DELETE FROM checkpoints WHERE key BETWEEN ? AND ?", _range(thread, start))

    def summaries(self, thread: int) -> dict[int, Vectors]:
        """Summary vectors by the start of their episode."""
        rows = self._db.execute(
            "SELECT key & 4294967295, vector FROM summaries WHERE key BETWEEN ? AND ? ORDER BY key",
            _range(thread),
        )
        return {start: _vector(blob) for start, blob in rows}

    def put_summaries(self, thread: int, vectors: Mapping[int, Vectors]) -> None:
        """Insert or replace summary vectors."""
        self._db.executemany(
            "INSERT OR REPLACE INTO summaries VALUES (?, ?)",
            [(_key(thread, start), _blob(v)) for start, v in vectors.items()],
        )

    def clusters(self, thread: int) -> list[ClusterRow]:
        """All clusters of a thread."""
        rows = self._db.execute(
            "SELECT key & 4294967295, members, centroid, vector FROM clusters WHERE key BETWEEN ? AND ? ORDER BY key",
            _range(thread),
        )
        return [ClusterRow(n, tuple(json.loads(m)), _vector(c), _vector(v)) for n, m, c, v in rows]

    def put_clusters(self, thread: int, rows: Iterable[ClusterRow], gone: Sequence[int]) -> None:
        """Insert or replace clusters, and delete those whose numbers are ``gone``."""
        self._delete("clusters", thread, gone)
        self._db.executemany(
            "INSERT OR REPLACE INTO clusters VALUES (?, ?, ?, ?)",
            [(_key(thread, r.number), json.dumps(r.members), _blob(r.centroid), _blob(r.vector)) for r in rows],
        )

    def replace_views(self, thread: int, summaries: Mapping[int, Vectors], clusters: Sequence[ClusterRow]) -> None:
        """See `Store.replace_views`."""
        for table in ("summaries", "clusters"):
            self._db.execute(f"DELETE FROM {table} WHERE key BETWEEN ? AND ?", _range(thread))
        self.put_summaries(thread, summaries)
        self.put_clusters(thread, clusters, ())

    # upkeep

    def delete_thread(self, thread: int) -> None:
        """Delete a thread with all that is in it."""
        for table in KEYED:
            self._db.execute(f"DELETE FROM {table} WHERE key BETWEEN ? AND ?", _range(thread))
        self._db.execute("DELETE FROM threads WHERE id = ?", (thread,))

    def scrub(self) -> None:
        """See `Store.scrub`. secure_delete has overwritten the pages; what is left is the write-ahead log."""
        with self._errors("scrub"):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def counts(self) -> dict[str, int]:
        """Rows and bytes."""
        counts = {
            table: self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("threads", "turns", "segments", "summaries", "clusters")
        }
        counts["superseded"] = self._db.execute("SELECT count(*) FROM turns WHERE NOT live").fetchone()[0]
        (embedded,) = self._db.execute("SELECT ifnull(sum(embedded), 0) FROM blocks").fetchone()
        counts["vectors"] = embedded + counts["summaries"] + counts["clusters"]
        (pages,) = self._db.execute("PRAGMA page_count").fetchone()
        (size,) = self._db.execute("PRAGMA page_size").fetchone()
        counts["bytes"] = pages * size
        return counts

    def problems(self) -> list[str]:
        """See `Store.problems`."""
        with self._errors("check"):
            found = [row[0] for row in self._db.execute("PRAGMA integrity_check") if row[0] != "ok"]
            for table in KEYED:
                (orphans,) = self._db.execute(
                    f"SELECT count(*) FROM {table} WHERE key >> 32 NOT IN (SELECT id FROM threads)"
                ).fetchone()
                if orphans:
                    found.append(f"{orphans} rows of {table} belong to no thread")
            return found

    def _delete(self, table: str, thread: int, positions: Sequence[int]) -> None:
        self._db.executemany(f"DELETE FROM {table} WHERE key = ?", [(_key(thread, p),) for p in positions])


def _metadata(turn: Turn) -> str | None:
    return None if turn.metadata is None else json.dumps(dict(turn.metadata))


def _key(thread: int, position: int) -> int:
    return thread << 32 | position


def _range(thread: int, start: int = 0) -> tuple[int, int]:
    return _key(thread, start), _key(thread, 0xFFFFFFFF)


def _chunks(items: list[Any]) -> Iterator[list[Any]]:
    for at in range(0, len(items), CHUNK):
        yield items[at : at + CHUNK]


def _marks(items: Sequence[object]) -> str:
    return ",".join("?" * len(items))


def _turn_row(row: tuple[Any, ...]) -> TurnRow:
    key, live, id_, role, timestamp, tokens, digest, text, metadata = row
    try:
        turn = Turn(
            role=role,
            text=_untext(text),
            id=id_,
            timestamp=datetime.fromisoformat(timestamp) if timestamp else None,
            metadata=None if metadata is None else json.loads(metadata),
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise sqlite3.DatabaseError(f"the turn at {key & 0xFFFFFFFF} is malformed: {error}") from error
    return TurnRow(key & 0xFFFFFFFF, turn, tokens, digest, bool(live))
