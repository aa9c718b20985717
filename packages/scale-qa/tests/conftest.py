"""What many tests need: a small data set drawn from the shipped families, and a record made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from scale_qa.families import shipped_families
from scale_qa.generate import generate
from scale_qa.noise import NoisePool, own_noise
from scale_qa.records import Message, NoiseDialogue, Record


@pytest.fixture(scope="session")
def small_set() -> list[Record]:
    """120 records, 12 a domain."""
    return generate(shipped_families(), 120, 3)


@pytest.fixture(scope="session")
def own_pool() -> Iterator[NoisePool]:
    """About 60k tokens of own noise."""
    with NoisePool() as pool:
        pool.add(own_noise(5), up_to_words=46_000)
        yield pool


@pytest.fixture
def make_record() -> Callable[..., Record]:
    """A record with six turns, evidence in the first and the last user turn; keyword arguments replace fields."""

    def make(**changes: Any) -> Record:
        texts = ["The gate code is seven.", "Noted.", "Tea?", "Gladly.", "Scrap the code, it is nine.", "Done."]
        roles = ("user", "assistant")
        record = Record(
            id="our:Legal-001",
            topic="Legal",
            dialogue=tuple(Message(roles[i % 2], text) for i, text in enumerate(texts)),
            query="Which gate code do I type?",
            options=("seven", "nine", "eight", "ten"),
            answer="B",
            expected_doc=(texts[0], texts[4]),
            reasoning="The later turn replaces the code.",
            stress=("state_overwrite",),
            overlap="lexical",
        )
        return replace(record, **changes)

    return make


@pytest.fixture
def make_pool() -> Iterator[Callable[[int, int], NoisePool]]:
    """A pool of ``count`` noise dialogues of two turns with ``size`` words each."""
    with ExitStack() as stack:

        def make(count: int, size: int) -> NoisePool:
            pool = stack.enter_context(NoisePool())
            for i in range(count):
                turns = (Message("user", f"noise {i}"), Message("assistant", "w " * (size - 2)))
                pool.add([NoiseDialogue(f"n{i}", "test", "MIT", turns)])
            return pool

        yield make
