"""M3 of the default: lexical and dense evidence, of turns in their context and of whole episodes, fused.

Every view is normalised before it is added (a z-score over the turns or episodes that could be found), since the scale
of a score belongs to its view: a weight then means the same for any embedder. What stands out gets a high z-score and
decides; a view in which nothing stands out stays quiet.

A turn is scored in its context too: the scores around it count, the less the farther away. So a short answer is found
by the question before it, and a rule by the talk around it. The evidence of an episode as a whole goes to all its
turns: in full if the episode is short.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tsim_core.embedding import Vectors
from tsim_core.errors import ConfigError
from tsim_core.index.lexical import Matches, Scores
from tsim_core.labels import Labels
from tsim_core.lending import Runs, VectorsOf, look_around
from tsim_core.lexical import Terms, hashed_terms, query_terms
from tsim_core.ranking import RankedEpisode
from tsim_core.segmentation import MODEL_ROLES, USER_ROLES
from tsim_core.timespans import closeness, named_spans

NO_NAMES = USER_ROLES | MODEL_ROLES | {"system", "tool", "developer", "function"}
"""Roles that do not name anybody."""
UNKNOWN_CUT = 0.5
"""How clear a cut is that the rule did not grade."""


@dataclass(frozen=True)
class FusedRanking:
    """Constants of the default ranking. Weights are in standard deviations of their view.

    Attributes:
        raw: Weight of the cosine of a turn alone.
        context: Weight of the cosine of a turn in its context.
        lexical: Weight of BM25 of a turn in its context.
        episode_lexical: Weight of BM25 of an episode.
        episode_raw: Weight of the mean cosine of an episode's turns.
        compact: Tokens up to which an episode's evidence counts in full for each of its turns; in a longer one it is
            spread thin.
        speaker: Added to the turns of a speaker whom the query names.
        time: Added to the turns of a time that the query names; to those around it, less.
        nearby: Share of what the best episodes stand out by that is lent to the runs around theirs, if they belong to
            them as likely as not; the less likely, the less (see `tsim_core.lending`).
        neighbour: How much a neighbour counts in a turn's context; the next but one counts its square, and so on.
        idf_power: Exponent of the rarity of a term in BM25. It takes the place of a list of stop words.
        k1: Saturation of BM25.
        b: Length normalisation of BM25.
    """

    raw: float = 1.0
    context: float = 0.75
    lexical: float = 0.75
    episode_lexical: float = 1.0
    episode_raw: float = 0.5
    compact: float = 300
    speaker: float = 2.5
    time: float = 3.0
    nearby: float = 0.95
    neighbour: float = 0.4
    idf_power: float = 2.0
    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 0:
                raise ConfigError(f"{field.name} {getattr(self, field.name)}: expected at least 0")
        for name in ("nearby", "neighbour", "b"):
            if getattr(self, name) > 1:
                raise ConfigError(f"{name} {getattr(self, name)}: expected 0 to 1")
        if self.raw + self.context + self.lexical + self.episode_lexical + self.episode_raw == 0:
            raise ConfigError("every view has the weight 0: nothing could be ranked")


class TurnTable:
    """Turns as columns, of one thread or of several whose rows follow each other. It stays as it is.

    Args:
        episode_of_row: Number of the episode of each row, counted from 0 without gaps, shape (n,).
        tokens: Estimated tokens of each row; 0 for a blank one, shape (n,).
        labels: Who spoke.
        timestamps: Seconds since 1970, NaN where unknown, shape (n,).
        thread_of_row: Number of the thread of each row, ascending; one thread when None.
        cuts: How clear the cut before each row is, 0 where there is none, to 1, shape (n,). When None, nothing is known
            of those between episodes.
    """

    def __init__(
        self,
        episode_of_row: NDArray[np.int64],
        tokens: NDArray[np.float64],
        labels: Labels,
        timestamps: NDArray[np.float64],
        thread_of_row: NDArray[np.int64] | None = None,
        cuts: NDArray[np.float64] | None = None,
    ) -> None:
        self.episode_of_row = episode_of_row
        self.tokens = tokens
        self.labels = labels
        self.timestamps = timestamps
        self.thread_of_row = thread_of_row
        self.cuts = np.full(len(episode_of_row), UNKNOWN_CUT) if cuts is None else cuts

    def __len__(self) -> int:
        return len(self.episode_of_row)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Rows by episode, and in order within each, shape (n,)."""
        return np.argsort(self.episode_of_row, kind="stable")

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each episode starts in ``order``, and its length at the end, shape (episodes + 1,)."""
        sizes = np.bincount(self.episode_of_row)
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def runs(self) -> Runs:
        """The contiguous runs of the episodes."""
        return Runs(self)

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.starts) - 1

    def rows(self, episode: int) -> NDArray[np.int64]:
        """Rows of an episode, in order."""
        return self.order[self.starts[episode] : self.starts[episode + 1]]

    def label(self, row: int) -> str:
        """Who spoke, for a reader."""
        return self.labels[row]

    def restricted(self, allowed: NDArray[np.bool_]) -> tuple[TurnTable, NDArray[np.int64], NDArray[np.int64]]:
        """The allowed rows alone, with the rows and the episodes that they were. ``allowed`` has shape (n,)."""
        rows = np.flatnonzero(allowed)
        episodes, numbers = np.unique(self.episode_of_row[rows], return_inverse=True)
        table = TurnTable(
            numbers,
            self.tokens[rows],
            self.labels.taken(rows),
            self.timestamps[rows],
            None if self.thread_of_row is None else self.thread_of_row[rows],
            _clearest(self.cuts, rows),
        )
        return table, rows, episodes

    @cached_property
    def named(self) -> list[tuple[Terms, NDArray[np.int64]]]:
        """Of each speaker who has a name: its terms, and the rows."""
        names = sorted(name for name in self.labels.names if name.casefold() not in NO_NAMES)
        return [(hashed_terms(name), self.labels.rows(name)) for name in names]


def rank_fused(
    query: str,
    cosines: Scores,
    matches: Matches,
    turns: TurnTable,
    vectors: VectorsOf,
    config: FusedRanking,
    most: int | None = None,
    allowed: NDArray[np.bool_] | None = None,
) -> list[RankedEpisode]:
    """Rank episodes, best first; those of several threads jointly.

    The score of an episode is its own evidence, that of its best turn and what its neighbours lend. The score of a
    turn, by which it is chosen under a budget, is its own evidence plus its share of the episode's: of that evidence,
    and of how far the episode stands out among all.

    Args:
        query: What is asked. Times that it names are read from it, as seen from the newest turn.
        cosines: Cosine of the query to each turn; anything for blank turns, shape (n,).
        matches: Where the query's terms and labels (`tsim_core.lexical.query_terms`) occur in those turns.
        turns: The turns.
        vectors: Gives the unit vectors of rows.
        config: Constants.
        most: How many to return; all when None.
        allowed: Rows that may be found, shape (n,); all when None. The rest might as well not be there.

    Returns:
        Episodes with the scores of all their turns. Ties go to the newer episode.
    """
    if allowed is not None:
        table, rows, episodes = turns.restricted(allowed)

        def among(chosen: NDArray[np.int64]) -> Vectors:
            return vectors(rows[chosen])

        found = rank_fused(query, cosines[rows], matches.restricted(allowed), table, among, config, most)
        return [
            RankedEpisode(
                int(episodes[r.episode]), r.evidence, {int(rows[i]): score for i, score in r.turn_scores.items()}
            )
            for r in found
        ]
    if not len(turns):
        return []
    spoken = turns.tokens > 0
    words, labels = query_terms(query)
    speakers, names = _speakers(words, labels, matches, turns)
    if 0 < len(names) < len(words):
        labels = np.concatenate([labels, names])  # a name in a text is mostly somebody who is being spoken to
    matches = matches.without(labels)
    cosine = _z(cosines, spoken)
    bm25 = _z(matches.bm25(config.k1, config.b, config.idf_power))
    of_turns = {
        "raw": config.raw * cosine,
        "context": config.context * _z(_in_context(cosine, turns, config.neighbour), spoken),
        "lexical": config.lexical * _z(_in_context(bm25, turns, config.neighbour), spoken),
        "speaker": config.speaker * speakers,
        "time": config.time * _times(query, turns),
    }
    means = _episode_means(cosines, spoken, turns)
    units = matches.by_unit(turns.episode_of_row, turns.episodes)
    of_episodes = {
        "episode_raw": config.episode_raw * _z(means, ~np.isnan(means)),
        "episode_lexical": config.episode_lexical * _z(units.bm25(config.k1, config.b, config.idf_power)),
    }
    turn_scores = np.sum(list(of_turns.values()), axis=0)
    episode_scores = np.sum(list(of_episodes.values()), axis=0)
    totals = np.maximum.reduceat(turn_scores[turns.order], turns.starts[:-1]) + episode_scores
    echoes = np.maximum.reduceat(cosines[turns.order] > ECHO, turns.starts[:-1])
    around = look_around(totals, turns, vectors, config.nearby, echoes)
    of_episodes["nearby"] = around.lent
    totals = totals + of_episodes["nearby"]
    sizes = np.bincount(turns.episode_of_row, weights=turns.tokens)
    heads = np.delete(np.arange(len(totals)), list(around.joined))
    shares = (episode_scores + _standing(totals, heads)) * np.minimum(1, config.compact / np.maximum(sizes, 1))
    joined: dict[int, list[int]] = {}
    for episode, head in around.joined.items():
        joined.setdefault(head, []).append(episode)
    ranked = []
    for episode in heads[np.lexsort((-heads, -totals[heads]))][:most].tolist():
        rows = turns.rows(episode)
        best = rows[np.argmax(turn_scores[rows])]
        evidence = {name: float(view[best]) for name, view in of_turns.items()}
        evidence |= {name: float(view[episode]) for name, view in of_episodes.items()}
        rows = np.sort(np.concatenate([rows, *map(turns.rows, joined.get(episode, ()))]))
        scores = (turn_scores[rows] + shares[turns.episode_of_row[rows]]).tolist()
        ranked.append(RankedEpisode(episode, evidence, dict(zip(rows.tolist(), scores, strict=True))))
    return ranked


def _z(values: Scores, where: NDArray[np.bool_] | None = None) -> Scores:
    """Standard scores among the elements ``where`` is true; 0 elsewhere, and everywhere if they are all alike."""
    chosen = values if where is None else values[where]
    spread = float(chosen.std()) if len(chosen) else 0.0
    if spread < 1e-6:
        return np.zeros(len(values), dtype=np.float32)
    scores: Scores = ((values - chosen.mean()) / spread).astype(np.float32)
    if where is not None:
        scores[~where] = 0
    return scores


REACH = 5
"""Turns on each side that make up a context."""
LEAST_LABELLED = 0.05
"""Share of the turns that begin with a name and a colon before it is taken for a speaker, and not for "Note:"."""
ECHO = 0.97
"""Cosine from which a turn is the query itself, asked before: it shows where it was asked, not where the answer is."""
BEST = 5
"""Episodes that may stand out above the rest."""
WHOLE = 0.8
"""Share of what an episode stands out by that counts for each of its turns, so that it comes whole."""


def _clearest(cuts: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The clearest cut between each of some rows, ascending, and the one before it."""
    if not len(rows):
        return np.zeros(0)
    after = np.concatenate([[0], rows[:-1] + 1])
    found: NDArray[np.float64] = np.maximum.reduceat(cuts[: rows[-1] + 1], after)
    return found


