"""Exact cosine search over unit vectors: a FAISS flat index that grows with its thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsim_core.embedding import Vectors


class FlatIndex:
    """Rows of unit vectors, appended one by one and never rebuilt.

    Args:
        dimension: Width of a row.
    """

    def __init__(self, dimension: int) -> None:
        import faiss  # slow to import, and not needed by every command

        self.dimension = dimension
        self._faiss: Any = faiss
        self._index: Any = faiss.IndexFlatIP(dimension)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def add(self, vectors: Vectors) -> None:
        """Append rows, shape (n, dimension). A zero row is allowed and is like nothing."""
        if len(vectors):
            self._index.add(np.ascontiguousarray(vectors, dtype=np.float32))

    @property
    def rows(self) -> Vectors:
        """All rows, shape (n, dimension): a view of the index's own memory, valid until the next `add`."""
        n = len(self)
        if n == 0:
            return np.zeros((0, self.dimension), dtype=np.float32)
        flat: Vectors = self._faiss.rev_swig_ptr(self._index.get_xb(), n * self.dimension)
        return flat.reshape(n, self.dimension)

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
        chosen = None if allowed is None else np.flatnonzero(allowed)
        k = min(k, len(self) if chosen is None else len(chosen))
        if k <= 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        parameters = None
        if chosen is not None:
            parameters = self._faiss.SearchParameters(sel=self._faiss.IDSelectorBatch(chosen))
        scores, rows = self._index.search(query[None, :].astype(np.float32), k, params=parameters)
        return rows[0], scores[0]
