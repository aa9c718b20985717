"""The benchmark's length unit."""

from __future__ import annotations

import re

# CJK text has no spaces, so a word count would call a whole paragraph one token. Ten characters count as seven words,
# which makes 0.9 tokens a character: about what common vocabularies need.
_CJK = re.compile("[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff01-\uffee]")
_SUFFIXES = {"k": 1_000, "m": 1_000_000}


def words(text: str) -> int:
    """Number of whitespace-separated words; of CJK text seven for ten characters, rounded up."""
    spaced, characters = _CJK.subn(" ", text)
    return len(spaced.split()) + (7 * characters + 9) // 10


def estimate_tokens(text: str) -> float:
    """Estimated tokens of ``text``: 1.3 x words (paper, section 3)."""
    return words_to_tokens(words(text))


def words_to_tokens(count: int) -> float:
    """Estimated tokens of ``count`` words. Budgets add up whole words, which no machine rounds."""
    return count * 13 / 10


def parse_tokens(value: str) -> int:
    """Read a length such as ``16k``, ``1M`` or ``131072``; k is 1,000.

    Raises:
        ValueError: If it is no positive whole length.
    """
    text = value.strip().lower().replace("_", "").replace(",", "")
    factor = _SUFFIXES.get(text[-1:], 1)
    number = text[:-1] if factor > 1 else text
    if not number.isascii() or not number.isdigit() or int(number) == 0:
        raise ValueError(f"{value!r} is no length: write tokens such as 16k, 128k, 1M or 131072")
    return int(number) * factor
