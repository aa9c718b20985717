"""Interim: replaced by the real text analysis shortly."""

import re
import zlib

import numpy as np
from numpy.typing import NDArray

ANALYSIS_VERSION = 1


def hashed_terms(text: str) -> NDArray[np.uint32]:
    """Hashed words."""
    words = re.findall(r"\w+", text.lower())
    return np.array([zlib.crc32(w.encode("utf-8", "surrogatepass")) for w in words], dtype=np.uint32)
