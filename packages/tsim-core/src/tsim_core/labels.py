"""Who spoke, of many turns: a handful of names, and a number for each turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tsim_core.types import Turn


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of names.

    Attributes:
        names: The different ones.
        numbers: Which of them each row has, shape (n,).
    """

    names: tuple[str, ...]
    numbers: NDArray[np.uint32]

    @classmethod
    def of(cls, labels: Iterable[str]) -> Labels:
        """A column of these, in order."""
        number: dict[str, int] = {}
        numbers = [number.setdefault(label, len(number)) for label in labels]
        return cls(tuple(number), np.array(numbers, dtype=np.uint32))

    @classmethod
    def joined(cls, parts: Sequence[Labels]) -> Labels:
        """Several columns as one."""
        number: dict[str, int] = {}
        numbers = [part.renumbered(number) for part in parts]
        return cls(tuple(number), np.concatenate(numbers) if numbers else np.zeros(0, dtype=np.uint32))

    def renumbered(self, number: dict[str, int]) -> NDArray[np.uint32]:
        """The numbers that its rows have by another numbering, which gets the names that it lacks."""
        new = [number.setdefault(name, len(number)) for name in self.names]
        renumbered: NDArray[np.uint32] = np.array(new, dtype=np.uint32)[self.numbers]
        return renumbered

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: int) -> str:
        return self.names[int(self.numbers[row])]

    def taken(self, rows: NDArray[np.int64]) -> Labels:
        """These rows of it, with the names that they have."""
        used, numbers = np.unique(self.numbers[rows], return_inverse=True)
        return Labels(tuple(self.names[i] for i in used.tolist()), numbers.astype(np.uint32))

    def rows(self, name: str) -> NDArray[np.int64]:
        """Rows with that name, ascending."""
        return np.flatnonzero(self.numbers == self.names.index(name))


def label_of(turn: Turn) -> str:
    """Who spoke: the name that the turn's metadata gives under "name" or "speaker", or else the role."""
    metadata = turn.metadata or {}
    name = metadata.get("name") or metadata.get("speaker")
    return name if name and isinstance(name, str) else turn.role
