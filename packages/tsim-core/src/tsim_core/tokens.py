"""Length estimators: how many tokens of a language model a text is likely to be."""

from __future__ import annotations

import re
from collections.abc import Callable

from tsim_core.errors import ConfigError

Estimator = Callable[[str], float]
"""Text to estimated tokens."""

TOKENS_PER_WORD = 1.3
_LONGEST_WORD = 12  # a longer run of letters is a compound, an identifier or a blob
_CHARACTERS_PER_TOKEN = 3.5  # within such a run
_BLOB = re.compile(r"[^\W_]{25,}")  # no natural word: a hash, a key, base64
_CHARACTERS_PER_BLOB_TOKEN = 1.5
# Scripts that put no spaces between words, with the characters that one token covers in common BPE vocabularies.
_UNSPACED = re.compile(
    "(?P<han>[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
    "|(?P<kana>[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f])"
    "|(?P<brahmic>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])"  # Thai, Lao, Burmese, Khmer
    "|(?P<hangul>[\uac00-\ud7af\u1100-\u11ff])"
)
_TOKENS_PER_CHARACTER = {"han": 1.0, "kana": 0.8, "brahmic": 0.6, "hangul": 0.8}


def published(text: str) -> float:
    """The paper's estimate: 1.3 times the whitespace-separated words. A page of Chinese counts as one word."""
    return TOKENS_PER_WORD * len(text.split())


def universal(text: str) -> float:
    """The published estimate where words are words, and a fair one for everything else.

    Ordinary words count 1.3 as in the paper. Long unbroken runs (paths, hashes, compounds) count by their characters,
    and so do scripts that are written without spaces.
    """
    unspaced = 0.0
    if not text.isascii():
        unspaced = sum(_TOKENS_PER_CHARACTER[m.lastgroup or "han"] for m in _UNSPACED.finditer(text))
        if unspaced:
            text = _UNSPACED.sub(" ", text)
    spaced = 0.0
    for word in text.split():
        if len(word) <= _LONGEST_WORD:
            spaced += TOKENS_PER_WORD
        else:
            blobs = sum(map(len, _BLOB.findall(word)))
            plain = len(word) - blobs
            spaced += max(TOKENS_PER_WORD, plain / _CHARACTERS_PER_TOKEN + blobs / _CHARACTERS_PER_BLOB_TOKEN)
    return spaced + unspaced


ESTIMATORS: dict[str, Estimator] = {"published": published, "universal": universal}


def resolve_estimator(name: str) -> Estimator:
    """The estimator of that name.

    Raises:
        ConfigError: If there is none.
    """
    try:
        return ESTIMATORS[name]
    except KeyError:
        raise ConfigError(f"unknown token estimator {name!r}; known: {', '.join(sorted(ESTIMATORS))}") from None
