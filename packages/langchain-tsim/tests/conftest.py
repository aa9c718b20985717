"""A small deterministic embedder and a memory on it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from tsim_core import EpisodicMemory
from tsim_core.embedding import Vectors, unit_rows


class WordEmbedder:
    """Hashed bag of words: texts that share words are alike. Keeps what it embedded."""

    name = "words"
    dimension = 256
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


@pytest.fixture
def memory(embedder: WordEmbedder) -> Iterator[EpisodicMemory]:
    with EpisodicMemory(embedder=embedder) as memory:
        yield memory
