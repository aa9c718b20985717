"""An array whose rows are appended at an amortised constant cost each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


class Growing:
    """Rows of one kind. What `rows` returned stays as it is when more are appended.

    Args:
        dtype: Type of their elements.
        width: Elements of a row; one that is no array when None.
    """

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        self._shape = () if width is None else (width,)
        self._held: NDArray[Any] = np.empty((0, *self._shape), dtype=dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> NDArray[Any]:
        """All rows, shape (n,) or (n, width): a view."""
        return self._held[: self._size]

    def reserve(self, more: int) -> None:
        """Make room for so many rows more. Memory that is reserved and not used costs nothing on most systems."""
        needed = self._size + more
        if needed > len(self._held):
            held = np.empty((needed + needed // 8 + 16, *self._shape), dtype=self._held.dtype)
            held[: self._size] = self.rows
            self._held = held

    def extend(self, rows: ArrayLike) -> None:
        """Append rows, shape (n,) or (n, width)."""
        new = np.asarray(rows)
        self.reserve(len(new))
        self._held[self._size : self._size + len(new)] = new
        self._size += len(new)
