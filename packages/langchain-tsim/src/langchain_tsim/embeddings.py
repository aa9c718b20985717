"""Any LangChain ``Embeddings`` object as the embedder of a memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike

from langchain_core.embeddings import Embeddings
from tsim_core import EmbedderError, EpisodicMemory, StoreMismatchError, TSIMConfig
from tsim_core.embedding import (
    CallableEmbedder,
    Embedder,
    EmbedderLike,
    Vectors,
    embed_checked,
    resolve_embedder,
    unit_rows,
)
from tsim_core.embedding.base import as_array

MODEL_FIELDS = ("model", "model_name", "model_id", "deployment", "deployment_name", "repo_id", "azure_deployment")


class LangChainEmbedder:
    """Makes an embedder of a LangChain ``Embeddings`` object.

    Turns go through ``embed_documents`` and queries through ``embed_query``, which differ in some models.

    Args:
        embeddings: The object. Its own window and batching apply; a text that exceeds the window is its affair.
        name: Identity to store with the vectors: a store opens only with the same. The class and its model when None.
        dimension: Width of a vector. When None, what the object says in ``dimensions``, or else the width of one that
            it is asked for.

    Raises:
        EmbedderError: If it is no ``Embeddings`` object, or fails when asked for its dimension.
    """

    max_tokens: int | None = None

    def __init__(self, embeddings: Embeddings, name: str | None = None, dimension: int | None = None) -> None:
        if not isinstance(embeddings, Embeddings):
            raise EmbedderError(f"{type(embeddings).__name__} is no LangChain Embeddings object")
        self.embeddings = embeddings
        self.name = name or _identity(embeddings)
        self.dimension = dimension or getattr(embeddings, "dimensions", None) or self._ask_dimension()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed turns; see `tsim_core.embedding.Embedder.embed`."""
        return unit_rows(as_array(self.embeddings.embed_documents(list(texts))))

    def embed_query(self, query: str) -> Vectors:
        """The unit vector of a query, shape (dimension,).

        Raises:
            EmbedderError: If the object fails or returns another shape, NaN or a zero vector.
        """
        return self._checked(query, lambda texts: [self.embeddings.embed_query(text) for text in texts])

    async def aembed_query(self, query: str) -> Vectors:
        """Async twin of `embed_query`, by the object's own ``aembed_query``."""
        try:
            values = await self.embeddings.aembed_query(query)
        except Exception as error:
            raise EmbedderError(f"embedder {self.name!r} failed on a query: {error}") from error
        return self._checked(query, lambda texts: [values])

    def _checked(self, query: str, function: Callable[[list[str]], object]) -> Vectors:
        vectors = embed_checked(CallableEmbedder(function, self.name, self.dimension), [query])
        return vectors.reshape(self.dimension)

    def _ask_dimension(self) -> int:
        try:
            return len(self.embeddings.embed_query("dimension"))
        except Exception as error:
            raise EmbedderError(
                f"embedder {self.name!r} failed when asked for its dimension: {error}. Pass dimension= to go without"
            ) from error


def as_embedder(embedder: EmbedderLike | Embeddings) -> Embedder:
    """What a user passes as ``embedder=`` as an embedder: as in the core, or a LangChain ``Embeddings`` object."""
    return LangChainEmbedder(embedder) if isinstance(embedder, Embeddings) else resolve_embedder(embedder)


def open_memory(
    memory: EpisodicMemory | str | PathLike[str],
    *,
    embedder: EmbedderLike | Embeddings = None,
    config: TSIMConfig | None = None,
) -> EpisodicMemory:
    """A memory from where it is stored, with any LangChain ``Embeddings`` object as embedder.

    Args:
        memory: Location of a store, made where it is missing; or a memory, which is returned.
        embedder: See `as_embedder`. The core's default when None.
        config: See `EpisodicMemory`.

    Raises:
        StoreMismatchError: If ``memory`` is open with another embedder or configuration than the one given.
        StoreError: If the store cannot be opened.
    """
    if not isinstance(memory, EpisodicMemory):
        return EpisodicMemory(memory, embedder=as_embedder(embedder), config=config)
    if embedder is not None and (other := as_embedder(embedder).name) != memory.embedder.name:
        raise StoreMismatchError(f"{memory!r} is open already; it cannot change its embedder to {other!r}")
    if config is not None and config != memory.config:
        raise StoreMismatchError(f"{memory!r} is open already with another configuration")
    return memory


def _identity(embeddings: Embeddings) -> str:
    kind = type(embeddings).__name__
    for field in MODEL_FIELDS:
        if isinstance(model := getattr(embeddings, field, None), str) and model:
            return f"langchain:{kind}:{model}"
    return f"langchain:{kind}"
