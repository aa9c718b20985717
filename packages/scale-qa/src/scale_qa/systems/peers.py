"""Memories that others use today, run without an LLM and with the run's embedder. Each needs its own package."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tsim_core.types import Turn

from scale_qa.lexical import top
from scale_qa.systems import SystemSpec
from scale_qa.systems.base import (
    Footprint,
    MemorySystem,
    Resources,
    Unit,
    VectorTable,
    embed_query,
    embed_texts,
)
from scale_qa.systems.peer_embeddings import langchain_embeddings, llama_embedding

SEPARATOR = "\x1e"  # ASCII record separator: no turn holds it, and it marks where one ends
PEER_DEPTH = 200  # each search below is exact and linear


class LangGraphStore(MemorySystem):
    """LangGraph's `InMemoryStore` with its semantic search; an item a turn."""

    depth = PEER_DEPTH

    def __init__(self, resources: Resources) -> None:
        from langgraph.store.memory import InMemoryStore

        embeddings = langchain_embeddings(resources.embedder)
        self._dimension = resources.embedder.dimension
        self._store = InMemoryStore(index={"dims": self._dimension, "embed": embeddings, "fields": ["text"]})
        self._turns = 0

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Put every turn, in batches of different texts: the store fails on a batch that holds one twice."""
        from langgraph.store.base import PutOp

        puts: dict[str, PutOp] = {}
        for i, turn in enumerate(turns, self._turns):
            if turn.text in puts:
                self._store.batch(list(puts.values()))
                puts.clear()
            value = {"role": turn.role, "text": turn.text}
            puts[turn.text] = PutOp(("thread",), str(i), value, None if turn.text.strip() else False)
        self._store.batch(list(puts.values()))
        self._turns += len(turns)

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """The store's search."""
        found = self._store.search(("thread",), query=query, limit=k)
        return [Unit((int(item.key),), float(item.score or 0.0)) for item in found]

    def footprint(self) -> Footprint:
        """One vector a turn, kept as Python floats by the store; counted as float32."""
        return Footprint(self._turns, self._turns * self._dimension * 4)


class LangChainVectorMemory(MemorySystem):
    """LangChain's `VectorStoreRetrieverMemory` over its `InMemoryVectorStore`; a document an exchange."""

    depth = PEER_DEPTH

    def __init__(self, resources: Resources) -> None:
        from langchain_classic.memory import VectorStoreRetrieverMemory
        from langchain_core._api import suppress_langchain_deprecation_warning
        from langchain_core.vectorstores import InMemoryVectorStore

        store = InMemoryVectorStore(langchain_embeddings(resources.embedder))
        self._retriever = store.as_retriever()
        with suppress_langchain_deprecation_warning():  # deprecated, and still the peer that people have
            self._memory = VectorStoreRetrieverMemory(retriever=self._retriever, return_docs=True)
        self._dimension = resources.embedder.dimension
        self._exchanges: dict[str, tuple[int, ...]] = {}
        self._turns = 0

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Save exchanges one by one, which is all that the class offers."""
        at = 0
        while at < len(turns):
            pair = turns[at : at + 2]
            whole = len(pair) == 2 and pair[0].role == "user" and pair[1].role != "user"
            said, replied = (pair[0].text, pair[1].text) if whole else (pair[0].text, "")
            self._memory.save_context({"input": said}, {"output": replied})
            size = 2 if whole else 1
            self._exchanges[f"input: {said}\noutput: {replied}"] = tuple(
                range(self._turns + at, self._turns + at + size)
            )
            at += size
        self._turns += len(turns)

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """What `load_memory_variables` puts into the prompt."""
        self._retriever.search_kwargs = {"k": k}
        documents: Any = self._memory.load_memory_variables({"prompt": query})[self._memory.memory_key]
        return [Unit(self._exchanges[document.page_content]) for document in documents]

    def footprint(self) -> Footprint:
        """One vector an exchange, counted as float32."""
        return Footprint(len(self._exchanges), len(self._exchanges) * self._dimension * 4)


class LlamaIndexVectorBlock(MemorySystem):
    """LlamaIndex's `VectorMemoryBlock`; a node a message."""

    depth = PEER_DEPTH

    def __init__(self, resources: Resources) -> None:
        from llama_index.core.memory import VectorMemoryBlock

        from scale_qa.systems.peer_embeddings import text_vector_store

        self._store = text_vector_store()
        self._block = VectorMemoryBlock(
            vector_store=self._store,
            embed_model=llama_embedding(resources.embedder),
            retrieval_context_window=1,
        )
        self._dimension = resources.embedder.dimension
        self._position: dict[str, int] = {}
        self._turns = 0

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Put every message."""
        from llama_index.core.llms import ChatMessage

        async def put() -> None:
            for i, turn in enumerate(turns, self._turns):
                if turn.text.strip():
                    await self._block.aput([ChatMessage(role=turn.role, content=turn.text)])
                    self._position[self._store.newest] = i

        asyncio.run(put())
        self._turns += len(turns)

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """The nodes that `aget` joins into its text."""
        from llama_index.core.llms import ChatMessage

        self._block.similarity_top_k = k
        asyncio.run(self._block.aget([ChatMessage(role="user", content=query)]))
        return [Unit((self._position[node],)) for node in self._store.found]

    def footprint(self) -> Footprint:
        """One vector a message, counted as float32."""
        return Footprint(len(self._position), len(self._position) * self._dimension * 4)


class LlamaIndexSemanticSplitter(MemorySystem):
    """LlamaIndex's `SemanticSplitterNodeParser` with turns as its sentences, then dense search over its nodes.

    Its threshold is a percentile of all distances, so it needs the whole thread; what is written back later is split
    by itself.
    """

    depth = PEER_DEPTH

    def __init__(self, resources: Resources) -> None:
        from llama_index.core.node_parser import SemanticSplitterNodeParser

        self._embedder = resources.embedder
        self._parser = SemanticSplitterNodeParser(
            embed_model=llama_embedding(resources.embedder),
            sentence_splitter=_records,
            include_metadata=False,
            include_prev_next_rel=False,
        )
        self._units: list[Unit] = []
        self._vectors = VectorTable(self._embedder.dimension)
        self._turns = 0

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Split and embed."""
        from llama_index.core import Document

        if not turns:
            return
        nodes = self._parser.get_nodes_from_documents([Document(text="".join(t.text + SEPARATOR for t in turns))])
        at = self._turns
        texts = []
        for node in nodes:
            text = node.get_content()
            size = text.count(SEPARATOR)
            self._units.append(Unit(tuple(range(at, at + size))))
            texts.append(text.replace(SEPARATOR, "\n"))
            at += size
        self._vectors.extend(embed_texts(self._embedder, texts))
        self._turns += len(turns)

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """The nearest nodes."""
        if not self._units:
            return []
        return [self._units[i] for i in top(self._vectors.rows @ embed_query(self._embedder, query), k)]

    def footprint(self) -> Footprint:
        """One vector a node."""
        return Footprint(len(self._units), self._vectors.rows.nbytes)


