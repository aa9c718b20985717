"""Static word vectors in model2vec's format (extra ``tsim-core[static]``): a hundred times faster, weaker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tsim_core.embedding.base import Vectors, as_array, unit_rows
from tsim_core.errors import EmbedderError


class StaticEmbedder:
    """A model2vec model: every token has one vector and a text is their mean, so no window limits it.

    Args:
        model: A local folder or a name of the hub, such as ``minishlab/potion-base-8M``.
        name: Identity to store with the vectors; ``model`` when None.

    Raises:
        EmbedderError: If model2vec is not installed or the model cannot be loaded.
    """

    max_tokens: int | None = None

    def __init__(self, model: str, name: str | None = None) -> None:
        try:
            from model2vec import StaticModel
        except ImportError as error:
            raise EmbedderError(f"{model!r} needs model2vec; pip install 'tsim-core[static]'") from error
        try:
            self._model: Any = StaticModel.from_pretrained(model)
        except Exception as error:
            raise EmbedderError(f"model2vec cannot load {model!r}: {error}") from error
        self.name = name or model
        self.dimension = int(self._model.dim)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch; see `Embedder.embed`."""
        return unit_rows(as_array(self._model.encode(list(texts), max_length=None)))
