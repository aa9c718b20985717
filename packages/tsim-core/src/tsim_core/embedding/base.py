"""The embedder protocol, and the one gate that every embedding passes through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tsim_core.errors import EmbedderError

Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """What the core asks of an embedding model.

    Attributes:
        name: Identity of the model. It is stored with the vectors; a store opens only with the same name.
        dimension: Width of a vector.
        max_tokens: Window of the model in its own tokens, or None where it has none. An embedder splits longer
            text and pools the parts itself; it never cuts silently.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def max_tokens(self) -> int | None: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch.

        Args:
            texts: Non-blank texts.

        Returns:
            A float32 array of shape (len(texts), dimension) with rows of unit length.
        """
        ...


class CallableEmbedder:
    """Makes an embedder of any function from a list of texts to a 2-d array.

    Args:
        function: Called with a list of texts, returns an array-like of shape (n, dimension).
        name: Identity to store with the vectors.
        dimension: Width of a vector; asked of the function with a one-word text when None.
        max_tokens: Window of the model, for information.
    """

    def __init__(
        self,
        function: Callable[[list[str]], object],
        name: str,
        dimension: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        if not name or not name.strip():
            raise EmbedderError("an embedder needs a non-empty name: it identifies the vectors in the store")
        self._function = function
        self.name = name
        self.max_tokens = max_tokens
        self.dimension = dimension if dimension is not None else as_array(function(["dimension"])).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Call the function; see `Embedder.embed`."""
        return unit_rows(as_array(self._function(list(texts))))


def as_array(values: object) -> Vectors:
    """Return ``values`` as a 2-d float32 array.

    Raises:
        EmbedderError: If they are not numbers in rows of one length.
    """
    try:
        array = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbedderError(f"the embedder returned no array of numbers: {error}") from error
    if array.ndim != 2:
        raise EmbedderError(f"the embedder returned shape {array.shape}; expected (texts, dimension)")
    return array


def unit_rows(array: Vectors) -> Vectors:
    """Scale rows to unit length; zero rows stay zero."""
    norms = np.linalg.norm(array, axis=1, keepdims=True)
    return np.asarray(array / np.where(norms > 0, norms, 1.0), dtype=np.float32)


def embed_checked(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Embed ``texts``, equal ones once, and check what comes back.

    Args:
        embedder: The model.
        texts: Any number of non-blank texts.

    Returns:
        Unit rows, shape (len(texts), embedder.dimension).

    Raises:
        EmbedderError: If the model raises, or returns another shape, NaN, infinity or a zero vector.
    """
    unique = list(dict.fromkeys(texts))
    if not unique:
        return np.zeros((0, embedder.dimension), dtype=np.float32)
    try:
        raw = embedder.embed(unique)
    except EmbedderError:
        raise
    except Exception as error:
        raise EmbedderError(f"embedder {embedder.name!r} failed on {len(unique)} texts: {error}") from error
    array = as_array(raw)
    expected = (len(unique), embedder.dimension)
    if array.shape != expected:
        raise EmbedderError(
            f"embedder {embedder.name!r} returned shape {array.shape}; expected {expected}. "
            "Check its dimension and that it returns one row a text."
        )
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise EmbedderError(
            f"embedder {embedder.name!r} returned NaN or infinity for {bad.size} text(s), the first: "
            f"{unique[int(bad[0])][:60]!r}"
        )
    array = unit_rows(array)
    zero = np.flatnonzero(~array.any(axis=1))
    if zero.size:
        raise EmbedderError(f"embedder {embedder.name!r} returned a zero vector for {unique[int(zero[0])][:60]!r}")
    if len(unique) == len(texts):
        return array
    row = {text: i for i, text in enumerate(unique)}
    return array[[row[text] for text in texts]]
