"""Interim."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class LexicalIndex:
    """Interim."""

    def add(self, rows: Sequence[NDArray[np.uint32]]) -> None:
        """Interim."""
