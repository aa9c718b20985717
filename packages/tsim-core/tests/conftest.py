"""A small deterministic embedder, so that most tests need no model."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from tsim_core.embedding import Vectors, unit_rows


class WordEmbedder:
    """Hashed bag of words: texts that share words are alike. Counts what it embeds."""

    name = "words"
    dimension = 64
    max_tokens: int | None = None

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        array = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()) or [text]:
                array[row, zlib.crc32(word.encode("utf-8", "surrogatepass")) % self.dimension] += 1
        return unit_rows(array)


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()
