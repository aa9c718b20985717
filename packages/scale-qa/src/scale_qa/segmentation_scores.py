"""Segmentation scores as SuperDialseg defines them (Jiang et al., EMNLP 2023), and purity and coverage.

A dialogue of n turns is n labels: 1 where a turn ends a segment, and 0 for the last turn, whose end is no decision.
Every score is the mean over dialogues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

Lengths = Sequence[int]
"""Turns of each segment of a dialogue, in order."""


def end_labels(lengths: Lengths) -> NDArray[np.int64]:
    """1 for each turn that ends a segment, but the last; shape (turns,)."""
    ends = list(accumulate(lengths))
    labels = np.zeros(ends[-1], dtype=np.int64)
    labels[[end - 1 for end in ends[:-1]]] = 1
    return labels


def window_size(gold: Lengths) -> int:
    """Half of the mean length of a gold segment, at least two turns."""
    return max(2, round(sum(gold) / len(gold) / 2))


def pk(gold: Lengths, found: Lengths, window: int | None = None) -> float:
    """Share of windows in which one segmentation has a boundary and the other none (Beeferman et al. 1999)."""
    ours, theirs = _window_counts(gold, found, window)
    return float(np.mean((ours > 0) != (theirs > 0)))


def window_diff(gold: Lengths, found: Lengths, window: int | None = None) -> float:
    """Share of windows in which the numbers of boundaries differ (Pevzner and Hearst 2002)."""
    ours, theirs = _window_counts(gold, found, window)
    return float(np.mean(ours != theirs))


def precision_recall(gold: Lengths, found: Lengths) -> tuple[float, float]:
    """Exact boundary precision and recall; 0 where there is nothing to divide by."""
    true, predicted = end_labels(gold), end_labels(found)
    hits = int((true & predicted).sum())
    return hits / max(int(predicted.sum()), 1), hits / max(int(true.sum()), 1)


def f1_score(gold: Lengths, found: Lengths) -> float:
    """Exact boundary F1; 0 where neither or only one has a boundary."""
    precision, recall = precision_recall(gold, found)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def purity(gold: Lengths, found: Lengths) -> float:
    """Share of turns that lie in the gold segment that their found segment overlaps most."""
    owner = np.repeat(np.arange(len(gold)), gold)
    best = [int(np.bincount(part).max()) for part in np.split(owner, list(accumulate(found))[:-1])]
    return sum(best) / len(owner)


def coverage(gold: Lengths, found: Lengths) -> float:
    """Share of turns that lie in the found segment that their gold segment overlaps most."""
    return purity(found, gold)


@dataclass(frozen=True, slots=True)
class SegmentationScores:
    """Means over dialogues.

    Attributes:
        pk: Lower is better.
        windowdiff: Lower is better.
        f1: Exact boundaries.
        score: ``f1 / 2 + (1 - pk) / 4 + (1 - windowdiff) / 4``.
        precision: Of boundaries.
        recall: Of boundaries.
        purity: How far found segments hold one topic.
        coverage: How far topics lie in one found segment.
        dialogues: Number of dialogues.
        gold_segments: Segments in the gold.
        found_segments: Segments found.
    """

    pk: float
    windowdiff: float
    f1: float
    score: float
    precision: float
    recall: float
    purity: float
    coverage: float
    dialogues: int
    gold_segments: int
    found_segments: int


def score_segmentations(pairs: Sequence[tuple[Lengths, Lengths]]) -> SegmentationScores:
    """Score found against gold segmentations.

    Args:
        pairs: Gold and found lengths of each dialogue; both add up to its turns, at least two.

    Raises:
        ValueError: If there are no dialogues, or lengths do not fit each other.
    """
    if not pairs:
        raise ValueError("no dialogues to score")
    for number, (gold, found) in enumerate(pairs):
        if sum(gold) != sum(found) or sum(gold) < 2 or min(*gold, *found) < 1:
            raise ValueError(f"dialogue {number}: gold {list(gold)} and found {list(found)} do not tile the same turns")
    means = {
        "pk": fmean(pk(*pair) for pair in pairs),
        "windowdiff": fmean(window_diff(*pair) for pair in pairs),
        "f1": fmean(f1_score(*pair) for pair in pairs),
        "precision": fmean(precision_recall(*pair)[0] for pair in pairs),
        "recall": fmean(precision_recall(*pair)[1] for pair in pairs),
        "purity": fmean(purity(*pair) for pair in pairs),
        "coverage": fmean(coverage(*pair) for pair in pairs),
    }
    return SegmentationScores(
        **means,
        score=means["f1"] / 2 + (1 - means["pk"]) / 4 + (1 - means["windowdiff"]) / 4,
        dialogues=len(pairs),
        gold_segments=sum(len(gold) for gold, _ in pairs),
        found_segments=sum(len(found) for _, found in pairs),
    )


def _window_counts(gold: Lengths, found: Lengths, window: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Boundaries within each run of ``window`` labels, as nltk counts them."""
    size = window_size(gold) if window is None else window
    true, predicted = end_labels(gold), end_labels(found)
    if len(true) < size:  # one window, which is the dialogue
        return true.sum(keepdims=True), predicted.sum(keepdims=True)
    ones = np.ones(size, dtype=np.int64)
    return np.convolve(true, ones, "valid"), np.convolve(predicted, ones, "valid")
