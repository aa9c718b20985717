"""Embedding models behind one small protocol: a batch of texts to a float32 array of unit rows."""

from __future__ import annotations

from collections.abc import Callable

from tsim_core.embedding.base import CallableEmbedder, Embedder, Vectors, embed_checked, unit_rows
from tsim_core.embedding.minilm import MiniLMEmbedder
from tsim_core.errors import EmbedderError

EmbedderLike = Embedder | Callable[[list[str]], object] | str | None


def resolve_embedder(embedder: EmbedderLike = None) -> Embedder:
    """Turn what a user passes as ``embedder=`` into an `Embedder`.

    Args:
        embedder: None or "minilm" for the default that needs no network; another string is a sentence-transformers
            model name or folder, with the prefix ``static:`` a model2vec one; a function from a list of texts to
            vectors; or an `Embedder`.

    Raises:
        EmbedderError: If it is none of these or cannot be loaded.
    """
    if embedder is None or embedder in ("minilm", MiniLMEmbedder.name):
        return MiniLMEmbedder()
    if isinstance(embedder, str):
        if embedder.startswith("static:"):
            from tsim_core.embedding.static import StaticEmbedder

            return StaticEmbedder(embedder.removeprefix("static:"))
        from tsim_core.embedding.sentence_transformer import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(embedder)
    if isinstance(embedder, Embedder):
        return embedder
    if callable(embedder):
        module, qualname = getattr(embedder, "__module__", "?"), getattr(embedder, "__qualname__", "?")
        return CallableEmbedder(embedder, name=f"{module}.{qualname}")
    raise EmbedderError(
        f"{type(embedder).__name__} is no embedder: pass a model name, a function from a list of texts to vectors, "
        "or an object with name, dimension, max_tokens and embed(texts)"
    )


__all__ = [
    "CallableEmbedder",
    "Embedder",
    "EmbedderLike",
    "MiniLMEmbedder",
    "Vectors",
    "embed_checked",
    "resolve_embedder",
    "unit_rows",
]
