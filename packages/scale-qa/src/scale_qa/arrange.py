"""How truth and noise are laid out in a stream: named, seeded, printed in every report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from scale_qa.dice import Dice

ARRANGEMENTS = ("interleaved", "shuffled", "blocks", "braided")
BLOCKS = 4
_RUNS = (2, 4)  # turns before a braided thread changes dialogue: one exchange or two, so that replies stay next to


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of one dialogue: its turns [start, end)."""

    dialogue: int
    start: int
    end: int


def arrange(truth: Sequence[int], noise: Sequence[int], arrangement: str, dice: Dice) -> list[Run]:
    """Lay out dialogues.

    Args:
        truth: Turns of each truth dialogue; these are dialogues 0 .. len(truth) - 1.
        noise: Turns of each noise dialogue; these follow.
        arrangement: "interleaved": truth and noise alternate evenly, dialogue by dialogue. "shuffled": any order.
            "blocks": four blocks of truth, each followed by a block of noise. "braided": any order, two dialogues at
            a time, their turns alternating in runs of two or four; the next one joins when one ends.
        dice: Decides the order.

    Returns:
        Runs in stream order; together they hold every turn once, each dialogue in its own order.
    """
    lengths = [*truth, *noise]
    told = dice.shuffled(range(len(truth)))
    filling = dice.shuffled(range(len(truth), len(lengths)))
    if arrangement == "braided":
        return _braid(dice.shuffled(range(len(lengths))), lengths, dice)
    if arrangement == "shuffled":
        order = dice.shuffled(range(len(lengths)))
    elif arrangement == "interleaved":
        order = _interleave(told, filling)
    elif arrangement == "blocks":
        order = [i for a, b in zip(_split(told), _split(filling), strict=True) for i in (*a, *b)]
    else:
        raise ValueError(f"unknown arrangement {arrangement!r}")
    return [Run(i, 0, lengths[i]) for i in order]


def _interleave(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """Merge so that each part of the result holds the two in their overall proportion."""
    total = len(a) + len(b)
    merged: list[int] = []
    taken = 0
    for place in range(1, total + 1):
        due = (place * len(a) * 2 + total) // (2 * total)  # round(place * share of a)
        if due > taken:
            merged.append(a[taken])
            taken += 1
        else:
            merged.append(b[place - 1 - taken])
    return merged


def _split(items: Sequence[int]) -> list[Sequence[int]]:
    bounds = [len(items) * k // BLOCKS for k in range(BLOCKS + 1)]
    return [items[low:high] for low, high in pairwise(bounds)]


def _braid(order: Sequence[int], lengths: Sequence[int], dice: Dice) -> list[Run]:
    waiting = list(reversed(order))
    active: list[tuple[int, int]] = []  # (dialogue, turns already laid)
    runs: list[Run] = []
    while waiting or active:
        while waiting and len(active) < 2:
            active.append((waiting.pop(), 0))
        dialogue, start = active.pop(0)
        end = min(start + dice.choice(_RUNS), lengths[dialogue])
        runs.append(Run(dialogue, start, end))
        if end < lengths[dialogue]:
            active.append((dialogue, end))
    return runs
