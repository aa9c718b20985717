"""Interim."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tsim_core.segmentation import ClosedSegment, Fetch, SegTurn


@dataclass(frozen=True)
class Linking:
    """Interim."""

    reach: int = 4


class Linker:
    """Interim."""

    def __init__(self, config: Linking) -> None: ...

    def assign(self, segment: ClosedSegment, turns: Sequence[SegTurn]) -> int | None:
        """Interim."""
        return None

    guess = assign

    def state(self) -> dict[str, Any]:
        """Interim."""
        return {}

    def restore(self, state: dict[str, Any], fetch: Fetch) -> None:
        """Interim."""
