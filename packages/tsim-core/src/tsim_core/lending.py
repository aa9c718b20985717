"""What an episode that stands out lends to those around it: a topic that was cut or braided is still found together.

Linking decides when a turn comes in, from little. At recall the query has shown where the answer lies, so the runs
around that place are looked at again: each gets a share of what the episode stands out by, the larger the nearer it is
and the more it is like it. Nearness counts by itself, since what refers back ("that one, but the other way round") may
be like nothing. Likeness is measured against the rest of the thread, so its scale fits any embedder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
REACH = 4  # runs on each side of each of its runs
SAMPLE = 24  # runs elsewhere that show how alike unrelated ones are
KEPT = 8  # turns that stand for the lender
FULL = 4.0  # standard deviations above the unrelated that make full likeness
FADE = 0.8  # from one run to the next
MOST = 0.95  # of what a lender stands out by
BEHIND = 0.01  # a borrower stays behind its lender by so much


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


def lent(totals: Scores, turns: TurnTable, vectors: VectorsOf, adjacent: float, alike: float) -> Scores:
    """What the best episodes lend.

    Args:
        totals: Score of each episode.
        turns: The turns.
        vectors: Gives their vectors.
        adjacent: Share of what a lender stands out by that goes to the next run; those behind it get less.
        alike: Share that goes to a run within reach for its likeness.

    Returns:
        What each episode gets, at least 0: the most that one of its runs is offered.
    """
    given = np.zeros_like(totals)
    runs = turns.runs
    if len(runs.episodes) < 2 or not (adjacent or alike):
        return given
    for lender in np.argsort(-totals, kind="stable")[:LENDERS].tolist():
        excess = max(0.0, float(totals[lender] - np.median(totals)))
        distances = _around(lender, turns)
        likenesses = _likenesses(lender, distances, turns, vectors) if alike else {}
        for run, distance in distances.items():
            share = adjacent * FADE ** (distance - 1) + alike * likenesses.get(run, 0.0)
            episode = int(runs.episodes[run])
            room = float(totals[lender] - totals[episode]) - BEHIND
            given[episode] = max(given[episode], min(excess * min(MOST, share), room))
    return given


def _around(episode: int, turns: TurnTable) -> dict[int, int]:
    """The runs of other episodes around those of one in its thread, with their distance in runs."""
    runs, thread = turns.runs, turns.thread_of_row
    own = np.flatnonzero(runs.episodes == episode)
    near: dict[int, int] = {}
    for distance in range(1, REACH + 1):
        for run in np.concatenate([own - distance, own + distance]).tolist():
            if 0 <= run < len(runs.episodes) and runs.episodes[run] != episode:
                near.setdefault(run, distance)
    if thread is not None:
        mine = thread[runs.bounds[own[0]]]
        near = {run: distance for run, distance in near.items() if thread[runs.bounds[run]] == mine}
    return near


def _likenesses(episode: int, near: Iterable[int], turns: TurnTable, vectors: VectorsOf) -> dict[int, float]:
    """How like an episode the runs around it are: from 0, as unrelated ones, to 1."""
    runs = turns.runs
    own = _spoken(vectors(turns.rows(episode)))[:KEPT]
    sample = np.unique(np.linspace(0, len(runs.episodes) - 1, SAMPLE).astype(np.int64)).tolist()
    near = set(near)
    elsewhere = [run for run in sample if run not in near and runs.episodes[run] != episode]
    if not len(own) or len(elsewhere) < 2:  # too little to tell what is like and what is not
        return {}
    unrelated = [_alike(own, vectors(runs.rows(run))) for run in elsewhere]
    mean, spread = float(np.mean(unrelated)), max(float(np.std(unrelated)), 1e-3)
    return {run: min(1.0, max(0.0, (_alike(own, vectors(runs.rows(run))) - mean) / (FULL * spread))) for run in near}


def _spoken(rows: Vectors) -> Vectors:
    return rows[rows.any(axis=1)]


def _alike(own: Vectors, rows: Vectors) -> float:
    other = _spoken(rows)[:KEPT]
    return likeness(own, other) if len(other) else 0.0
