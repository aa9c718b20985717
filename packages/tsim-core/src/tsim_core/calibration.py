"""The default M1: cut where an exchange is no more like what came before than unrelated exchanges are.

The published rule compares one turn with a fixed threshold that belongs to one embedder. This one

- compares exchanges: a user turn and what answers it. Between speakers on a par each turn is an exchange;
- looks one exchange ahead: whether an exchange starts a topic is decided once the next one is complete, for good;
- knows what similarities mean: unrelated exchanges are drawn all along from the thread itself, related ones are those
  that were not cut, and both start from what the embedder was measured to find (`tsim_core.scale`);
- knows how long the pauses are after which the topics of this thread change, where turns are dated;
- reads the first words (`tsim_core.cues`): an answer or a reference back opens nothing;
- gives the probability of a shift as the strength of a cut (`tsim_core.shifts`).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tsim_core.cues import asks, ends_asking, is_short, opening_evidence
from tsim_core.embedding import Vectors
from tsim_core.errors import ConfigError
from tsim_core.scale import MINILM, Scale
from tsim_core.segmentation import MODEL_ROLES, USER_ROLES, ClosedSegment, Fetch, SegTurn
from tsim_core.shifts import Evidence, ShiftModel
from tsim_core.similarity import Reservoir, likeness, likenesses, representatives

BEFORE_LAST = 0.4  # weight of the exchange before the last one beside it
LEVEL_BEHIND = 0.5  # weight of the level behind beside the level ahead
NULL_SIZE = 32  # exchanges that the null distribution is drawn from
NULL_LAG = 4  # exchanges between two that count as unrelated
RUNS = 3  # earlier segments that an exchange may resume
PRESSURE = 3.0  # log-odds of a cut that a full segment adds; none up to half of it


@dataclass(frozen=True)
class CalibratedSegmentation:
    """Settings of the default segmentation.

    Attributes:
        l_max: Estimated tokens that a segment holds at most, unless one exchange alone is longer.
        cut_probability: Probability of a shift above which a cut is made.
        shift_rate: Assumed probability that a turn starts a topic, until the thread shows its own.
        null: Assumed mean and standard deviation of the likeness of unrelated exchanges, until the thread shows its
            own: 0 and 1 are what the embedder finds between unrelated exchanges and within a dialogue.
        same: The same for neighbouring exchanges of one topic.
    """

    l_max: float = 800
    cut_probability: float = 0.35
    shift_rate: float = 0.16
    null: tuple[float, float] = (0.2, 0.3)
    same: tuple[float, float] = (0.9, 0.4)

    def __post_init__(self) -> None:
        if self.l_max <= 0:
            raise ConfigError(f"l_max {self.l_max}: expected a positive number")
        for name, value in (("cut_probability", self.cut_probability), ("shift_rate", self.shift_rate)):
            if not 0 < value < 1:
                raise ConfigError(f"{name} {value}: expected a probability between 0 and 1, both excluded")
        if self.null[1] <= 0 or self.same[1] <= 0 or self.same[0] <= self.null[0]:
            raise ConfigError(f"null {self.null}, same {self.same}: a spread is positive, and same has the higher mean")


@dataclass
class Exchange:
    """A turn and what answers it: what a cut never divides.

    Attributes:
        start: Position of its first turn.
        end: One more than the position of its last turn.
        tokens: Estimated tokens.
        cue: Log-odds of opening a topic that its first words give.
        on_a_par: Whether no user opened it.
        speaks: Positions of the turns that stand for it, those with a vector.
        vectors: Their vectors, shape (n, d); None where there are none.
        back: Its likeness with the one before and the one before that, as far as there are any.
        began: Seconds since 1970 of its first turn; None where unknown.
        ended: The same of its last turn that has a time.
    """

    start: int
    end: int
    tokens: float
    cue: float
    on_a_par: bool
    speaks: list[int] = field(default_factory=list)
    vectors: Vectors | None = None
    back: tuple[float | None, ...] = (None, None)
    began: float | None = None
    ended: float | None = None

    def add(self, turn: SegTurn) -> None:
        """Take in a turn."""
        self.end = turn.position + 1
        self.tokens += turn.tokens
        self.ended = self.ended if turn.time is None else turn.time
        if turn.vector is not None:
            rows = [turn.vector] if self.vectors is None else [*self.vectors, turn.vector]
            kept = representatives(len(rows))
            speaks = [*self.speaks, turn.position]
            self.speaks = [speaks[i] for i in kept]
            self.vectors = np.stack([rows[i] for i in kept])

    def state(self) -> list[Any]:
        """As JSON data."""
        speaks, back = list(self.speaks), list(self.back)
        return [self.start, self.end, self.tokens, self.cue, self.on_a_par, speaks, back, self.began, self.ended]


class CalibratedSegmenter:
    """Cuts a stream of turns into segments; see the text of the module.

    Args:
        config: Settings.
        scale: What the embedder's similarities mean.
    """

    def __init__(self, config: CalibratedSegmentation, scale: Scale = MINILM) -> None:
        self.config = config
        self._scale = scale
        self._model: ShiftModel | None = None  # made when the first exchange shows who is talking
        self._reservoir = Reservoir(NULL_SIZE)
        self._user_spoke = False
        self._asked = False  # whether the last turn ended in a question
        self._recent: list[Exchange] = []  # the last two that are decided, then those that are not
        self._decided = 0  # how many of the recent ones are decided
        self._open: tuple[int, float, int] | None = (
            None  # start, tokens and length of the open segment, as far as decided
        )
        self._runs: list[
            tuple[int, Exchange]
        ] = []  # start and last exchange of the last segments, the open one included

    def push(self, turn: SegTurn) -> list[ClosedSegment]:
        """Take the next turn; see `Segmenter.push`."""
        closed: list[ClosedSegment] = []
        if not self._recent or self._opens(turn):
            if self._recent:
                self._complete()
                closed = self._settle_all(ahead=1)
            on_a_par = turn.role not in USER_ROLES
            cue = opening_evidence(turn.text, self._asked, on_a_par)
            self._recent.append(Exchange(turn.position, turn.position, 0.0, cue, on_a_par, began=turn.time))
        self._recent[-1].add(turn)
        self._user_spoke = self._user_spoke or turn.role in USER_ROLES
        if turn.vector is not None:
            self._asked = ends_asking(turn.text)
        return closed

    def tail(self) -> list[ClosedSegment]:
        """See `Segmenter.tail`."""
        if not self._recent:
            return []
        twin = copy.copy(self)
        twin._model, twin._reservoir = copy.deepcopy(self._model), copy.copy(self._reservoir)
        twin._runs, twin._recent = list(self._runs), [*self._recent[:-1], copy.copy(self._recent[-1])]
        twin._complete()
        closed = twin._settle_all(ahead=0)
        assert twin._open is not None
        start, tokens, _ = twin._open
        return [*closed, ClosedSegment(start, self._recent[-1].end, tokens, "end")]

    def _opens(self, turn: SegTurn) -> bool:
        """Whether a turn starts an exchange. Replies, tools and instructions never do once a user spoke."""
        if turn.vector is None:
            return False
        if turn.role in USER_ROLES:
            return True
        if turn.role in INSTRUCTIONS or (turn.role in MODEL_ROLES and self._user_spoke):
            return False
        return asks(turn.text) or not is_short(turn.text)

    def _complete(self) -> None:
        """Measure the last exchange against its predecessors and against unrelated ones."""
        exchange = self._recent[-1]
        if exchange.vectors is None:
            return
        before = [e.vectors for e in self._recent[-2:-4:-1]]
        back = [None if vectors is None else likeness(exchange.vectors, vectors) for vectors in before]
        exchange.back = (*back, None, None)[:2]
        if self._model is None:
            rate = self.config.shift_rate if exchange.on_a_par else 1 - (1 - self.config.shift_rate) ** 2
            self._model = ShiftModel(self._scale.spread(self.config.null), self._scale.spread(self.config.same), rate)
        for value in self._reservoir.compare(exchange.vectors, lag=NULL_LAG):
            self._model.null.add(value)
        self._reservoir.offer(exchange.speaks, exchange.vectors)

    def _settle_all(self, ahead: int) -> list[ClosedSegment]:
        """Decide about all exchanges that ``ahead`` others follow."""
        closed: list[ClosedSegment] = []
        while len(self._recent) - self._decided > ahead:
            segment = self._settle()
            if segment is not None:
                closed.append(segment)
        return closed

    def _settle(self) -> ClosedSegment | None:
        """Decide about the first undecided exchange."""
        exchange = self._recent[self._decided]
        closed = self._cut(exchange) if self._open is not None else None
        if self._open is None or closed is not None:
            self._open = (exchange.start, 0.0, 0)
        start, tokens, length = self._open
        self._open = (start, tokens + exchange.tokens, length + 1)
        if exchange.vectors is not None:
            self._runs = [*(run for run in self._runs if run[0] != start), (start, exchange)][-RUNS - 1 :]
        self._decided += 1
        drop = max(0, self._decided - 2)
        del self._recent[:drop]
        self._decided -= drop
        return closed

    def _cut(self, exchange: Exchange) -> ClosedSegment | None:
        """The open segment, if it ends before ``exchange``."""
        assert self._open is not None
        start, tokens, _ = self._open
        end = self._recent[self._decided - 1].end
        full = tokens + exchange.tokens > self.config.l_max
        seen = self._evidence(exchange)
        if seen is None or self._model is None:  # blank exchanges stay where they are
            return ClosedSegment(start, end, tokens, "max") if full else None
        found = self._model.weigh(seen)
        self._model.learn(found)
        shift = found.strength > self.config.cut_probability
        if not shift and not full:
            return None
        threshold = found.threshold(self.config.cut_probability)
        return ClosedSegment(start, end, tokens, "shift" if shift else "max", seen.near, threshold, found.strength)

    def _evidence(self, exchange: Exchange) -> Evidence | None:
        assert self._open is not None
        start, tokens, length = self._open
        near, further = exchange.back
        if near is None or exchange.vectors is None:
            return None
        if length >= 2 and further is not None:
            near = (near + BEFORE_LAST * further) / (1 + BEFORE_LAST)
        following = self._recent[self._decided + 1] if self._decided + 1 < len(self._recent) else None
        ahead, across = following.back if following else (None, None)
        behind = self._recent[self._decided - 1].back[0] if length >= 2 else None
        levels = [(x, w) for x, w in ((ahead, 1.0), (behind, LEVEL_BEHIND)) if x is not None]
        local = sum(x * w for x, w in levels) / sum(w for _, w in levels) if levels else None
        earlier = [run.vectors for run_start, run in self._runs if run_start != start and run.vectors is not None]
        pressure = PRESSURE * max(0.0, 2 * tokens / self.config.l_max - 1)
        return Evidence(
            near,
            ahead,
            across,
            local,
            likenesses(exchange.vectors, earlier),
            exchange.cue,
            pressure,
            self._pause(exchange),
            exchange.on_a_par,
        )

    def _pause(self, exchange: Exchange) -> float | None:
        """Seconds between an exchange that is to be decided and the one before it.

        None for turns of one time, too: that is when their session began, or when they were imported.
        """
        ended = self._recent[self._decided - 1].ended
        return None if ended is None or exchange.began is None or exchange.began <= ended else exchange.began - ended

    def state(self) -> dict[str, Any]:
        """See `Segmenter.state`."""
        return {
            "model": None if self._model is None else self._model.state(),
            "reservoir": self._reservoir.state(),
            "user_spoke": self._user_spoke,
            "asked": self._asked,
            "recent": [exchange.state() for exchange in self._recent],
            "decided": self._decided,
            "open": None if self._open is None else list(self._open),
            "runs": [[start, exchange.state()] for start, exchange in self._runs],
        }

    def restore(self, state: dict[str, Any], fetch: Fetch) -> None:
        """See `Segmenter.restore`."""
        exchanges = [*state["recent"], *(exchange for _, exchange in state["runs"])]
        wanted = {p for data in exchanges for p in data[5]} | set(Reservoir.positions(state["reservoir"]))
        rows = {p: t.vector for p, t in fetch(sorted(wanted)).items() if t.vector is not None}
        if state["model"] is None:
            self._model = None
        else:
            self._model = ShiftModel(self.config.null, self.config.same, self.config.shift_rate)
            self._model.restore(state["model"])
        self._reservoir.restore(state["reservoir"], rows)
        self._user_spoke, self._asked = state["user_spoke"], state["asked"]
        self._recent = [_exchange(data, rows) for data in state["recent"]]
        self._decided = state["decided"]
        self._open = None if state["open"] is None else tuple(state["open"])
        self._runs = [(start, _exchange(data, rows)) for start, data in state["runs"]]


INSTRUCTIONS = frozenset({"tool", "function", "system", "developer"})


def _exchange(data: Sequence[Any], rows: dict[int, Vectors]) -> Exchange:
    start, end, tokens, cue, on_a_par, speaks, back, began, ended = data
    held = [p for p in speaks if p in rows]
    vectors = np.stack([rows[p] for p in held]) if held else None
    return Exchange(start, end, tokens, cue, on_a_par, held, vectors, tuple(back), began, ended)
