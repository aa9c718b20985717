"""Text to terms, for the lexical view. One analysis for every script, with nothing to configure.

- Words are case-folded, freed of accents and stemmed (Snowball English; it leaves most other words alone).
- Identifiers such as ``PEG-20``, ``#402``, ``v1.2.3`` or ``src/app.py`` are kept whole *and* in parts.
- Scripts without spaces become overlapping n-grams: Han and kana single characters and pairs, Thai and its kin triples.
  Hangul words stay whole and give pairs too, since their endings vary.

- A name before a colon, as in ``Ann: hello``, says who speaks; it gives terms of its own beside the words.

There is no list of stop words: a term that is everywhere weighs nothing (see `tsim_core.index.lexical`).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from zlib import crc32

import numpy as np
import Stemmer  # type: ignore[import-not-found, import-untyped, unused-ignore]
from numpy.typing import NDArray

ANALYSIS_VERSION = 4
"""Grows with every change to what `hashed_terms` or `without_label` returns, or to the state that segmentation keeps:
what is stored has to be made anew."""

Terms = NDArray[np.uint32]

_ACCENTS = re.compile("[\u0300-\u036f]")
_PAIRED = "\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TRIPLED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_HANGUL = "\uac00-\ud7af"
# Vowel signs and points: parts of words that are no letters to the `re` module.
_MARKS = "\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0962-\u0963\u0980-\u0dff"
_LETTER = rf"(?:(?![{_PAIRED}{_TRIPLED}])[^\W_]|[{_MARKS}])"
_TOKEN = re.compile(rf"(?P<paired>[{_PAIRED}]+)|(?P<tripled>[{_TRIPLED}]+)|(?P<word>{_LETTER}+(?:'{_LETTER}+)*)")
_ASCII_WORD = re.compile(r"[a-z\d]+(?:'[a-z\d]+)*")  # what `_TOKEN` finds in plain text, sooner
# A word with all that is joined to it. Possessive: a long run without spaces must not be tried at every start.
_IDENTIFIER = re.compile(r"(?<!\w)[#@]?\w++(?:[-./:@#\\+]++\w++)*+")
_IDENTIFYING = re.compile(r"[\d_/@#\\]")
_LABEL = re.compile(r"\s*([^\W\d_][\w.'-]*(?: [^\W\d_][\w.'-]*){0,2})\s?[:：]\s*\S")
_SPOKEN_BY = "\0"  # begins the terms of a label; no word holds it
_ACRONYMS = re.compile(r"\b([A-Z]{2,})s\b")  # a stemmer takes "GPUs" for a word like "bus"
_THOUSANDS = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")

_local = threading.local()  # a Stemmer is not to be shared by threads


def normalised(text: str) -> str:
    """Case-folded, in compatibility form, without accents."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
        text = text.replace("\u2019", "'")
    return text.casefold()


def terms(text: str) -> Iterator[str]:
    """The terms of a text, with repeats."""
    text = normalised(_ACRONYMS.sub(r"\1", text))
    yield from map(_stem, _ASCII_WORD.findall(text)) if text.isascii() else _tokens(text)
    for match in _IDENTIFIER.finditer(text):
        if not match[0].isalnum() and _IDENTIFYING.search(match[0]):
            yield match[0]
    for match in _THOUSANDS.finditer(text):
        yield match[0].replace(",", "")


def _tokens(text: str) -> Iterator[str]:
    """The words and n-grams of a normalised text of any script."""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if match.lastgroup == "word":
            yield _stem(token)
            if "\uac00" <= token[0] <= "\ud7af":
                yield from _grams(token, 2)
        elif match.lastgroup == "paired":
            yield from token
            yield from _grams(token, 2)
        else:
            yield from _grams(token, 3) if len(token) > 3 else (token,)


def hashed_terms(text: str) -> Terms:
    """The terms of a text as 32-bit hashes, with repeats, the same on every machine."""
    return np.fromiter(map(_hash, [*terms(text), *label_terms(text)]), dtype=np.uint32)


def label_terms(text: str) -> Iterator[str]:
    """Terms of who speaks, where a text begins with a name and a colon."""
    match = _LABEL.match(text)
    if match and not match[1][0].islower():
        yield from (_SPOKEN_BY + term for term in terms(match[1]) if len(term) > 1)


def without_label(text: str) -> str:
    """A text without the name that it begins with: "Ana Paz: at noon" says "at noon"."""
    match = _LABEL.match(text)
    if match is None or any(word[0].islower() for word in match[1].split()):
        return text
    return text[match.end() - 1 :]


def query_terms(query: str) -> tuple[Terms, Terms]:
    """What to look up for a query.

    Returns:
        Its distinct terms as hashes, and of each the term of a label that names the same; both of one length.
    """
    distinct = dict.fromkeys(terms(query))
    words = np.fromiter(map(_hash, distinct), dtype=np.uint32)
    return words, np.fromiter((_hash(_SPOKEN_BY + term) for term in distinct), dtype=np.uint32)


def _grams(token: str, n: int) -> Iterator[str]:
    for i in range(len(token) - n + 1):
        yield token[i : i + n]


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    if "'" in word:
        first, *_, last = word.split("'")
        word = first if last == "s" else last if len(first) <= 2 else word.replace("'", "")
    if not hasattr(_local, "stem"):
        _local.stem = Stemmer.Stemmer("english").stemWord
    stemmed: str = _local.stem(word)
    return stemmed


@lru_cache(maxsize=1 << 16)
def _hash(term: str) -> int:
    return crc32(term.encode("utf-8", "surrogatepass"))
