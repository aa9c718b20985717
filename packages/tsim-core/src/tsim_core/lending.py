"""What is around an episode that stands out: a topic that was cut or braided is still found together.

Segmentation and linking decide when a turn comes in, from little. At recall the query has shown where the answer lies,
so the runs around that place are looked at again, and the odds that each belongs to the episode after all are taken:

- the run before or after it was cut off at a boundary, and the segmenter said how clear that cut was;
- one farther away may belong to it in a thread whose topics alternate, and how often they do so is seen in its links;
- the longer the pause between the two, the less likely they are one, where their times are known;
- the more alike the two are, as measured against runs elsewhere in the thread, the likelier; what refers back ("that
  one, but the other way round") may be like nothing, so likeness alone does not decide;
- what is like another run around it belongs to that one rather;
- what refers back comes later than what it refers to, and is short.

By these odds the run gets a share of what the episode stands out by. One that is an episode of its own, and not
unlikely to be part of this one, is handed over with it: it costs few tokens, and may hold the exception to the rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tsim_core.embedding import Vectors
from tsim_core.similarity import Stack

if TYPE_CHECKING:
    from tsim_core.fusion import TurnTable

Scores = NDArray[np.float32]
Rows = NDArray[np.int64]
VectorsOf = Callable[[Rows], Vectors]
"""Rows to their unit vectors, shape (len(rows), d); zero rows for blank turns."""

LENDERS = 2  # the best episodes are looked around
REACH = 8  # runs on each side of each of its runs
KEPT = 8  # turns that stand for a run
SAMPLE = 24  # runs elsewhere that show how alike unrelated ones are
EVEN = 0.25  # standard deviations above the unrelated at which likeness speaks neither for nor against
RIVAL = 0.5  # weight of the likeness with another run around
LATER = 1.5  # log-odds of a run that comes after the episode began; of one before, against
SHORT = 0.3  # log-odds against, with every turn more than an exchange
LONGEST = 6  # turns beyond which that counts no more
WRONG = 0.8  # share of the cuts of no strength that were wrong
MISSED = 0.7  # runs of a braid that linking missed, for one that it linked
FADE = 0.65  # from one distance to the next
PAUSE = 600.0  # seconds between two runs that halve it
FEW = 20  # runs that a thread needs before its links count in full
LEAST, MOST = 0.002, 0.9  # probability that a run belongs to an episode, by its place alone
DOUBT = 0.15  # of what is lent is lost with each unit of the log-odds against
BEHIND = 0.01  # a borrower stays behind its lender by so much
JOINED = -3.0  # log-odds from which a run is handed over with an episode


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


@dataclass(frozen=True, slots=True)
class Around:
    """What is around the best episodes.

    Attributes:
        lent: What each episode gets of what others stand out by, at least 0, shape (episodes,).
        joined: Episodes that are handed over with another one, and with which.
    """

    lent: Scores
    joined: dict[int, int]


def look_around(
    totals: Scores, turns: TurnTable, vectors: VectorsOf, share: float, barred: NDArray[np.bool_]
) -> Around:
    """Look around the best episodes.

    Args:
        totals: Score of each episode.
        turns: The turns.
        vectors: Gives their vectors.
        share: Of what an episode stands out by, the share that goes to a run that belongs to it as likely as not.
            With 0 there is nothing around.
        barred: Episodes that are not looked around, shape (episodes,).
    """
    found = Around(np.zeros_like(totals), {})
    runs = turns.runs
    if len(runs) < 2 or not share:
        return found
    order = np.argsort(-totals, kind="stable")
    odds_of: dict[int, float] = {}
    telling = len(runs) >= SAMPLE  # a shorter thread hardly shows what is unrelated
    for lender in order[~barred[order]][:LENDERS].tolist():
        excess = max(0.0, float(totals[lender] - np.median(totals)))
        for run, odds in _odds(lender, turns, vectors).items():
            episode = int(runs.episodes[run])
            room = float(totals[lender] - totals[episode]) - BEHIND
            offered = min(room, excess * max(0.0, share + DOUBT * min(0.0, odds)))
            found.lent[episode] = max(found.lent[episode], offered)
            alone = turns.starts[episode + 1] - turns.starts[episode] == runs.bounds[run + 1] - runs.bounds[run]
            if telling and alone and room > 0 and odds > odds_of.get(episode, JOINED):
                odds_of[episode] = odds
                found.joined[episode] = found.joined.get(lender, lender)
    return found


def _odds(episode: int, turns: TurnTable, vectors: VectorsOf) -> dict[int, float]:
    """Log-odds that each of the runs around those of an episode belongs to it."""
    bounds, first = turns.runs.bounds, turns.rows(episode)[0]
    priors = _priors(episode, turns)
    likeness = _likeness(episode, priors, turns, vectors)
    odds = {}
    for run, prior in priors.items():
        length = min(LONGEST, int(bounds[run + 1] - bounds[run]))
        place = LATER if bounds[run] > first else -LATER
        odds[run] = math.log(prior / (1 - prior)) + likeness.get(run, 0.0) + place - SHORT * (length - 2)
    return odds


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
    """How much more like an episode than like each other some runs are, in standard deviations of unrelated ones."""
    runs, near = turns.runs, list(near)
    sample = np.unique(np.linspace(0, len(runs) - 1, SAMPLE).astype(np.int64)).tolist()
    elsewhere = [run for run in sample if run not in near and runs.episodes[run] != episode]
    groups = {run: _spoken(vectors(runs.rows(run)))[:KEPT] for run in [*near, *elsewhere]}
    groups = {run: rows for run, rows in groups.items() if len(rows)}
    own = _spoken(vectors(turns.rows(episode)))[:KEPT]
    unrelated = [i for i, run in enumerate(groups, 1) if run in elsewhere]
    if not len(own) or len(unrelated) < 2:  # too few to tell what is like and what is not
        return {}
    alike = Stack.of([own, *groups.values()]).pairwise()
    usual = alike[:, unrelated]
    alike = (alike - usual.mean(axis=1, keepdims=True)) / np.maximum(usual.std(axis=1, keepdims=True), 1e-3)
    numbers = {run: i for i, run in enumerate(groups, 1) if run not in elsewhere}
    found = {}
    for run, i in numbers.items():
        rivals = [alike[i, j] for other, j in numbers.items() if 0 < abs(other - run) <= REACH]
        found[run] = float(alike[0, i] - EVEN - RIVAL * max(rivals, default=0.0))
    return found


def _spoken(rows: Vectors) -> Vectors:
    return rows[rows.any(axis=1)]