def _standing(totals: Scores, heads: NDArray[np.int64]) -> Scores:
    """How far each episode stands out above the best that do not: under a budget, it comes the more whole for it.

    Args:
        totals: Scores of the episodes.
        heads: Those that are not handed over with another.
    """
    if len(heads) <= BEST:
        return np.zeros_like(totals)
    standing: Scores = WHOLE * np.maximum(0, totals - np.partition(totals[heads], -BEST - 1)[-BEST - 1])
    return standing


def _in_context(scores: Scores, turns: TurnTable, decay: float) -> Scores:
    """Each turn's score plus those around it in its thread, fading with distance."""
    total = scores.copy()
    for distance in range(1, min(REACH, len(scores) - 1) + 1):
        weight = np.float32(decay**distance)
        before, after = weight * scores[:-distance], weight * scores[distance:]
        if turns.thread_of_row is not None:
            same = turns.thread_of_row[distance:] == turns.thread_of_row[:-distance]
            before, after = before * same, after * same
        total[distance:] += before
        total[:-distance] += after
    return total


def _episode_means(cosines: Scores, spoken: NDArray[np.bool_], turns: TurnTable) -> Scores:
    """Mean cosine of each episode's turns that are not blank; NaN where all are."""
    count = np.bincount(turns.episode_of_row, weights=spoken, minlength=turns.episodes)
    total = np.bincount(turns.episode_of_row, weights=np.where(spoken, cosines, 0), minlength=turns.episodes)
    means: Scores = np.full(turns.episodes, np.nan, dtype=np.float32)
    means[count > 0] = total[count > 0] / count[count > 0]
    return means


def _times(query: str, turns: TurnTable) -> Scores:
    """How close each turn is to the times that a query names."""
    known = turns.timestamps[~np.isnan(turns.timestamps)]
    return closeness(turns.timestamps, named_spans(query, float(known.max())) if len(known) else [])


def _speakers(words: Terms, labels: Terms, matches: Matches, turns: TurnTable) -> tuple[Scores, Terms]:
    """1 for the turns of speakers whom a query names, and the terms that name them.

    A query that names all who speak says nothing about who is meant.
    """
    found = [(rows, np.intersect1d(name, words)) for name, rows in turns.named]
    for word, label in zip(words, labels, strict=True):
        rows = matches.of(label)
        if len(rows) >= max(2, LEAST_LABELLED * len(turns)):
            found.append((rows, np.array([word])))
    found = [(rows, names) for rows, names in found if len(names)]
    flags = np.zeros(len(turns), dtype=np.float32)
    for rows, _ in found:
        flags[rows] = 1
    if flags.all():
        flags[:] = 0
    return flags, np.concatenate([names for _, names in found]) if found else np.zeros(0, dtype=np.uint32)
