"""EpisodicMemory: the facade over one store."""

from __future__ import annotations

import asyncio
import json
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from os import PathLike, fspath
from types import TracebackType
from typing import Any

import numpy as np

from tsim_core.config import TSIMConfig
from tsim_core.embedding import Embedder, EmbedderLike, Vectors, embed_checked, resolve_embedder
from tsim_core.errors import InputError, StoreClosedError, StoreError, StoreFormatError, StoreMismatchError
from tsim_core.lexical import ANALYSIS_VERSION
from tsim_core.recall import DEFAULT, Filter, Limit, recall_from
from tsim_core.scale import Scale, scale_of
from tsim_core.store import open_store
from tsim_core.store.base import ThreadRow
from tsim_core.thread import Thread
from tsim_core.threads import ThreadIndex
from tsim_core.types import Recall
from tsim_core.writer import ThreadWriter

Progress = Callable[[int, int], None]
"""Called with the number of turns done and their total; where they are written, as they are embedded and then again as
they are stored."""

EMBED_BATCH = 256  # texts between two reports of progress


class EpisodicMemory:
    """Long-term memory of chat threads: whole episodes, found again by what they say.

    One memory serves many threads of execution. Several processes may open the same file; one writes at a time.

    Args:
        location: Path of an SQLite file, created where it is missing; ":memory:" for one that is never written.
        embedder: What embeds turns and queries; see `tsim_core.embedding.resolve_embedder`. It must be the one that the
            store was written with.
        config: Configuration; what the store was written with when None, and the default for a new store.
        read_only: Refuse writes. Needs a store that exists.
        create: Whether a missing file is created; if not, it is an error.

    Raises:
        StoreNotFoundError: There is no store, and none may be created.
        StoreFormatError: The file is no TSIM store, or from a newer version.
        StoreMismatchError: The store was written with another embedder, or with another segmentation than ``config``.

    Example:
        >>> with EpisodicMemory() as memory:
        ...     thread = memory.thread("alice", "support")
        ...     _ = thread.add("user", "New projects run on a single consumer GPU.")
        ...     recall = thread.recall("Which GPU may I use?")
        ...     recall.episodes[0].turns[0].text
        'New projects run on a single consumer GPU.'
    """

    def __init__(
        self,
        location: str | PathLike[str] = ":memory:",
        *,
        embedder: EmbedderLike = None,
        config: TSIMConfig | None = None,
        read_only: bool = False,
        create: bool = True,
        _renew: bool = False,
    ) -> None:
        self.location = fspath(location)
        self.read_only = read_only
        self._lock = threading.RLock()  # guards the store and the indices
        self._writing: dict[tuple[str, ...], threading.RLock] = {}
        self._indices: dict[tuple[str, ...], ThreadIndex] = {}
        self._writers: dict[tuple[str, ...], ThreadWriter] = {}
        self._closed = False
        self._embedder = resolve_embedder(embedder)
        self._store = open_store(self.location, read_only=read_only, must_exist=not create)
        try:
            with self._store.reporting():
                self._config = self._agree(config, _renew)
        except BaseException:
            self._store.close()
            raise
        weakref.finalize(self, self._store.close)  # adapters hold memories that nobody closes

    def _agree(self, config: TSIMConfig | None, renew: bool) -> TSIMConfig:
        """Check that embedder and configuration are those of the store; write them into a new one.

        With ``renew`` nothing is checked: all that they shaped is about to be made anew.
        """
        meta = self._store.meta()
        if not meta:
            if self.read_only:
                raise StoreFormatError(f"{self.location} holds no memory yet; write to it first")
            config = config or TSIMConfig.default()
            self.scale = scale_of(self._embedder)
            with self._store.transaction():
                self._store.set_meta(self._identity(config))
            return config
        if renew:
            self.scale = scale_of(self._embedder)
            return config or TSIMConfig.from_dict(json.loads(meta["config"]))
        name, dimension = meta["embedder"], int(meta["dimension"])
        if (name, dimension) != (self._embedder.name, self._embedder.dimension):
            raise StoreMismatchError(
                f"{self.location} was written with the embedder {name!r} ({dimension} dimensions), this memory has "
                f"{self._embedder.name!r} ({self._embedder.dimension}). Pass the first as embedder=, or embed it anew: "
                f"tsim reindex --store {self.location} --embedder {self._embedder.name}"
            )
        if int(meta["analysis"]) != ANALYSIS_VERSION:
            raise StoreMismatchError(
                f"{self.location} was written with version {meta['analysis']} of the text analysis, this TSIM has "
                f"{ANALYSIS_VERSION}: tsim reindex --store {self.location}"
            )
        self.scale = Scale(*json.loads(meta["scale"]))
        stored = TSIMConfig.from_dict(json.loads(meta["config"]))
        if config is not None and config.written() != stored.written():
            differ = [n for n, v in config.written().items() if v != stored.written()[n]]
            raise StoreMismatchError(
                f"{self.location} was written with another configuration of {', '.join(differ)}. Leave config= out to "
                "go on with the stored one, or segment it anew: EpisodicMemory.reindex(path, config=...)"
            )
        return config or stored

    def _identity(self, config: TSIMConfig) -> dict[str, str]:
        return {
            "embedder": self._embedder.name,
            "dimension": str(self._embedder.dimension),
            "analysis": str(ANALYSIS_VERSION),
            "scale": json.dumps([self.scale.unrelated, self.scale.related]),
            "config": json.dumps(config.to_dict(), sort_keys=True),
        }

    @property
    def config(self) -> TSIMConfig:
        """The configuration in force."""
        return self._config

    @property
    def embedder(self) -> Embedder:
        """What embeds turns and queries."""
        return self._embedder

    # threads and recall

    def thread(self, *name: str) -> Thread:
        """The thread of that namespace; it comes into being with its first turn.

        Args:
            name: One or more non-empty strings, any text, such as ``"alice", "support"``.

        Raises:
            InputError: If there is none, or one is empty or no string.
        """
        return Thread(self, check_name(name))

    def threads(self, prefix: Sequence[str] = ()) -> list[tuple[str, ...]]:
        """Names of the stored threads that begin with ``prefix``, in the order of their creation."""
        with self._guard():
            return [row.name for row in self._store.threads(tuple(prefix))]

    def recall(
        self,
        query: str,
        *,
        prefix: Sequence[str],
        k: Limit = DEFAULT,
        max_tokens: Limit = DEFAULT,
        after: datetime | None = None,
        before: datetime | None = None,
        where: Mapping[str, Any] | None = None,
        exclude: Mapping[tuple[str, ...], Collection[str]] | None = None,
        query_vector: Vectors | None = None,
    ) -> Recall:
        """Recall over all threads whose name begins with ``prefix``, ranked jointly.

        Args:
            query: What to look for.
            prefix: At least one name, such as ``("alice",)``: it keeps users apart.
            k: See `Thread.recall`.
            max_tokens: See `Thread.recall`.
            after: See `Thread.recall`.
            before: See `Thread.recall`.
            where: See `Thread.recall`.
            exclude: Ids of turns to leave out, by the name of their thread.
            query_vector: See `Thread.recall`.

        Raises:
            InputError: If ``prefix`` is empty, or a limit is not usable.
        """
        prefix = check_name(prefix)
        return self._recall(
            query,
            lambda: self._store.threads(prefix),
            k,
            max_tokens,
            Filter(after, before, where, exclude or {}),
            query_vector,
        )

    def _recall(
        self,
        query: str,
        rows: Callable[[], list[ThreadRow]],
        k: Limit,
        max_tokens: Limit,
        filter_: Filter,
        query_vector: Vectors | None,
    ) -> Recall:
        if not isinstance(query, str):
            raise InputError(f"the query is {type(query).__name__}; expected text")
        if not query.strip():
            with self._guard():
                return Recall(query, (), "", 0)
        if query_vector is None:
            query_vector = self.embed([query])[0]
        with self._reading():
            indices = [self._index(row) for row in rows()]
            return recall_from(self._store, self._config, query, query_vector, indices, k, max_tokens, filter_)

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Embed texts in batches, equal ones once; see `tsim_core.embedding.embed_checked`."""
        if progress is None:
            return embed_checked(self._embedder, texts)
        row = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        unique, vectors = list(row), np.empty((len(row), self._embedder.dimension), dtype=np.float32)
        for at in range(0, len(unique), EMBED_BATCH):
            batch = unique[at : at + EMBED_BATCH]
            vectors[at : at + len(batch)] = embed_checked(self._embedder, batch)
            progress(at + len(batch), len(unique))
        return vectors if len(row) == len(texts) else vectors[[row[text] for text in texts]]

    def embed_turns(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Embed what turns say; see `TSIMConfig.said`."""
        return self.embed([self._config.said(text) for text in texts], progress)

    # what the threads work with

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """One at a time, on an open store."""
        with self._lock:
            if self._closed:
                raise StoreClosedError(f"the memory at {self.location} is closed; open a new one")
            with self._store.reporting():
                yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """One state of the store throughout, whatever other processes write."""
        with self._guard(), self._store.snapshot():
            yield

    def _write_lock(self, name: tuple[str, ...]) -> threading.RLock:
        with self._lock:
            return self._writing.setdefault(name, threading.RLock())

    def _index(self, row: ThreadRow) -> ThreadIndex:
        """The index of a thread, in line with the store."""
        index = self._indices.get(row.name)
        if index is None or index.key != row.key or index.epoch != row.epoch:
            index = ThreadIndex.load(self._store, row, self._embedder.dimension)
            self._indices[row.name] = index
        elif index.next < row.next:
            index.read_on(self._store, row)
        return index

    def _writer(self, row: ThreadRow) -> ThreadWriter:
        """What writes to a thread, in line with the store."""
        writer = self._writers.get(row.name)
        if writer is None or not writer.continues(row):
            writer = ThreadWriter(self._store, row, self._index(row), self._config, self.scale, self.embed)
        return writer

    def _keep(self, name: tuple[str, ...], writer: ThreadWriter) -> None:
        self._writers[name], self._indices[name] = writer, writer.index

    def _drop(self, name: tuple[str, ...]) -> None:
        self._writers.pop(name, None)
        self._indices.pop(name, None)

    # upkeep

    def export(self, path: str | PathLike[str], prefix: Sequence[str] = ()) -> int:
        """Write threads to a file of JSON lines; see `tsim_core.transfer`. Returns the number of turns."""
        from tsim_core.transfer import export

        return export(self, fspath(path), tuple(prefix))

    def import_(self, path: str | PathLike[str], progress: Progress | None = None) -> int:
        """Read a file that `export` wrote; turns are embedded and segmented here.

        Returns:
            Number of turns added; those that were here already are passed over.

        Raises:
            ReaderError: If a line is malformed; nothing is stored then.
            DuplicateTurnError: If a turn's id is taken by other content.
        """
        from tsim_core.transfer import import_

        return import_(self, fspath(path), progress)

    @classmethod
    def reindex(
        cls,
        location: str | PathLike[str],
        *,
        embedder: EmbedderLike = None,
        config: TSIMConfig | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Embed, segment and link all of a store anew, with another embedder or configuration. All or nothing.

        Args:
            location: Path of the store. No memory should have it open.
            embedder: The embedder to go on with.
            config: The configuration to go on with; the stored one when None.
            progress: Called as turns are embedded.

        Returns:
            Number of turns.
        """
        from tsim_core.maintenance import reindex

        with cls(location, embedder=embedder, config=config, create=False, _renew=True) as memory:
            return reindex(memory, progress)

    def check(self, progress: Progress | None = None) -> list[str]:
        """What is wrong with the store or with the indices against it; empty when all is well.

        Args:
            progress: Called with the number of turns looked at and their total.
        """
        from tsim_core.maintenance import check

        return check(self, progress)

    def stats(self) -> dict[str, Any]:
        """Numbers of threads, turns, episodes and vectors, the embedder's name, and bytes on disk.

        Summaries and clusters are told of where the configuration has such views.
        """
        with self._guard():
            counts = self._store.counts()
            views = {name: counts[name] for name in ("summaries", "clusters") if self._config.views is not None}
            return {
                "threads": counts["threads"],
                "turns": counts["turns"] - counts["superseded"],
                "superseded": counts["superseded"],
                "episodes": sum(
                    len({s.episode for s in self._store.segments(row.key)}) for row in self._store.threads()
                ),
                "segments": counts["segments"],
                **views,
                "vectors": counts["vectors"],
                "embedder": self._embedder.name,
                "dimension": self._embedder.dimension,
                "bytes": counts["bytes"],
            }

    def close(self) -> None:
        """Close the store. Harmless when done twice; everything that was added is already safe."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._indices.clear()
                self._store.close()

    def __enter__(self) -> EpisodicMemory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"EpisodicMemory({self.location!r}, embedder={self._embedder.name!r})"

    async def arecall(self, query: str, *, prefix: Sequence[str], **options: Any) -> Recall:
        """Async twin of `recall`."""
        return await asyncio.to_thread(self.recall, query, prefix=prefix, **options)

    async def aclose(self) -> None:
        """Async twin of `close`."""
        await asyncio.to_thread(self.close)

    async def __aenter__(self) -> EpisodicMemory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def check_name(name: Sequence[str]) -> tuple[str, ...]:
    """A namespace as a tuple.

    Raises:
        InputError: If it is empty, or one of its parts is empty or no string.
    """
    if isinstance(name, str):
        raise InputError(f"{name!r} is one string; a namespace is a sequence of them, such as ({name!r},)")
    parts = tuple(name)
    if not parts:
        raise InputError("a thread needs a name: one or more non-empty strings, such as 'alice', 'support'")
    for part in parts:
        if not isinstance(part, str):
            raise InputError(f"{part!r} in the thread name {parts!r} is {type(part).__name__}; expected text")
        if not part:
            raise InputError(f"the thread name {parts!r} holds an empty string")
    return parts


__all__ = ["EpisodicMemory", "Progress", "StoreError", "check_name"]
