"""An episode retriever for LlamaIndex."""

from llama_index.retrievers.tsim.base import TSIMRetriever

__all__ = ["TSIMRetriever"]
