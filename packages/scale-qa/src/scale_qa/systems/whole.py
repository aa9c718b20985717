"""The two ends of the scale and a diagnostic: everything, nothing, and the true dialogues."""

from __future__ import annotations

from collections.abc import Sequence

from tsim_core.types import Turn

from scale_qa.systems import SystemSpec
from scale_qa.systems.base import MemorySystem, Resources, Unit
from scale_qa.systems.spans import HybridSpans, Span


class FullContext(MemorySystem):
    """Hands over the whole thread."""

    def __init__(self, resources: Resources) -> None:
        self._turns = 0

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Count turns."""
        self._turns += len(turns)

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """Everything, as one unit."""
        return [Unit(tuple(range(self._turns)))] if self._turns else []


class NoContext(MemorySystem):
    """Hands over nothing: the control for answer models, which may guess."""

    def __init__(self, resources: Resources) -> None: ...

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Forget them."""

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """Nothing."""
        return []


class Sessions(HybridSpans):
    """The true source dialogues as units, under the score of ``sliding-3``. Nobody has these boundaries."""

    notes = ("diagnostic: the true dialogue boundaries are given",)
    wants_gold = True

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources, self._with_gold)
        self._gold: list[tuple[int, ...]] = []

    def take_gold(self, units: Sequence[Sequence[int]]) -> None:
        """The turns of every source dialogue."""
        self._gold = [tuple(unit) for unit in units]

    def _with_gold(self, tokens: Sequence[float]) -> list[Span]:
        """The true dialogues; a turn of none (written back later) is a unit by itself."""
        n = len(tokens)
        given = {i for unit in self._gold for i in unit}
        whole = [unit for unit in self._gold if unit and unit[-1] < n]
        return [*whole, *(range(i, i + 1) for i in range(n) if i not in given)]


SPECS = [
    SystemSpec("full-context", "the whole thread", FullContext),
    SystemSpec("no-context", "nothing: the control for answer models", NoContext),
    SystemSpec("sessions", "the true dialogues as units, hybrid score (diagnostic)", Sessions),
]
