"""Any LangChain embeddings object embeds turns and queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_tsim import LangChainEmbedder, TSIMMemory, TSIMRetriever, open_memory
from tsim_core import EmbedderError, EpisodicMemory, StoreClosedError, StoreFormatError, StoreMismatchError, TSIMConfig

from ..helpers import WordEmbedder, WordEmbeddings


def test_turns_and_queries_go_through_their_own_methods() -> None:
    embeddings = WordEmbeddings()
    with open_memory(":memory:", embedder=embeddings) as memory:
        embeddings.calls.clear()  # opening a new store measured the model
        memory.thread("a").add("user", "The cat sleeps in the red basket.")
        assert embeddings.calls == ["embed_documents"]
        (found,) = TSIMRetriever(memory=memory, scope="a").invoke("Where does the cat sleep?")
        assert "red basket" in found.page_content
        assert embeddings.calls == ["embed_documents", "embed_query"]


async def test_async_queries_go_through_the_async_method() -> None:
    embeddings = WordEmbeddings()
    with open_memory(":memory:", embedder=embeddings) as memory:
        await memory.thread("a").aadd("user", "The cat sleeps in the red basket.")
        embeddings.calls.clear()
        await TSIMRetriever(memory=memory, scope="a").ainvoke("cat")
        await TSIMMemory(memory=memory, scope="a").aload_memory_variables({"input": "cat"})
        assert embeddings.calls == ["aembed_query", "aembed_query"]


def test_dimension_and_name() -> None:
    assert LangChainEmbedder(WordEmbeddings("words-2")).name == "langchain:WordEmbeddings:words-2"
    assert LangChainEmbedder(DeterministicFakeEmbedding(size=8)).name == "langchain:DeterministicFakeEmbedding"
    assert LangChainEmbedder(DeterministicFakeEmbedding(size=8)).dimension == 8
    assert LangChainEmbedder(WordEmbeddings(), name="mine", dimension=256).name == "mine"
    vector = LangChainEmbedder(DeterministicFakeEmbedding(size=8)).embed_query("x")
    assert vector.shape == (8,)
    assert np.linalg.norm(vector) == pytest.approx(1)


def test_another_model_does_not_open_the_store(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    open_memory(path, embedder=WordEmbeddings("words-1")).close()
    with pytest.raises(StoreMismatchError, match="words-1"):
        open_memory(path, embedder=WordEmbeddings("words-2"))
    with open_memory(path, embedder=WordEmbeddings("words-1")) as memory:
        assert open_memory(memory) is memory
        assert open_memory(memory, embedder=WordEmbeddings("words-1"), config=memory.config) is memory
        with pytest.raises(StoreMismatchError, match="words-2"):
            open_memory(memory, embedder=WordEmbeddings("words-2"))
        with pytest.raises(StoreMismatchError, match="configuration"):
            open_memory(memory, config=TSIMConfig.paper())


def test_a_foreign_store_and_a_closed_one(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("no database at all, " * 100)
    with pytest.raises(StoreFormatError):
        TSIMMemory(memory=path, scope="a")
    memory = EpisodicMemory(embedder=WordEmbedder())
    chain_memory, retriever = TSIMMemory(memory=memory, scope="a"), TSIMRetriever(memory=memory, scope="a")
    memory.close()
    with pytest.raises(StoreClosedError):
        chain_memory.load_memory_variables({"input": "x"})
    with pytest.raises(StoreClosedError):
        chain_memory.save_context({"input": "x"}, {"output": "y"})
    with pytest.raises(StoreClosedError):
        retriever.invoke("x")


class Broken(Embeddings):
    up = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.up:
            return [[1.0, 1.0] for _ in texts]
        raise ConnectionError("no route")

    def embed_query(self, text: str) -> list[float]:
        return [float("nan"), 1.0]


class Down(Broken):
    def embed_query(self, text: str) -> list[float]:
        raise ConnectionError("no route")


async def test_a_model_that_fails_is_an_error_and_nothing_is_stored() -> None:
    with pytest.raises(EmbedderError, match="no route"):
        open_memory(":memory:", embedder=LangChainEmbedder(Broken(), dimension=2))
    broken, down = Broken(), Down()
    broken.up = down.up = True
    with open_memory(":memory:", embedder=LangChainEmbedder(broken, dimension=2)) as memory:
        broken.up = False
        with pytest.raises(EmbedderError, match="no route"):
            TSIMMemory(memory=memory, scope="a").save_context({"input": "x"}, {"output": "y"})
        assert memory.stats()["turns"] == 0
        with pytest.raises(EmbedderError, match="NaN"):
            TSIMRetriever(memory=memory, scope="a").invoke("x")
        with pytest.raises(EmbedderError, match="NaN"):
            await TSIMRetriever(memory=memory, scope="a").ainvoke("x")
    with (
        open_memory(":memory:", embedder=LangChainEmbedder(down, dimension=2)) as memory,
        pytest.raises(EmbedderError, match="no route"),
    ):
        await TSIMRetriever(memory=memory, scope="a").ainvoke("x")
    with pytest.raises(EmbedderError, match="Pass dimension="):
        LangChainEmbedder(Down())
    with pytest.raises(EmbedderError, match="no LangChain Embeddings"):
        LangChainEmbedder("text")  # type: ignore[arg-type]
