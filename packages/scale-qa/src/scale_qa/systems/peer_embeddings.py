"""The run's embedder in the shapes that the peers' frameworks want. Imports a framework only when asked for it."""

from __future__ import annotations

from typing import Any

from tsim_core.embedding import Embedder

from scale_qa.systems.base import embed_texts


def langchain_embeddings(embedder: Embedder) -> Any:
    """A LangChain `Embeddings`."""
    from langchain_core.embeddings import Embeddings

    class RunEmbeddings(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            rows: list[list[float]] = embed_texts(embedder, texts).tolist()
            return rows

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    return RunEmbeddings()


def llama_embedding(embedder: Embedder) -> Any:
    """A LlamaIndex `BaseEmbedding`."""
    from llama_index.core.embeddings import BaseEmbedding

    class RunEmbedding(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            rows: list[list[float]] = embed_texts(embedder, texts).tolist()
            return rows

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    return RunEmbedding(model_name=embedder.name, embed_batch_size=256)


def text_vector_store() -> Any:
    """A LlamaIndex `SimpleVectorStore` that also keeps its nodes, as `VectorMemoryBlock` wants.

    It tells the id of the newest node (``newest``) and of those that the last query found (``found``).
    """
    from llama_index.core.vector_stores import SimpleVectorStore
    from pydantic import Field

    class TextVectorStore(SimpleVectorStore):
        stores_text: bool = True
        newest: str = ""
        found: list[str] = Field(default_factory=list)
        kept: dict[str, Any] = Field(default_factory=dict)

        def add(self, nodes: Any, **kwargs: Any) -> list[str]:
            self.kept.update((node.node_id, node) for node in nodes)
            self.newest = nodes[-1].node_id
            ids: list[str] = super().add(nodes, **kwargs)
            return ids

        def query(self, query: Any, **kwargs: Any) -> Any:
            result = super().query(query, **kwargs)
            self.found = list(result.ids or [])
            result.nodes = [self.kept[node] for node in self.found]
            return result

    return TextVectorStore()
