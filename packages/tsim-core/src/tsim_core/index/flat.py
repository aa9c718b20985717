"""Exact cosine search over unit vectors that grow with their thread, by FAISS."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tsim_core.embedding import Vectors
from tsim_core.index.growing import Growing


class FlatIndex:
    """Rows of unit vectors, appended and never rebuilt.

    Args:
        dimension: Width of a row.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._rows = Growing(np.float32, dimension)

    def __len__(self) -> int:
        return len(self._rows)

    def reserve(self, more: int) -> None:
        """Make room for so many rows more."""
        self._rows.reserve(more)

    def add(self, vectors: Vectors) -> None:
        """Append rows, shape (n, dimension). A zero row is allowed and is like nothing."""
        self._rows.extend(vectors)

    @property
    def rows(self) -> Vectors:
        """All rows, shape (n, dimension): a view."""
        return self._rows.rows

    def search(
        self, query: Vectors, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], Vectors]:
        """The rows nearest to a query.

        Args:
            query: Unit vector, shape (dimension,).
            k: Most rows.
            allowed: Rows that may be found, shape (len(self),); all when None.

        Returns:
            Row numbers and cosines, best first.
        """
        import faiss  # slow to import, and not needed by every command

        rows = self.rows if allowed is None else self.rows[allowed]
        k = min(k, len(rows))
        if k <= 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        scores, found = faiss.knn(query[None, :].astype(np.float32), rows, k, metric=faiss.METRIC_INNER_PRODUCT)
        return found[0] if allowed is None else np.flatnonzero(allowed)[found[0]], scores[0]
