"""What an episode that stands out lends to those around it: a topic that was cut or braided is still found together.

Linking decides when a turn comes in, from little. At recall the query has shown where the answer lies, so the runs
around that place are looked at again: each gets a share of what the episode stands out by, the larger the more it is
like it and less like the rest of the thread. The scale is drawn from the thread itself, so it fits any embedder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tsim_core.embedding import Vectors
from tsim_core.similarity import likeness

if TYPE_CHECKING:
    from tsim_core.fusion import TurnTable

Scores = NDArray[np.float32]
Rows = NDArray[np.int64]
VectorsOf = Callable[[Rows], Vectors]
"""Rows to their unit vectors, shape (len(rows), d); zero rows for blank turns."""

LENDERS = 2  # the best episodes are looked around
REACH = 5  # runs on each side of each of its runs
SAMPLE = 24  # runs elsewhere that show how alike unrelated ones are
KEPT = 8  # turns that stand for the lender
FULL = 2.0  # standard deviations above the unrelated at which all is lent


class Runs:
    """The contiguous runs that the episodes of a table make up.

    Args:
        turns: The turns.

    Attributes:
        bounds: Row where each run starts, and the number of rows at the end, shape (runs + 1,).
        episodes: Episode of each run, shape (runs,).
    """

    def __init__(self, turns: TurnTable) -> None:
        change = np.diff(turns.episode_of_row) != 0
        self.bounds: Rows = np.concatenate([[0], np.flatnonzero(change) + 1, [len(turns)]])
        self.episodes: Rows = turns.episode_of_row[self.bounds[:-1]]

    def rows(self, run: int) -> Rows:
        """Rows of a run."""
        return np.arange(self.bounds[run], self.bounds[run + 1])


def lent(totals: Scores, turns: TurnTable, vectors: VectorsOf, share: float) -> Scores:
    """What the best episodes lend.

    Args:
        totals: Score of each episode.
        turns: The turns.
        vectors: Gives their vectors.
        share: How much of what a lender stands out by is lent at most.

    Returns:
        What each episode gets, at least 0: the most that one lender offers.
    """
    given = np.zeros_like(totals)
    runs = turns.runs
    count = len(runs.episodes)
    if not share or count < 2:
        return given
    sample = np.unique(np.linspace(0, count - 1, SAMPLE).astype(np.int64))
    thread = turns.thread_of_row
    for lender in np.argsort(-totals, kind="stable")[:LENDERS].tolist():
        own = _spoken(vectors(turns.rows(lender)))[:KEPT]
        if not len(own):
            continue
        at = np.flatnonzero(runs.episodes == lender)
        near = {run + step for run in at.tolist() for step in range(-REACH, REACH + 1) if 0 <= run + step < count}
        if thread is not None:
            mine = thread[turns.rows(lender)[0]]
            near = {run for run in near if thread[runs.bounds[run]] == mine}
        near -= set(at.tolist())
        others = [run for run in sample.tolist() if run not in near and runs.episodes[run] != lender]
        unrelated = [_alike(own, vectors(runs.rows(run))) for run in others]
        if len(unrelated) < 2:  # too little to tell what is like and what is not
            continue
        mean, spread = float(np.mean(unrelated)), max(float(np.std(unrelated)), 1e-3)
        excess = share * max(0.0, float(totals[lender] - np.median(totals)))
        for run in sorted(near):
            nearness = (_alike(own, vectors(runs.rows(run))) - mean) / (FULL * spread)
            episode = int(runs.episodes[run])
            given[episode] = max(given[episode], excess * min(1.0, max(0.0, nearness)))
    return given


def _spoken(rows: Vectors) -> Vectors:
    return rows[rows.any(axis=1)]


def _alike(own: Vectors, rows: Vectors) -> float:
    other = _spoken(rows)[:KEPT]
    return likeness(own, other) if len(other) else 0.0
