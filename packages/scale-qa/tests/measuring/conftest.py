"""A small package whose answers are known, and an embedder that is a bag of words."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scale_qa.embeddings import CachedEmbedder
from scale_qa.package import GoldUnit, Package, PackageWriter, Question
from scale_qa.run import Runner, RunSettings
from tsim_core import Turn

# Four dialogues; the evidence of a question is named by the words that only it has.
TALKS = [
    [
        "The gate code of Marrowgate is seven.",
        "Noted, Marrowgate gate is seven.",
        "Scrap that, Marrowgate gate is nine.",
    ],
    ["Quillon releases leave on Thursday.", "Thursday it is.", "Unless the tide table says otherwise."],
    ["My sourdough starter needs rye flour.", "Rye flour feeds it well.", "Feed it twice in winter."],
    ["Tell me of basalt columns.", "Basalt columns form as lava cools.", "And granite?"],
]
QUESTIONS = [
    ("gate", "Which gate code holds at Marrowgate?", (0, 2), "Legal", ("state_overwrite",), "lexical"),
    ("release", "On which day do Quillon releases leave?", (3,), "Finance", (), "lexical"),
    ("bread", "What flour does the sourdough starter need?", (6,), "Legal", ("constraint_trap",), "paraphrase"),
    ("winter", "How often is it fed when snow lies?", (8,), "Finance", (), None),
]


class BagOfWords:
    """Counts of hashed words, scaled: texts that share words are near each other."""

    name = "bag-of-words"
    dimension = 64
    max_tokens = None

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.embedded += texts
        rows = np.full((len(texts), self.dimension), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                rows[row, zlib.crc32(word.strip(".,?!").encode()) % self.dimension] += 1.0
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def bag() -> BagOfWords:
    return BagOfWords()


@pytest.fixture
def embedder(bag: BagOfWords) -> CachedEmbedder:
    return CachedEmbedder(bag)


@pytest.fixture
def turns() -> list[Turn]:
    roles = ("user", "assistant", "user")
    return [Turn(role, text) for talk in TALKS for role, text in zip(roles, talk, strict=True)]


@pytest.fixture
def package(tmp_path: Path, turns: list[Turn]) -> Package:
    """Two threads of the same turns with two questions each."""
    writer = PackageWriter(tmp_path / "package")
    gold = [GoldUnit(f"talk{i}", "truth", ((3 * i, 3 * i + 3),)) for i in range(len(TALKS))]
    asked = [
        Question(name, query, evidence, "B", ("seven", "nine", "ten", "two"), topic, stress, overlap, reasoning="why")
        for name, query, evidence, topic, stress, overlap in QUESTIONS
    ]
    writer.write_batch(turns, asked[:2], gold)
    writer.write_batch(turns, asked[2:], gold)
    return writer.finish(name="tiny", arrangement="blocks", target_tokens=1_000, noise=[{"source": "own"}])


@pytest.fixture
def make_runner(package: Package, embedder: CachedEmbedder) -> Callable[..., Runner]:
    def make(answerer: Any = None, llm: Any = None, **settings: Any) -> Runner:
        settings.setdefault("embedder", embedder.name)
        return Runner(package, RunSettings(**settings), embedder, answerer, llm)

    return make
