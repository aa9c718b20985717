"""Interim."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Assembly:
    """Interim."""

    k: int | None = 5
    max_tokens: int | None = 1300

    @classmethod
    def published(cls, k: int = 5) -> Assembly:
        """Interim."""
        return cls(k=k, max_tokens=None)
