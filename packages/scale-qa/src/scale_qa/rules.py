"""What a single record must hold beyond its format. The audit and the family check share these rules.

Each rule takes a record and yields one sentence for each breach.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from scale_qa.records import LANGUAGES, LETTERS, Record
from scale_qa.tokens import words

Rule = Callable[[Record], Iterator[str]]

DIALOGUE_WORDS = (65, 480)  # the published dialogues have a median of about 105 words and 7 turns
TURNS = (4, 16)
EVIDENCE = (1, 3)
# How far an option may be from the mean length of the four: a third, or this many characters if short.
OPTION_SLACK = 12
CJK = ("zh", "ja")
_CJK_FACTOR = 1.2  # counted words of CJK text that say as much as an English word
_MARKUP = re.compile(r"</?[a-zA-Z][^>]*>|&[a-z]+;")
_PLACEHOLDER = re.compile(r"\{\w+(\|\w+)?\}")
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u2028\u2029\ufe0f\ufeff\ufffd\U0001f000-\U0001faff\u2600-\u27bf]"
)

_DIRT = {"markup": _MARKUP, "an unfilled slot": _PLACEHOLDER, "an emoji or control character": _ODD}


def turns_alternate(record: Record) -> Iterator[str]:
    """User first, then by turns, four to sixteen of them."""
    roles = [turn.role for turn in record.dialogue]
    if roles[0] != "user" or any(a == b for a, b in pairwise(roles)):
        yield "turns do not alternate user, assistant, user, ..."
    if not TURNS[0] <= len(roles) <= TURNS[1]:
        yield f"{len(roles)} turns; {TURNS[0]} to {TURNS[1]} are expected"


def dialogue_length(record: Record) -> Iterator[str]:
    """Neither a snippet nor a lecture."""
    factor = _CJK_FACTOR if record.language in CJK else 1.0
    count = round(sum(words(turn.text) for turn in record.dialogue) / factor)
    if not DIALOGUE_WORDS[0] <= count <= DIALOGUE_WORDS[1]:
        yield f"the dialogue has {count} words; {DIALOGUE_WORDS[0]} to {DIALOGUE_WORDS[1]} are expected"


def evidence_exact(record: Record) -> Iterator[str]:
    """One to three evidence texts, each exactly one turn."""
    if not EVIDENCE[0] <= len(record.expected_doc) <= EVIDENCE[1]:
        yield f"{len(record.expected_doc)} evidence turns; {EVIDENCE[0]} to {EVIDENCE[1]} are expected"
    texts = [turn.text for turn in record.dialogue]
    for text in record.expected_doc:
        if texts.count(text) != 1:
            yield f"evidence equals {texts.count(text)} turns instead of one: {text[:50]!r}"


def one_valid_option(record: Record) -> Iterator[str]:
    """Options differ in more than case and punctuation, and the query does not quote the right one."""
    if len(record.options) != len(LETTERS):
        yield f"{len(record.options)} options; four are expected"
        return
    plain = [_plain(option) for option in record.options]
    for i, a in enumerate(plain):
        for j in range(i):
            if a == plain[j]:
                yield f"options {LETTERS[j]} and {LETTERS[i]} say the same: {record.options[i]!r}"
    if _plain(record.answer_text) in _plain(record.query):
        yield "the query quotes the right option"


def options_alike(record: Record) -> Iterator[str]:
    """No option stands out by its length."""
    lengths = [len(option) for option in record.options]
    mean = sum(lengths) / max(len(lengths), 1)
    for letter, length in zip(LETTERS, lengths, strict=False):
        if abs(length - mean) > max(mean / 3, OPTION_SLACK):
            yield f"option {letter} has {length} characters, the mean is {mean:.0f}: more than a third apart"


def clean_text(record: Record) -> Iterator[str]:
    """No markup, emoji, control characters or unfilled slots."""
    for text in (*(turn.text for turn in record.dialogue), record.query, *record.options, record.reasoning):
        for what, pattern in _DIRT.items():
            if match := pattern.search(text):
                yield f"{what} {match[0]!r} in {text[:50]!r}"


def labelled(record: Record) -> Iterator[str]:
    """Stress cues, kind of overlap, language and reasoning are given."""
    if not record.stress:
        yield "no stress cue"
    if record.overlap is None:
        yield "no overlap kind"
    if record.language not in LANGUAGES:
        yield f"language {record.language!r} is not one of {', '.join(LANGUAGES)}"
    if not record.reasoning:
        yield "no reasoning"


RECORD_RULES: tuple[Rule, ...] = (
    turns_alternate,
    dialogue_length,
    evidence_exact,
    one_valid_option,
    options_alike,
    clean_text,
    labelled,
)


def breaches(record: Record) -> Iterator[tuple[str, str]]:
    """Yield (rule name, sentence) for every breach of one record."""
    for rule in RECORD_RULES:
        yield from ((rule.__name__, text) for text in rule(record))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
