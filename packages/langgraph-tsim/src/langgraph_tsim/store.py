"""TSIM as the long-term store of a graph."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from os import PathLike
from types import TracebackType
from typing import Any, cast
from uuid import uuid4

import numpy as np
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
)
from tsim_core import CallableEmbedder, Embedder, EpisodicMemory, InputError, TSIMConfig, Turn
from tsim_core.embedding import EmbedderLike, Vectors, unit_rows
from tsim_core.ranking import PublishedRanking
from tsim_core.views import PublishedViews

from langgraph_tsim.filters import matches, namespace_matches
from langgraph_tsim.items import FIELD, ITEM, Name, Record, thread_name
from langgraph_tsim.scope import STORE_ROOT

ITEMS = TSIMConfig.paper().replace(
    ranking=PublishedRanking(k_r=1, k_s=0, k_l=0, w_r=1.0, lambda_sem=0.0),
    views=PublishedViews(summary_chars=1, cluster_members=1),  # not ranked by, hence as small as can be
)
"""An item scores by the cosine of the best of its indexed texts, as in LangGraph's own stores."""

ALL = 1_000_000_000  # episodes: no limit


class TSIMStore(BaseStore):
    """Keeps a graph's items in a TSIM store: semantic search out of the box, one file, many processes.

    Every item is a thread of the memory, beside the conversations and out of their recall: a turn with the value, and a
    turn for each indexed text.

    Args:
        memory: Location of the store (":memory:" for one that is never written), or a memory that is open already,
            whose embedder and ranking are used then.
        index: As for LangGraph's ``InMemoryStore``: ``embed`` (LangChain embeddings, a function, or what `tsim_core`
            takes as an embedder) and ``fields`` to index. The default embedder and the whole value where left out.
        ttl: How long items live; expired ones are never returned, and `sweep_ttl` deletes them.

    Raises:
        InputError: If both an open memory and an embedder are given.
        StoreError: If the store cannot be opened.

    Example:
        >>> store = TSIMStore()
        >>> store.put(("alice", "notes"), "1", {"text": "The boat is blue."})
        >>> [item.key for item in store.search(("alice",), query="Which colour has the boat?")]
        ['1']
    """

    supports_ttl = True

    def __init__(
        self,
        memory: EpisodicMemory | str | PathLike[str] = ":memory:",
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self.index_config = index.copy() if index is not None else None
        self.ttl_config = ttl
        self._fields = list((index or {}).get("fields") or ["$"])
        embed: Any = (index or {}).get("embed")
        self._embed_query: Callable[[str], Sequence[float]] | None = getattr(embed, "embed_query", None)
        if isinstance(memory, EpisodicMemory):
            if embed is not None:
                raise InputError("the memory has an embedder already: leave index['embed'] out, or pass a location")
            self.memory, self._own = memory, False
        else:
            self.memory, self._own = EpisodicMemory(memory, embedder=_embedder(embed, index), config=ITEMS), True
        self._writing = threading.Lock()

    # operations

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations: all reads see the state before the writes, and of two writes to a key the last counts.

        Raises:
            InputError: If a value is no JSON data, a filter has an unknown operator or an operation is none. Nothing is
                written then.
            StoreError: If the store is closed, read-only or fails.
        """
        results: list[Result] = []
        writes: dict[Name, tuple[PutOp, Record | None]] = {}
        for op in ops:
            result: Result = None
            if isinstance(op, PutOp):
                name = thread_name(op.namespace, op.key)
                writes[name] = op, None if op.value is None else Record.new(name, op.value, op.ttl, self._record(name))
            elif isinstance(op, GetOp):
                result = self._get(op)
            elif isinstance(op, SearchOp):
                result = cast(Result, self._search(op))
            elif isinstance(op, ListNamespacesOp):
                result = self._list(op)
            else:
                raise InputError(f"{type(op).__name__} is no operation of a store")
            results.append(result)
        with self._writing:
            for name, (op, record) in writes.items():
                if record is None:
                    self.memory.thread(*name).clear()
                else:
                    self._write(record, [] if op.index is False else op.index or self._fields)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Async twin of `batch`, in a worker thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _get(self, op: GetOp) -> Item | None:
        record = self._record(thread_name(op.namespace, op.key))
        if record is None:
            return None
        self._refresh(op.refresh_ttl, [record])
        return record.item()

    def _search(self, op: SearchOp) -> list[SearchItem]:
        root = (STORE_ROOT, *op.namespace_prefix)
        names = [name for name in self.memory.threads(root) if len(name) > len(root)]
        scores: dict[Name, float] = {}
        if names and op.query and op.query.strip():
            vector = None if self._embed_query is None else _unit(self._embed_query(op.query))
            recall = self.memory.recall(op.query, prefix=root, k=ALL, max_tokens=None, query_vector=vector)
            for episode in recall.episodes:
                scores[episode.thread] = max(episode.score, scores.get(episode.thread, episode.score))
            names.sort(key=lambda name: (name not in scores, -scores.get(name, 0.0)))
        found = (record for record in self._records(names) if matches(record.value, op.filter))
        page = list(islice(found, op.offset, op.offset + op.limit))
        self._refresh(op.refresh_ttl, page)
        return [record.hit(scores.get(record.name)) for record in page]

    def _list(self, op: ListNamespacesOp) -> list[Name]:
        namespaces = {record.name[1:-1] for record in self._records(self.memory.threads((STORE_ROOT,)))}
        kept = [n for n in namespaces if all(namespace_matches(n, c) for c in op.match_conditions or ())]
        return sorted({n[: op.max_depth] for n in kept})[op.offset : op.offset + op.limit]

    # records

    def _records(self, names: Iterable[Name]) -> Iterator[Record]:
        return (record for record in map(self._record, names) if record is not None)

    def _record(self, name: Name) -> Record | None:
        record = self._any_record(name)
        return None if record is None or record.is_over else record

    def _any_record(self, name: Name) -> Record | None:
        turns = [turn for turn in self.memory.thread(*name).turns() if turn.role == ITEM]
        return Record.of_turn(name, turns[-1]) if turns else None

    def _write(self, record: Record, fields: Sequence[str] | None) -> None:
        """Add what is new, then forget what it replaces: a reader never finds nothing.

        Args:
            record: The item.
            fields: Paths of the texts to index; None to keep the texts that are indexed.
        """
        texts = [text for field in fields or () for text in get_text_at_path(record.value, field) if text.strip()]
        thread = self.memory.thread(*record.name)
        first = thread.extend([record.turn(), *(Turn(FIELD, text, id=uuid4().hex) for text in dict.fromkeys(texts))])[0]
        while old := _replaced(thread.turns(), first, (ITEM,) if fields is None else (ITEM, FIELD)):
            try:
                thread.forget(old)
            except InputError:  # another process has just forgotten some of them
                continue

    def _refresh(self, wanted: bool, records: Iterable[Record]) -> None:
        if not wanted or self.memory.read_only:
            return
        for record in records:
            if record.ttl is not None:
                with self._writing:
                    self._write(record.touched(), None)

    def sweep_ttl(self) -> int:
        """Delete all expired items. Returns how many there were."""
        count = 0
        with self._writing:
            for name in self.memory.threads((STORE_ROOT,)):
                record = self._any_record(name)
                if record is not None and record.is_over:
                    self.memory.thread(*name).clear()
                    count += 1
        return count

    def close(self) -> None:
        """Close the store, unless its memory was opened elsewhere. Harmless when done twice."""
        if self._own:
            self.memory.close()

    def __enter__(self) -> TSIMStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _replaced(turns: Sequence[Turn], first: str, roles: tuple[str, ...]) -> list[str]:
    """Ids of the turns of these roles that stand before a turn."""
    before = takewhile(lambda turn: turn.id != first, turns)
    return [turn.id for turn in before if turn.id is not None and turn.role in roles]


def _embedder(embed: Any, index: IndexConfig | None) -> EmbedderLike:
    if embed is None or isinstance(embed, str | Embedder):
        return cast(EmbedderLike, embed)
    embeddings = embed if hasattr(embed, "embed_documents") else ensure_embeddings(embed)
    name = f"{type(embed).__module__}.{getattr(embed, 'model', None) or type(embed).__qualname__}"
    return CallableEmbedder(embeddings.embed_documents, name, (index or {}).get("dims"))


def _unit(vector: Sequence[float]) -> Vectors:
    unit: Vectors = unit_rows(np.asarray([vector], dtype=np.float32))[0]
    return unit
