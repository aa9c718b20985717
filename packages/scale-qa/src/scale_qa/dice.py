"""A seeded source of choices that is the same on every machine and Python version.

`random.Random` promises that only for ``random()``, not for ``shuffle``, ``choice`` or ``sample``.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableSequence, Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws from a stream of SHA-256 blocks.

    Args:
        seed: Anything with a stable text form, such as ``Dice(7, "noise")``; another seed, another stream.
    """

    def __init__(self, *seed: int | str) -> None:
        self._key = hashlib.sha256("\x1f".join(map(str, seed)).encode("utf-8")).digest()
        self._block = 0
        self._numbers: list[int] = []

    def below(self, limit: int) -> int:
        """A whole number in [0, limit), each equally likely."""
        if limit < 1:
            raise ValueError(f"cannot draw below {limit}")
        bound = (1 << 64) - (1 << 64) % limit  # above it, a remainder would favour small numbers
        while True:
            number = self._next()
            if number < bound:
                return number % limit

    def choice(self, items: Sequence[T]) -> T:
        """One of ``items``."""
        return items[self.below(len(items))]

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Shuffle in place."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """A shuffled copy."""
        copy = list(items)
        self.shuffle(copy)
        return copy

    def _next(self) -> int:
        if not self._numbers:
            block = hashlib.sha256(self._key + self._block.to_bytes(8, "big")).digest()
            self._block += 1
            self._numbers = [int.from_bytes(block[i : i + 8], "big") for i in range(0, 32, 8)]
        return self._numbers.pop()
