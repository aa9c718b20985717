"""TSIMRetriever: whole episodes for any engine of LlamaIndex."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index.node_parser.tsim.nodes import TURNS, node_turns
from llama_index.retrievers.tsim.filters import equalities, matches, turn_metadata
from llama_index.utils.tsim.embedding import (
    DEFAULT_EMBED_MODEL,
    EmbedModel,
    LlamaIndexEmbedder,
    as_embedder,
    identity,
    restore,
    unit_vector,
)
from llama_index.utils.tsim.messages import episode_text, speaker
from llama_index.utils.tsim.settings import load_config
from tsim_core import (
    EmbedderError,
    Episode,
    EpisodicMemory,
    InputError,
    Recall,
    StoreFormatError,
    StoreNotFoundError,
    TSIMConfig,
    Turn,
)
from tsim_core.embedding import Vectors
from tsim_core.segmentation import PublishedSegmentation

DEFAULT_TOP_K = 5
STORE, NODES, SETTINGS = "memory.db", "nodes.json", "retriever.json"
_NODE_THREADS = "nodes"


class TSIMRetriever(BaseRetriever):
    """Retrieves whole episodes, from a TSIM store or from nodes given to it.

    A node from a store is one episode as lines of a transcript; its id is the episode's. Nodes given with `from_nodes`
    come back as they were given. Results are fresh objects each time, so engines may change them.

    Args:
        memory: An open memory, or the location of a store.
        prefix: Which threads: all whose name begins with these strings. One user's is the usual choice.
        similarity_top_k: Most episodes.
        max_tokens: Most estimated tokens of all episodes; None for whole episodes. Under a budget an episode is
            handed over in part, and its node says so.
        filters: Metadata filters. They are about turns (role and timestamp included): only turns that pass are handed
            over. Equalities are applied while searching, other operators to the ranked answer.
        embed_model: What embeds turns and queries, where ``memory`` is a location.
        callback_manager: See `BaseRetriever`.
        verbose: See `BaseRetriever`.

    Raises:
        InputError: If ``prefix`` is empty: episodes of all users at once are nobody's.
        StoreNotFoundError: If there is no store at the location.
        StoreMismatchError: If the store was written with another embedding model.

    Example:
        >>> memory = EpisodicMemory()
        >>> _ = memory.thread("alice", "support").add("user", "New projects run on a single consumer GPU.")
        >>> TSIMRetriever(memory, prefix=["alice"]).retrieve("Which GPU?")[0].node.text
        'user: New projects run on a single consumer GPU.'
    """

    def __init__(
        self,
        memory: EpisodicMemory | str | os.PathLike[str],
        prefix: Sequence[str],
        similarity_top_k: int = DEFAULT_TOP_K,
        max_tokens: int | None = None,
        filters: MetadataFilters | None = None,
        embed_model: EmbedModel = DEFAULT_EMBED_MODEL,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        if isinstance(prefix, str) or not prefix:
            raise InputError(f"prefix={prefix!r}: expected one or more strings, such as ['alice']")
        if similarity_top_k < 1:
            raise InputError(f"similarity_top_k={similarity_top_k}: expected at least 1")
        if max_tokens is not None and filters is not None and equalities(filters) is None:
            raise InputError("max_tokens goes with filters that are equalities; leave it out, or the other operators")
        if not isinstance(memory, EpisodicMemory):
            memory = EpisodicMemory(memory, embedder=as_embedder(embed_model), create=False)
        self._memory = memory
        self._prefix = tuple(prefix)
        self._nodes: dict[str, BaseNode] | None = None
        self.similarity_top_k = similarity_top_k
        self.max_tokens = max_tokens
        self.filters = filters
        super().__init__(callback_manager=callback_manager, verbose=verbose)

    @property
    def memory(self) -> EpisodicMemory:
        """The store that is searched."""
        return self._memory

    @classmethod
    def from_nodes(
        cls,
        nodes: Sequence[BaseNode],
        embed_model: EmbedModel = DEFAULT_EMBED_MODEL,
        config: TSIMConfig | dict[str, Any] | str | None = None,
        **options: Any,
    ) -> TSIMRetriever:
        """A retriever over nodes, which come back as they were given.

        Episode nodes of `TSIMNodeParser` are taken in turn by turn, so the core sees the same episodes again. Turn
        nodes and the nodes of any other parser are taken in as one turn each, which is an episode of its own.

        Args:
            nodes: The nodes; blank ones are never found.
            embed_model: What embeds turns and queries.
            config: The core's configuration: that of the parser. Its linking is off unless the nodes were linked.
            options: ``similarity_top_k``, ``filters`` and the other arguments of the class.

        Raises:
            InputError: If episode nodes and their own turn nodes are both among them.
        """
        given = {node.node_id: node for node in nodes}
        if options.get("max_tokens") is not None:
            raise InputError("nodes come back whole, so max_tokens has no meaning for them; set similarity_top_k")
        if any(node.parent_node is not None and node.parent_node.node_id in given for node in nodes):
            raise InputError(
                "the nodes hold episodes and their own turns: pass get_root_nodes(nodes) to retrieve episodes, or "
                "get_leaf_nodes(nodes) to retrieve turns"
            )
        settings = load_config(config).replace(linking=None)
        turns_of = {node.node_id: node_turns(node) for node in nodes}
        parsed = all(TURNS in node.metadata for node in nodes) and any(len(turns) > 1 for turns in turns_of.values())
        if not parsed:
            turns_of = {id_: [_one_turn(turns, given[id_])] for id_, turns in turns_of.items()}
            settings = settings.replace(segmentation=PublishedSegmentation(l_min=0, l_max=0, min_messages=1))
        memory = EpisodicMemory(embedder=as_embedder(embed_model), config=settings)
        sessions: dict[str, list[BaseNode]] = {}
        for node in nodes:
            sessions.setdefault(_session(node), []).append(node)
        for session, members in sessions.items():
            if parsed:
                members.sort(key=lambda node: int(node.metadata["turn_start"]))
            turns = [
                replace(turn, id=f"{node.node_id}/{number}")
                for node in members
                for number, turn in enumerate(turns_of[node.node_id])
            ]
            memory.thread(_NODE_THREADS, session).extend(turns)
        retriever = cls(memory, prefix=[_NODE_THREADS], **options)
        retriever._nodes = given
        return retriever

    @classmethod
    def from_defaults(
        cls,
        memory: EpisodicMemory | str | os.PathLike[str] | None = None,
        prefix: Sequence[str] | None = None,
        nodes: Sequence[BaseNode] | None = None,
        index: BaseIndex[Any] | None = None,
        docstore: BaseDocumentStore | None = None,
        **options: Any,
    ) -> TSIMRetriever:
        """A retriever over exactly one of a memory (with ``prefix``), nodes, the nodes of an index, or of a docstore.

        Raises:
            InputError: If none of them is given, or more than one.
        """
        given = [source for source in (memory, nodes, index, docstore) if source is not None]
        if len(given) != 1:
            raise InputError(f"{len(given)} of memory, nodes, index and docstore are given; pass exactly one")
        if memory is not None:
            return cls(memory, prefix=prefix or (), **options)
        if index is not None:
            docstore = index.docstore
        if docstore is not None:
            nodes = list(docstore.docs.values())
        return cls.from_nodes(nodes or [], **options)

    # retrieving

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str.strip()
        if not query:
            return []
        return self._search(query, self._query_vector(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str.strip()
        if not query:
            return []
        vector = await self._aquery_vector(query_bundle)
        return await asyncio.to_thread(self._search, query, vector)

    def _query_vector(self, bundle: QueryBundle) -> Vectors | None:
        """The query's vector where LlamaIndex has a say in it; None to leave it to the core."""
        texts = _embedding_texts(bundle)
        embedder = self._memory.embedder
        if bundle.embedding is not None:
            return self._checked(unit_vector(bundle.embedding))
        if isinstance(embedder, LlamaIndexEmbedder):
            return self._checked(unit_vector(embedder.model.get_agg_embedding_from_queries(texts)))
        if bundle.custom_embedding_strs is None:
            return None
        return self._checked(unit_vector(np.mean(embedder.embed(texts), axis=0).tolist()))

    async def _aquery_vector(self, bundle: QueryBundle) -> Vectors | None:
        embedder = self._memory.embedder
        if bundle.embedding is None and isinstance(embedder, LlamaIndexEmbedder):
            texts = _embedding_texts(bundle)
            return self._checked(unit_vector(await embedder.model.aget_agg_embedding_from_queries(texts)))
        return await asyncio.to_thread(self._query_vector, bundle)

    def _checked(self, vector: Vectors) -> Vectors:
        dimension = self._memory.embedder.dimension
        if len(vector) != dimension:
            raise EmbedderError(
                f"the query's embedding has {len(vector)} dimensions, the store's embedder "
                f"{self._memory.embedder.name!r} has {dimension}; embed queries and turns with one model"
            )
        return vector

    def _search(self, query: str, vector: Vectors | None) -> list[NodeWithScore]:
        where = equalities(self.filters) if self._nodes is None else None
        everything = self.filters is not None and where is None
        recall = self._memory.recall(
            query,
            prefix=self._prefix,
            # What the core cannot filter is filtered from a complete ranking, so that k episodes are left.
            k=max(1, self._memory.stats()["episodes"]) if everything else self.similarity_top_k,
            max_tokens=None if everything else self.max_tokens,
            where=where or None,
            query_vector=vector,
        )
        found = self._given(recall) if self._nodes is not None else self._episodes(recall, everything)
        return found[: self.similarity_top_k]

    def _given(self, recall: Recall) -> list[NodeWithScore]:
        """The nodes whose turns the ranked episodes hold, each once, best first."""
        assert self._nodes is not None
        scores: dict[str, float] = {}
        for episode in recall.episodes:
            for turn in episode.turns:
                scores.setdefault(str(turn.id).rpartition("/")[0], episode.score)
        return [
            NodeWithScore(node=node.model_copy(deep=True), score=float(score))
            for node, score in ((self._nodes[id_], score) for id_, score in scores.items())
            if self.filters is None or matches(self.filters, node.metadata)
        ]

    def _episodes(self, recall: Recall, filtered_here: bool) -> list[NodeWithScore]:
        """The ranked episodes as nodes."""
        found = []
        for episode in recall.episodes:
            if filtered_here and self.filters is not None:
                passing = tuple(turn for turn in episode.turns if matches(self.filters, turn_metadata(turn)))
                episode = replace(episode, turns=passing)
            if any(turn.text.strip() for turn in episode.turns):
                found.append(NodeWithScore(node=episode_node(episode), score=float(episode.score)))
        return found

    # saving

    def persist(self, persist_dir: str | os.PathLike[str]) -> None:
        """Save the retriever into a directory, made where missing; what an earlier call saved there is replaced.

        The turns are embedded once more into a store of their own; loading then embeds nothing.
        """
        directory = Path(persist_dir)
        directory.mkdir(parents=True, exist_ok=True)
        fresh = directory / f"new-{STORE}"
        fresh.unlink(missing_ok=True)
        with EpisodicMemory(fresh, embedder=self._memory.embedder, config=self._memory.config) as copy:
            for name in self._memory.threads(self._prefix):
                copy.thread(*name).extend(self._memory.thread(*name).turns())
        for suffix in ("-wal", "-shm"):
            (directory / f"{STORE}{suffix}").unlink(missing_ok=True)
        fresh.replace(directory / STORE)
        embedder = self._memory.embedder
        settings = {
            "prefix": self._prefix,
            "similarity_top_k": self.similarity_top_k,
            "max_tokens": self.max_tokens,
            "filters": None if self.filters is None else self.filters.model_dump(mode="json"),
            "embed_model": identity(embedder.model if isinstance(embedder, LlamaIndexEmbedder) else embedder.name),
            "nodes": self._nodes is not None,
        }
        (directory / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")
        nodes = [doc_to_json(node) for node in (self._nodes or {}).values()]
        (directory / NODES).write_text(json.dumps(nodes), encoding="utf-8")

    @classmethod
    def from_persist_dir(
        cls, persist_dir: str | os.PathLike[str], embed_model: EmbedModel | None = None, **options: Any
    ) -> TSIMRetriever:
        """The retriever that `persist` saved.

        Args:
            persist_dir: Its directory.
            embed_model: Its embedding model; made from what was saved when None, which its class must be loaded for.
            options: Other arguments of the class than were saved.

        Raises:
            StoreNotFoundError: If nothing was saved there.
            StoreFormatError: If what was saved is malformed.
            StoreMismatchError: If it was saved with another embedding model.
        """
        directory = Path(persist_dir)
        store = directory / STORE
        try:
            settings = json.loads((directory / SETTINGS).read_text(encoding="utf-8"))
            nodes = [json_to_doc(data) for data in json.loads((directory / NODES).read_text(encoding="utf-8"))]
            filters = settings["filters"]
            saved = {
                "prefix": settings["prefix"],
                "similarity_top_k": settings["similarity_top_k"],
                "max_tokens": settings["max_tokens"],
                "filters": None if filters is None else MetadataFilters.model_validate(filters),
            }
            has_nodes, model = settings["nodes"], settings["embed_model"]
        except FileNotFoundError as error:
            raise StoreNotFoundError(f"{directory} holds no saved retriever: {error.filename} is missing") from error
        except (KeyError, TypeError, ValueError) as error:
            raise StoreFormatError(f"{directory} holds no retriever that this version can read: {error}") from error
        retriever = cls(store, embed_model=embed_model or restore(model), **{**saved, **options})
        if has_nodes:
            retriever._nodes = {node.node_id: node for node in nodes}
        return retriever


def _session(node: BaseNode) -> str:
    """The thread that a node's turns are taken into."""
    return str(node.metadata.get("session_id") or node.ref_doc_id or node.node_id)


def _one_turn(turns: Sequence[Turn], node: BaseNode) -> Turn:
    """A node as a single turn: that of a turn node, else all of its text."""
    return turns[0] if len(turns) == 1 else Turn("user", node.get_content())


def _embedding_texts(bundle: QueryBundle) -> list[str]:
    texts = bundle.custom_embedding_strs or [bundle.query_str]
    return [text.strip() for text in texts if text.strip()] or [bundle.query_str.strip()]


def episode_node(episode: Episode) -> TextNode:
    """An episode as a node; its id is the episode's, its metadata is flat."""
    turns = episode.turns
    times = [turn.timestamp for turn in turns if turn.timestamp is not None]
    shared = {
        key: value
        for key, value in (turns[0].metadata or {}).items()
        if isinstance(value, str | int | float) and all((t.metadata or {}).get(key) == value for t in turns)
    }
    own = {
        "session_id": episode.thread[-1],
        **({"start_time": min(times).isoformat(), "end_time": max(times).isoformat()} if times else {}),
        "thread": json.dumps(episode.thread, ensure_ascii=False),
        "speakers": ", ".join(dict.fromkeys(map(speaker, turns))),
        "turn_ids": json.dumps([turn.id for turn in turns], ensure_ascii=False),
    }
    return TextNode(
        id_=episode.id,
        text=episode_text(episode),
        metadata=shared | own,
        excluded_embed_metadata_keys=[*shared, *own],
        excluded_llm_metadata_keys=[*shared, *own],
    )
