"""Embeddings shared by all systems of a run: a text is embedded once, and its cost is charged to all who use it."""

from __future__ import annotations

import hashlib
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from time import perf_counter

import numpy as np
from tsim_core.embedding import Embedder, Vectors, embed_checked

BATCH = 256  # texts between two progress reports and commits


@dataclass(slots=True)
class Stopwatch:
    """Seconds of one timed block, with embedding at its measured price."""

    seconds: float = 0.0


class CachedEmbedder:
    """Wraps an embedder so that no text is embedded twice, across systems and runs, and timings stay honest.

    The seconds that the model took for a text are stored with its vector. `timed` takes the time that a block spent
    in here out of the clock and charges the stored price instead: a system that finds all its vectors in the cache is
    timed as if it had computed them.

    Args:
        model: The embedder.
        path: A SQLite file that keeps the vectors between runs; in memory when None. Keys are hashes of the model's
            name and the text, so one file may hold several models.
        on_progress: Called with the number of texts that the model has just embedded.
    """

    def __init__(
        self, model: Embedder, path: Path | None = None, on_progress: Callable[[int], None] | None = None
    ) -> None:
        self._model = model
        self.on_progress = on_progress
        self.charged = 0.0
        self.spent = 0.0
        self._lock = RLock()  # peers embed from worker threads
        self._warm = False
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(str(path) if path else ":memory:", check_same_thread=False, timeout=60)
        weakref.finalize(self, self._db.close)  # Python 3.13 warns of a database that is left open
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, seconds REAL NOT NULL)"
        )

    @property
    def name(self) -> str:
        """Identity of the model."""
        return self._model.name

    @property
    def dimension(self) -> int:
        """Width of a vector."""
        return self._model.dimension

    @property
    def max_tokens(self) -> int | None:
        """Window of the model."""
        return self._model.max_tokens

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch; see `tsim_core.embedding.Embedder.embed`. Equal texts are charged once a call."""
        with self._lock:
            start = perf_counter()
            keys = {text: self._key(text) for text in dict.fromkeys(texts)}
            found = self._read(list(keys.values()))
            missing = [text for text, key in keys.items() if key not in found]
            for at in range(0, len(missing), BATCH):
                batch = missing[at : at + BATCH]
                found.update(self._embed(batch, [keys[text] for text in batch]))
                if self.on_progress:
                    self.on_progress(len(batch))
            self.charged += sum(found[key][1] for key in keys.values())
            vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
            for row, text in enumerate(texts):
                vectors[row] = found[keys[text]][0]
            self.spent += perf_counter() - start
            return vectors

    @contextmanager
    def timed(self) -> Iterator[Stopwatch]:
        """Time a block; see the class."""
        watch = Stopwatch()
        start, charged, spent = perf_counter(), self.charged, self.spent
        yield watch
        watch.seconds = perf_counter() - start - (self.spent - spent) + (self.charged - charged)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _key(self, text: str) -> bytes:
        identity = f"{self._model.name}\0{self._model.dimension}\0{text}"
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()

    def _read(self, keys: list[bytes]) -> dict[bytes, tuple[Vectors, float]]:
        found: dict[bytes, tuple[Vectors, float]] = {}
        for at in range(0, len(keys), 500):
            part = keys[at : at + 500]
            marks = ",".join("?" * len(part))
            rows = self._db.execute(f"SELECT key, vector, seconds FROM vectors WHERE key IN ({marks})", part)
            for key, blob, seconds in rows:
                found[key] = (np.frombuffer(blob, dtype="<f4"), seconds)
        return found

    def _embed(self, texts: list[str], keys: list[bytes]) -> dict[bytes, tuple[Vectors, float]]:
        if not self._warm:  # loading the model is no text's cost
            embed_checked(self._model, texts[:1])
            self._warm = True
        start = perf_counter()
        vectors = embed_checked(self._model, texts)
        seconds = perf_counter() - start
        letters = sum(map(len, texts))
        made = {
            key: (vector, seconds * len(text) / letters) for key, vector, text in zip(keys, vectors, texts, strict=True)
        }
        with self._db:
            self._db.executemany(
                "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)",
                [(key, vector.astype("<f4").tobytes(), cost) for key, (vector, cost) in made.items()],
            )
        return made
