"""Interim."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FusedRanking:
    """Interim."""

    weight: float = 1.0
