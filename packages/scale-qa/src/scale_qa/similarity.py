"""Word overlap of short texts, for the audit and the family check."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"\w+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_COMMON = frozenset(
    """about after again anything before being could doing every everything first getting given going having
    instead later maybe might never other otherwise people please question quick really right second should
    since something still their thank thanks there these thing things think third those though three today
    tomorrow under until using wants where whether which while whole without would yesterday""".split()  # noqa: SIM905
)


def terms(text: str) -> list[str]:
    """Lower-case words; in CJK text pairs of neighbouring characters."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if not word.isascii() and _CJK.search(word):
            found += [word[i : i + 2] for i in range(max(len(word) - 1, 1))]
        else:
            found.append(word)
    return found


def rare_words(text: str) -> set[str]:
    """Terms that are likely to be rare: numbers, CJK pairs, long words that are not common."""
    return {
        term
        for term in terms(text)
        if term not in _COMMON and (len(term) >= 5 or not term.isascii() or any(map(str.isdigit, term)))
    }


def overlap(a: str, b: str) -> float:
    """Jaccard overlap of the terms of two texts, 0 to 1."""
    first, second = _term_set(a), _term_set(b)
    return len(first & second) / max(len(first | second), 1)


@lru_cache(maxsize=50_000)
def _term_set(text: str) -> frozenset[str]:
    return frozenset(terms(text))
