"""Noise of our own making, and the pool that a package is filled from.

Own noise is drawn from hand-written grammars (``data/noise/*.yaml``, described in NOISE.md). A grammar is a kind of
chat: rows of facts, free slots, ways to open, exchanges that may follow, ways to close. A turn is a list of sentences,
each with several wordings, so two dialogues differ in facts, order, number of exchanges and words. No turn text is
ever given twice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from scale_qa.dice import Dice
from scale_qa.errors import FamilyError
from scale_qa.families import fields, load_yaml, parse_cases, parse_slots, render
from scale_qa.records import Message, NoiseDialogue, dump_line, noise_from_dict, noise_to_dict
from scale_qa.tokens import words, words_to_tokens

OWN_SOURCE = "own"
OWN_LICENCE = "MIT"
_TRIES = 12  # drawings of a turn before its exchange is passed over
_MOST = 300  # dialogues of one grammar: beyond that they would begin to sound alike
_GIVE_UP = 6  # dialogues in a row that a grammar cannot word freshly before it counts as used up

Sentences = tuple[tuple[str, ...], ...]
Exchange = tuple[Sentences, Sentences]


@dataclass(frozen=True, slots=True)
class Grammar:
    """One kind of chat.

    Attributes:
        id: Unique, kebab-case.
        cases: Rows of facts; a dialogue takes one.
        slots: Values that are drawn on their own.
        openings: Exchanges (user, assistant) that a dialogue may begin with.
        exchanges: What may follow.
        closings: What may end it; a dialogue in two has one.
        length: Fewest and most exchanges between opening and closing.
    """

    id: str
    cases: tuple[Mapping[str, str], ...]
    slots: Mapping[str, tuple[str, ...]]
    openings: tuple[Exchange, ...]
    exchanges: tuple[Exchange, ...]
    closings: tuple[Exchange, ...]
    length: tuple[int, int]


def own_noise(seed: int | str, grammars: Sequence[Grammar] | None = None) -> Iterator[NoiseDialogue]:
    """Draw dialogues until the material is used up; no turn comes twice.

    Args:
        seed: Other seed, other dialogues in another order; the same seed gives the same everywhere.
        grammars: Those that the package ships when None.
    """
    active = list(shipped_grammars() if grammars is None else grammars)
    dice = Dice(seed, "own noise")
    said: set[bytes] = set()
    used: Counter[tuple[object, ...]] = Counter()
    failures = dict.fromkeys((grammar.id for grammar in active), 0)
    numbers = dict.fromkeys(failures, 0)
    while active:
        for grammar in dice.shuffled(active):
            turns = _dialogue(grammar, dice, said, used)
            if turns:
                failures[grammar.id] = 0
                numbers[grammar.id] += 1
                yield NoiseDialogue(f"{grammar.id}-{numbers[grammar.id]:05d}", OWN_SOURCE, OWN_LICENCE, turns)
            else:
                failures[grammar.id] += 1
        active = [g for g in active if failures[g.id] < _GIVE_UP and numbers[g.id] < _MOST]


def shipped_grammars() -> list[Grammar]:
    """Every grammar of the package, by id.

    Raises:
        FamilyError: If a file is malformed.
    """
    folder = Path(str(resources.files("scale_qa") / "data" / "noise"))
    return [load_grammar(path) for path in sorted(folder.glob("*.yaml"))]


def load_grammar(path: Path) -> Grammar:
    """Read one grammar.

    Raises:
        FamilyError: If it is not of the format; names the file and the key.
    """
    data = load_yaml(path)
    try:
        missing = {"id", "openings", "exchanges"} - set(data)
        unknown = set(data) - {"id", "cases", "slots", "openings", "exchanges", "closings", "length"}
        if missing or unknown:
            raise FamilyError(f"missing keys: {sorted(missing)}; unknown keys: {sorted(unknown)}")
        low, high = (int(bound) for bound in data.get("length", (2, 4)))
        grammar = Grammar(
            id=data["id"],
            cases=parse_cases(data.get("cases") or []),
            slots=parse_slots(data.get("slots") or {}),
            openings=_exchanges(data["openings"], "openings"),
            exchanges=_exchanges(data["exchanges"], "exchanges"),
            closings=_exchanges(data.get("closings") or [], "closings"),
            length=(low, high),
        )
        if not 1 <= low <= high <= len(grammar.exchanges):
            raise FamilyError(f"length [{low}, {high}] does not fit {len(grammar.exchanges)} exchanges")
        known = set(grammar.slots) | set(grammar.cases[0])
        used = {name for text in _texts(grammar) for name in fields(text)}
        if used - known or set(grammar.cases[0]) - used or set(grammar.slots) - used:
            odd = sorted(used - known) or sorted(known - used)
            raise FamilyError(f"{odd[0]!r} is used but not defined, or defined but not used")
    except (FamilyError, ValueError, TypeError) as error:
        raise FamilyError(f"{path}: {error}") from error
    return grammar


def _exchanges(data: Any, where: str) -> tuple[Exchange, ...]:
    exchanges = []
    for number, exchange in enumerate(data, 1):
        if not isinstance(exchange, dict) or set(exchange) != {"user", "assistant"}:
            raise FamilyError(f"{where}[{number}]: expected 'user' and 'assistant', each a list of sentences")
        turns = []
        for role in ("user", "assistant"):
            sentences = [[one] if isinstance(one, str) else one for one in exchange[role]]
            if not sentences or any(not isinstance(one, list) or not one for one in sentences):
                raise FamilyError(f"{where}[{number}].{role}: a sentence is a text or a list of wordings")
            turns.append(tuple(tuple(" ".join(text.split()) for text in one) for one in sentences))
        exchanges.append((turns[0], turns[1]))
    return tuple(exchanges)


def _texts(grammar: Grammar) -> Iterator[str]:
    for exchange in (*grammar.openings, *grammar.exchanges, *grammar.closings):
        for sentences in exchange:
            for wordings in sentences:
                yield from wordings
    for case in grammar.cases:
        yield from case.values()


def _dialogue(grammar: Grammar, dice: Dice, said: set[bytes], used: Counter[tuple[object, ...]]) -> tuple[Message, ...]:
    """One dialogue of turns that were never said; empty when the opening or the exchanges are used up."""

    def rare(part: str, count: int) -> int:
        least = min(used[grammar.id, part, i] for i in range(count))
        i = dice.choice([i for i in range(count) if used[grammar.id, part, i] == least])
        used[grammar.id, part, i] += 1
        return i

    values = {name: dice.choice(options) for name, options in grammar.slots.items()}
    case = grammar.cases[rare("case", len(grammar.cases))]
    values |= {name: render(text, values) for name, text in case.items()}
    low, high = grammar.length
    planned = low + dice.below(high - low + 1)
    opening = grammar.openings[rare("opening", len(grammar.openings))]
    messages = _word(opening, values, dice, said)
    if not messages:
        return ()
    for exchange in dice.shuffled(grammar.exchanges):
        if len(messages) // 2 > planned:
            break
        messages += _word(exchange, values, dice, said)
    if len(messages) // 2 <= low:
        return ()
    if grammar.closings and dice.below(2):
        messages += _word(dice.choice(grammar.closings), values, dice, said)
    return tuple(messages)


def _word(exchange: Exchange, values: Mapping[str, str], dice: Dice, said: set[bytes]) -> list[Message]:
    """Both turns of an exchange, each in a wording that was never used; empty when there is none left."""
    messages = []
    for role, sentences in zip(("user", "assistant"), exchange, strict=True):
        for _ in range(_TRIES):
            text = " ".join(filter(None, (render(dice.choice(one), values) for one in sentences)))
            key = hashlib.sha256(text.encode("utf-8")).digest()
            if text and key not in said:
                break
        else:
            return []
        messages.append(Message(role, text))
        said.add(key)
    return messages


@dataclass(frozen=True, slots=True)
class PooledNoise:
    """A noise dialogue that waits in the pool."""

    id: str
    source: str
    licence: str
    words: int
    turns: int
    offset: int


class NoisePool:
    """Noise dialogues on disk, with an index in memory, so that a pool may be larger than memory.

    Use it as a context manager. Dialogues that are word for word in it already are left out and counted in
    ``duplicates``.
    """

    def __init__(self) -> None:
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the pool
        self._seen: set[bytes] = set()
        self.entries: list[PooledNoise] = []
        self.duplicates = 0

    def add(self, dialogues: Iterable[NoiseDialogue], up_to_words: int | None = None) -> None:
        """Take in dialogues, all of them or until these hold ``up_to_words``."""
        added = 0
        for noise in dialogues:
            key = hashlib.sha256("\x1f".join(turn.text for turn in noise.turns).encode("utf-8")).digest()
            if key in self._seen:
                self.duplicates += 1
                continue
            self._seen.add(key)
            size = sum(words(turn.text) for turn in noise.turns)
            self.entries.append(
                PooledNoise(noise.id, noise.source, noise.licence, size, len(noise.turns), self._spool.tell())
            )
            self._spool.write(dump_line(noise_to_dict(noise)).encode("utf-8"))
            added += size
            if up_to_words is not None and added >= up_to_words:
                return

    def load(self, entry: PooledNoise) -> NoiseDialogue:
        """Read one dialogue back."""
        self._spool.seek(entry.offset)
        noise = noise_from_dict(json.loads(self._spool.readline()))
        self._spool.seek(0, 2)
        return noise

    def __enter__(self) -> NoisePool:
        return self

    def __exit__(self, *exc: object) -> None:
        """Give the disk space back."""
        self._spool.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Check grammars and show what each yields; exit status 1 when one has an error."""
    parser = argparse.ArgumentParser(prog="python -m scale_qa.noise", description="Check noise grammars.")
    parser.add_argument("paths", nargs="+", type=Path, help="grammar files")
    parser.add_argument("--show", type=int, default=0, help="print so many dialogues of each")
    args = parser.parse_args(argv)
    status = 0
    for path in args.paths:
        try:
            dialogues = list(own_noise(0, [load_grammar(path)]))
        except FamilyError as error:
            print(f"error: {error}")
            status = 1
            continue
        size = sum(words(turn.text) for noise in dialogues for turn in noise.turns)
        print(f"{path}: {len(dialogues)} dialogues, {words_to_tokens(size):.0f} tokens without a repeated turn")
        for noise in dialogues[: args.show]:
            print("", *(f"  {turn.role}: {turn.text}" for turn in noise.turns), sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