class Mem0Raw(MemorySystem):
    """mem0 with ``infer=False``, which stores messages as they are, over its default store (Qdrant, local)."""

    depth = 50  # mem0 scores every candidate in Python

    def __init__(self, resources: Resources) -> None:
        self._folder = TemporaryDirectory(prefix="scale-qa-", ignore_cleanup_errors=True)
        # Both are read at import: nothing is reported to anyone, nothing is written to the home folder.
        os.environ.setdefault("MEM0_TELEMETRY", "False")
        os.environ.setdefault("MEM0_DIR", self._folder.name)
        try:
            self._memory = self._open(resources)
        except BaseException:
            self._folder.cleanup()
            raise
        self._dimension = resources.embedder.dimension
        self._position: dict[str, int] = {}
        self._turns = 0

    def _open(self, resources: Resources) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from mem0 import Memory

            embeddings = {"model": langchain_embeddings(resources.embedder)}
            store = {
                "path": str(Path(self._folder.name) / "qdrant"),
                "embedding_model_dims": resources.embedder.dimension,
            }
            return Memory.from_config(
                {
                    "embedder": {"provider": "langchain", "config": embeddings},
                    "vector_store": {"provider": "qdrant", "config": store},
                    # mem0 builds a client even when it never asks one.
                    "llm": {"provider": "openai", "config": {"api_key": "unused"}},
                    "history_db_path": str(Path(self._folder.name) / "history.db"),
                }
            )

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Add every message."""
        for i, turn in enumerate(turns, self._turns):
            if turn.text.strip():
                role = turn.role if turn.role != "system" else "user"  # mem0 drops system messages
                added = self._memory.add([{"role": role, "content": turn.text}], user_id="scale-qa", infer=False)
                self._position[added["results"][0]["id"]] = i
        self._turns += len(turns)

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """mem0's search, without its score threshold."""
        found = self._memory.search(query, top_k=k, filters={"user_id": "scale-qa"}, threshold=0.0)
        return [Unit((self._position[item["id"]],), float(item["score"])) for item in found["results"]]

    def footprint(self) -> Footprint:
        """One vector a message, and the size of its files."""
        files = [path for path in Path(self._folder.name).rglob("*") if path.is_file()]
        return Footprint(len(self._position), sum(path.stat().st_size for path in files))

    def close(self) -> None:
        """Close the store and delete its folder."""
        self._memory.vector_store.client.close()
        self._folder.cleanup()


def _records(text: str) -> list[str]:
    """A text cut behind every separator."""
    return [part + SEPARATOR for part in text.split(SEPARATOR)[:-1]]


SPECS: list[Any] = [
    SystemSpec("langgraph-store", "LangGraph InMemoryStore search, an item a turn", LangGraphStore, "langgraph"),
    SystemSpec(
        "langchain-vectorstore-memory",
        "LangChain VectorStoreRetrieverMemory, a document an exchange",
        LangChainVectorMemory,
        "langchain-classic",
    ),
    SystemSpec(
        "llamaindex-vector-block",
        "LlamaIndex VectorMemoryBlock, a node a message",
        LlamaIndexVectorBlock,
        "llama-index-core",
    ),
    SystemSpec(
        "llamaindex-semantic-splitter",
        "LlamaIndex SemanticSplitterNodeParser over turns, dense",
        LlamaIndexSemanticSplitter,
        "llama-index-core",
    ),
    SystemSpec("mem0-raw", "mem0 with infer=False: raw messages, its own search", Mem0Raw, "mem0ai"),
]
