"""Any sentence-transformers model by name or folder (extra ``tsim-core[sentence-transformers]``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tsim_core.embedding.base import Vectors, as_array, unit_rows
from tsim_core.errors import EmbedderError

BATCH = 32


class SentenceTransformerEmbedder:
    """A sentence-transformers model. Text longer than its window is split and the parts are averaged.

    Args:
        model: A model name of the hub, such as ``BAAI/bge-large-en-v1.5`` (the paper's), or a local folder.
        name: Identity to store with the vectors; ``model`` when None.
        device: Passed on, such as "cpu" or "cuda".

    Raises:
        EmbedderError: If sentence-transformers is not installed or the model cannot be loaded.
    """

    def __init__(self, model: str, name: str | None = None, device: str | None = None) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EmbedderError(
                f"{model!r} needs sentence-transformers; pip install 'tsim-core[sentence-transformers]'"
            ) from error
        try:
            self._model: Any = SentenceTransformer(model, device=device)
        except Exception as error:
            raise EmbedderError(f"sentence-transformers cannot load {model!r}: {error}") from error
        self.name = name or model
        self.dimension = int(self._model.get_sentence_embedding_dimension() or 0)
        self.max_tokens: int | None = self._model.max_seq_length

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch; see `Embedder.embed`."""
        parts: list[str] = []
        owner: list[int] = []
        weight: list[int] = []
        for i, text in enumerate(texts):
            for part, length in self._windows(text):
                parts.append(part)
                owner.append(i)
                weight.append(length)
        encoded = as_array(self._model.encode(parts, batch_size=BATCH, show_progress_bar=False))
        pooled = np.zeros((len(texts), self.dimension), dtype=np.float32)
        np.add.at(pooled, owner, unit_rows(encoded) * np.asarray(weight, dtype=np.float32)[:, None])
        return unit_rows(pooled)

    def _windows(self, text: str) -> list[tuple[str, int]]:
        """Split at word borders so that each part fits the window; long words are split by characters."""
        limit = self.max_tokens
        if limit is None or len(text) < limit:  # a token is at least a character
            return [(text, 1)]
        count = len(self._model.tokenizer(text, truncation=False, verbose=False)["input_ids"])
        if count <= limit or len(text) < 2:
            return [(text, count)]
        middle = len(text) // 2
        space = text.rfind(" ", 0, middle)
        at = space if space > middle // 2 else middle
        halves = [half for half in (text[:at], text[at:]) if half.strip()]
        return [window for half in halves for window in self._windows(half)]
