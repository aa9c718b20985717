"""What an episode that stands out lends to those around it: a topic that was cut or braided is still found together.

Segmentation and linking decide when a turn comes in, from little. At recall the query has shown where the answer lies,
so the runs around that place are looked at again. Each gets a share of what the episode stands out by; how large, is
decided by the odds that it belongs to the episode after all:

- the run before or after it was cut off at a boundary, and the segmenter said how clear that cut was;
- the longer the pause between the two, the less likely they are one, where their times are known;
- one farther away may belong to it in a thread whose topics alternate, and how often they do so is seen in its links;
- the more alike the two are, as measured against runs elsewhere in the thread, the likelier; what refers back ("that
  one, but the other way round") may be like nothing, so likeness alone does not decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tsim_core.embedding import Vectors
from tsim_core.similarity import likenesses

if TYPE_CHECKING:
    from tsim_core.fusion import TurnTable

Scores = NDArray[np.float32]
Rows = NDArray[np.int64]
VectorsOf = Callable[[Rows], Vectors]
"""Rows to their unit vectors, shape (len(rows), d); zero rows for blank turns."""

LENDERS = 2  # the best episodes are looked around
REACH = 4  # runs on each side of each of its runs
KEPT = 8  # turns that stand for a run
SAMPLE = 24  # runs elsewhere that show how alike unrelated ones are
EVEN = 0.75  # standard deviations above the unrelated at which likeness speaks neither for nor against
WRONG = 0.8  # share of the cuts of no strength that were wrong
MISSED = 0.7  # runs of a braid that linking missed, for one that it linked
FADE = 0.65  # from one distance to the next
PAUSE = 600.0  # seconds between two runs that halve it
FEW = 20  # runs that a thread needs before its links count in full
LEAST, MOST = 0.002, 0.9  # probability that a run belongs to an episode, by its place alone
DOUBT = 0.15  # of what is lent is lost with each unit of the log-odds against
BEHIND = 0.01  # a borrower stays behind its lender by so much


class Runs:
    """The contiguous runs that the episodes of a table make up.

    Args:
        turns: The turns.

    Attributes:
        bounds: Row where each run starts, and the number of rows at the end, shape (runs + 1,).
        episodes: Episode of each run, shape (runs,).
        braided: How much the topics alternate: share of the runs that continue one a few runs before.
    """

    def __init__(self, turns: TurnTable) -> None:
        change = np.diff(turns.episode_of_row) != 0
        self.bounds: Rows = np.concatenate([[0], np.flatnonzero(change) + 1, [len(turns)]])
        self.episodes: Rows = turns.episode_of_row[self.bounds[:-1]]
        linked = [int((self.episodes[d:] == self.episodes[:-d]).sum()) for d in range(2, REACH + 1)]
        self.braided = max(linked) / (len(self.episodes) + FEW)

    def __len__(self) -> int:
        return len(self.episodes)

    def rows(self, run: int) -> Rows:
        """Rows of a run."""
        return np.arange(self.bounds[run], self.bounds[run + 1])


def lent(
    totals: Scores, turns: TurnTable, vectors: VectorsOf, share: float, barred: NDArray[np.bool_] | None = None
) -> Scores:
    """What the best episodes lend.

    Args:
        totals: Score of each episode.
        turns: The turns.
        vectors: Gives their vectors.
        share: Of what a lender stands out by, the share that goes to a run around it that belongs to it as likely as
            not.
        barred: Episodes that lend nothing, shape (episodes,).

    Returns:
        What each episode gets, at least 0: the most that one of its runs is offered.
    """
    given = np.zeros_like(totals)
    runs = turns.runs
    if len(runs) < 2 or not share:
        return given
    lenders = np.argsort(-totals if barred is None else np.where(barred, np.inf, -totals), kind="stable")
    for lender in lenders[:LENDERS].tolist():
        if barred is not None and barred[lender]:
            break
        excess = max(0.0, float(totals[lender] - np.median(totals)))
        priors = _priors(lender, turns)
        likeness = _likeness(lender, priors, turns, vectors)
        for run, prior in priors.items():
            odds = math.log(prior / (1 - prior)) + likeness.get(run, 0.0)
            offered = excess * max(0.0, share + DOUBT * min(0.0, odds))
            episode = int(runs.episodes[run])
            room = float(totals[lender] - totals[episode]) - BEHIND
            given[episode] = max(given[episode], min(offered, room))
    return given


def _priors(episode: int, turns: TurnTable) -> dict[int, float]:
    """How likely each run of the thread around those of an episode belongs to it, by its place alone."""
    runs, thread = turns.runs, turns.thread_of_row
    found: dict[int, float] = {}
    for own in np.flatnonzero(runs.episodes == episode).tolist():
        for run in range(max(0, own - REACH), min(len(runs), own + REACH + 1)):
            if runs.episodes[run] == episode:
                continue
            if thread is not None and thread[runs.bounds[run]] != thread[runs.bounds[own]]:
                continue
            distance = abs(run - own)
            if distance == 1:
                prior = WRONG * (1 - float(turns.cuts[runs.bounds[max(run, own)]]))
            else:
                prior = MISSED * runs.braided * FADE ** (distance - 1)
            prior /= 1 + _pause(run, own, turns) / PAUSE
            found[run] = max(found.get(run, LEAST), min(MOST, prior))
    return found


def _pause(run: int, other: int, turns: TurnTable) -> float:
    """Seconds between two runs; 0 where their times are not known."""
    first, later = sorted((run, other))
    bounds = turns.runs.bounds
    pause = float(turns.timestamps[bounds[later]] - turns.timestamps[bounds[first + 1] - 1])
    return 0.0 if math.isnan(pause) else max(0.0, pause)


def _likeness(episode: int, near: Iterable[int], turns: TurnTable, vectors: VectorsOf) -> dict[int, float]:
    """How like an episode some runs are, in standard deviations above what is neither here nor there."""
    runs, near = turns.runs, list(near)
    own = _spoken(vectors(turns.rows(episode)))[:KEPT]
    sample = np.unique(np.linspace(0, len(runs) - 1, SAMPLE).astype(np.int64)).tolist()
    elsewhere = [run for run in sample if run not in near and runs.episodes[run] != episode]
    spoken = {run: _spoken(vectors(runs.rows(run)))[:KEPT] for run in [*elsewhere, *near]}
    spoken = {run: rows for run, rows in spoken.items() if len(rows)}
    if not len(own):
        return {}
    found = dict(zip(spoken, likenesses(own, list(spoken.values())), strict=True))
    unrelated = [found[run] for run in elsewhere if run in found]
    if len(unrelated) < 2:  # too few to tell what is like and what is not
        return {}
    mean, spread = float(np.mean(unrelated)), max(float(np.std(unrelated)), 1e-3)
    return {run: (found[run] - mean) / spread - EVEN for run in near if run in found}


def _spoken(rows: Vectors) -> Vectors:
    return rows[rows.any(axis=1)]
