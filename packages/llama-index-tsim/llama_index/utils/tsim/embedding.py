"""Embedding models of LlamaIndex as embedders of the core."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import BeforeValidator, PlainSerializer
from tsim_core import CallableEmbedder, Embedder, EmbedderError
from tsim_core.embedding import Vectors, embed_checked, resolve_embedder, unit_rows

EmbedModel = BaseEmbedding | str
"""A LlamaIndex embedding model, or the name of one of the core's own ("minilm" is the default)."""

DEFAULT_EMBED_MODEL = "minilm"
_SECRET = re.compile(r"key|token|secret|password|credential|header", re.IGNORECASE)
_RUNTIME = frozenset({"embeddings_cache", "rate_limiter", "callback_manager"})  # no part of the model's identity


class LlamaIndexEmbedder:
    """Makes an embedder of the core of any `BaseEmbedding`.

    Turns go through the model's text embedding and queries through its query embedding, so models that want an
    instruction before a query get it.

    Args:
        model: The LlamaIndex model.

    Attributes:
        model: The LlamaIndex model.
        name: Its class and model name; a store opens only with the same.
        max_tokens: None: LlamaIndex models do not say how long a text may be.
    """

    def __init__(self, model: BaseEmbedding) -> None:
        self.model = model
        self.name = f"llama-index:{model.class_name()}:{model.model_name}"
        self.max_tokens: int | None = None

    @cached_property
    def dimension(self) -> int:
        """Width of a vector, asked of the model with a one-word text."""
        return len(self.model.get_text_embedding("dimension"))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit rows of shape (len(texts), dimension); see `tsim_core.Embedder`."""
        return _matrix(self.model.get_text_embedding_batch(list(texts)))

    def embed_query(self, query: str) -> Vectors:
        """The query's unit vector, shape (dimension,)."""
        return unit_vector(self.model.get_query_embedding(query))


def _matrix(rows: Sequence[Sequence[float]]) -> Vectors:
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise EmbedderError(f"the embedding model returned vectors of different dimensions: {widths}")
    return unit_rows(np.asarray(rows, dtype=np.float32))


def unit_vector(values: Sequence[float]) -> Vectors:
    """Numbers as a unit vector.

    Raises:
        EmbedderError: If they are no finite vector of some length.
    """
    vector = np.asarray(values, dtype=np.float32)
    if vector.ndim != 1 or not np.isfinite(vector).all() or not vector.any():
        raise EmbedderError(f"the embedding of shape {vector.shape} is empty, zero, NaN or infinite; check the model")
    return np.asarray(unit_rows(vector[None, :])[0], dtype=np.float32)


def as_embedder(model: EmbedModel) -> Embedder:
    """The core's embedder for what a user passes as ``embed_model=``.

    Raises:
        EmbedderError: If a name cannot be loaded.
    """
    return LlamaIndexEmbedder(model) if isinstance(model, BaseEmbedding) else resolve_embedder(model)


def embed_texts(model: EmbedModel, texts: Sequence[str], show_progress: bool = False) -> Embedder:
    """Embed texts in batches, equal ones once, and return an embedder that knows exactly these.

    Args:
        model: The model.
        texts: Non-blank texts, at least one.
        show_progress: Whether the model shows its progress bar.

    Raises:
        EmbedderError: If the model fails, or returns something that is no array of vectors of one dimension.
    """
    unique = list(dict.fromkeys(texts))
    if not isinstance(model, BaseEmbedding):
        embedder = as_embedder(model)
        return _known(embedder.name, unique, embed_checked(embedder, unique))
    name = LlamaIndexEmbedder(model).name
    try:
        rows = model.get_text_embedding_batch(unique, show_progress=show_progress)
    except Exception as error:
        raise EmbedderError(f"embedder {name!r} failed on {len(unique)} texts: {error}") from error
    return _known(name, unique, _matrix(rows))


async def aembed_texts(model: EmbedModel, texts: Sequence[str], show_progress: bool = False) -> Embedder:
    """Async twin of `embed_texts`; a LlamaIndex model is awaited, a model of the core runs in a thread."""
    if not isinstance(model, BaseEmbedding):
        return await asyncio.to_thread(embed_texts, model, texts, show_progress)
    unique = list(dict.fromkeys(texts))
    name = LlamaIndexEmbedder(model).name
    try:
        rows = await model.aget_text_embedding_batch(unique, show_progress=show_progress)
    except Exception as error:
        raise EmbedderError(f"embedder {name!r} failed on {len(unique)} texts: {error}") from error
    return _known(name, unique, _matrix(rows))


def _known(name: str, texts: Sequence[str], vectors: Vectors) -> Embedder:
    if len(vectors) != len(texts):
        raise EmbedderError(f"embedder {name!r} returned {len(vectors)} vectors for {len(texts)} texts")
    row = dict(zip(texts, vectors, strict=True))
    return CallableEmbedder(lambda wanted: np.stack([row[text] for text in wanted]), name, vectors.shape[1])


# as a field of a LlamaIndex component


def identity(model: EmbedModel) -> str | dict[str, Any]:
    """A model as JSON data: what it is and how it is set, without secrets and run-time objects."""
    if isinstance(model, str):
        return model
    kept = {k: v for k, v in model.to_dict().items() if k not in _RUNTIME and not _SECRET.search(k)}
    return {**kept, "qualified_name": _qualified(type(model))}


def restore(value: EmbedModel | Mapping[str, Any] | None) -> EmbedModel:
    """The inverse of `identity`: a model from its identity.

    The class is looked up among the embedding classes that the process has loaded: data never imports anything.

    Raises:
        ValueError: If it is none of these, or its class is not loaded.
    """
    if value is None:
        return DEFAULT_EMBED_MODEL
    if isinstance(value, BaseEmbedding | str):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"embed_model is {type(value).__name__}; expected a BaseEmbedding or the name of a model")
    settings = dict(value)
    wanted = settings.pop("qualified_name", None)
    for kind in _subclasses(BaseEmbedding):  # type: ignore[type-abstract]
        if _qualified(kind) == wanted:
            return kind.from_dict(settings)
    raise ValueError(
        f"the embedding model {wanted!r} is not loaded: import its class first, or pass the model as embed_model="
    )


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _subclasses(kind: type[BaseEmbedding]) -> Iterator[type[BaseEmbedding]]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


EmbedModelField = Annotated[Any, BeforeValidator(restore), PlainSerializer(identity)]
"""An `EmbedModel` as a serialised field of a component."""
