"""From ranked episodes to what a model reads: which turns are handed over, and how they are laid out.

Under a token budget, turns are taken by their score, best first and short ones before long ones that say as much, and
one that does not fit is passed over. As the score of a turn holds that of its episode, an episode that stands out comes
whole, and one of many comes with the turns that carry the evidence. What was left out is marked.

Episodes are laid out by age, oldest first, whatever their rank: a rule comes before what overwrote it, and the newest
word stands nearest to the question, where models read best.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from tsim_core.errors import ConfigError
from tsim_core.fusion import TurnTable
from tsim_core.ranking import RankedEpisode
from tsim_core.tokens import Estimator

ELISION = "[...]"
CUT = "[cut]"
BRIEF = 100.0
"""Tokens from which a turn counts as long."""
Texts = Callable[[Sequence[int]], Sequence[str]]
"""Rows to their texts."""


@dataclass(frozen=True)
class Assembly:
    """What is handed over.

    Attributes:
        k: Most episodes; None for as many as fit.
        max_tokens: Most estimated tokens of the text; None for whole episodes without limit.
        thrift: By how much a turn of e times the tokens must outscore another to come before it, if both are long.
            Among turns of less than a hundred tokens length counts little.
        max_messages: Most turns of an episode; None for no limit.
        overlap: Turns that neighbouring windows of ``max_messages`` share.
    """

    k: int | None = 10
    max_tokens: int | None = 1100
    thrift: float = 3.0
    max_messages: int | None = None
    overlap: int = 0

    def __post_init__(self) -> None:
        for name in ("k", "max_tokens", "max_messages"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} {value}: expected at least 1, or None")
        if not 0 <= self.overlap < (self.max_messages or self.overlap + 1):
            raise ConfigError(f"overlap {self.overlap}: expected at least 0 and less than max_messages")

    @classmethod
    def published(cls, k: int = 5) -> Assembly:
        """The paper's: whole episodes of at most eight messages, windows of a longer one sharing two."""
        return cls(k=k, max_tokens=None, max_messages=8, overlap=2)


@dataclass(frozen=True, slots=True)
class Portion:
    """What is handed over of an episode.

    Attributes:
        ranked: The episode.
        rows: Those of its turns that are handed over, ascending.
        texts: Their texts as handed over.
        omitted: How many of its turns are not.
    """

    ranked: RankedEpisode
    rows: tuple[int, ...]
    texts: tuple[str, ...]
    omitted: int


@dataclass(frozen=True, slots=True)
class Assembled:
    """What is handed over.

    Attributes:
        portions: Best first.
        text: For the prompt. ``[1]`` heads the portion that ranks first, and so on; ``[1...]`` if it is part of an
            episode. ``[...]`` stands where turns in between are left out.
        tokens: Estimated tokens of ``text``.
    """

    portions: tuple[Portion, ...]
    text: str
    tokens: float


def assemble(
    ranked: Sequence[RankedEpisode],
    turns: TurnTable,
    texts: Texts,
    estimator: Estimator,
    k: int | None,
    max_tokens: int | None,
    config: Assembly,
) -> Assembled:
    """Choose turns and lay them out.

    Args:
        ranked: Episodes, best first.
        turns: The turns that they number.
        texts: Gives the text of rows; asked once, for what is handed over.
        estimator: Counts tokens; the one that made ``turns.tokens``.
        k: Most episodes; None for as many as fit.
        max_tokens: Most tokens of the text; None for whole episodes.
        config: The rest.

    Returns:
        At most ``k`` portions, and a text of at most ``max_tokens``. A turn that alone exceeds the budget is cut with
        a mark if it would come first, and passed over otherwise.
    """
    drafts = [_Draft(r, turns) for r in ranked[:k]]
    layout = _Layout(turns, estimator)
    cut: dict[int, str] = {}
    if max_tokens is None:
        for draft in drafts:
            draft.take(_window(draft, config))
    else:
        cut = _fill(drafts, layout, texts, max_tokens, config.thrift)
    drafts = [draft for draft in drafts if draft.rows]
    whole = [row for draft in drafts for row in draft.rows if row not in cut]
    text_of = dict(zip(whole, texts(whole), strict=True)) | cut
    portions = tuple(
        Portion(draft.ranked, tuple(draft.rows), tuple(text_of[row] for row in draft.rows), draft.omitted)
        for draft in drafts
    )
    text = "\n\n".join(
        layout.block(number, draft, text_of)
        for number, draft in sorted(enumerate(drafts, 1), key=lambda item: item[1].rows[0])
    )
    return Assembled(portions, text, estimator(text))


class _Draft:
    """The rows of one episode, and of those joined to it, that are handed over, as they are being chosen."""

    def __init__(self, ranked: RankedEpisode, turns: TurnTable) -> None:
        self.ranked = ranked
        every = sorted(ranked.turn_scores)
        self.spoken = [row for row in every if turns.tokens[row] > 0]
        self.own = [row for row in every if turns.episode_of_row[row] == ranked.episode]
        self.own_spoken = [row for row in self.own if turns.tokens[row] > 0]
        self.rows: list[int] = []
        self.frame = 0.0

    def take(self, rows: list[int]) -> None:
        """Hand over these rows, in order; with all that is spoken in the episode come its blank turns too."""
        self.rows = sorted({*rows, *self.own}) if rows and self.whole(rows) else rows

    def whole(self, rows: Sequence[int]) -> bool:
        """Whether some of its rows hold all that is spoken in the episode itself."""
        return set(rows).issuperset(self.own_spoken)

    def skipped(self, row: int, later: int) -> bool:
        """Whether turns of its own are between two of its rows."""
        return bisect_left(self.own_spoken, later) > bisect_right(self.own_spoken, row)

    @property
    def omitted(self) -> int:
        """How many of the episode's own turns are not handed over."""
        return len(set(self.own).difference(self.rows))


def _window(draft: _Draft, config: Assembly) -> list[int]:
    """The spoken rows of an episode; of one with too many, the window with the most evidence."""
    rows, size, scores = draft.spoken, config.max_messages, draft.ranked.turn_scores
    if size is None or len(rows) <= size:
        return rows
    starts = range(0, len(rows) - config.overlap, size - config.overlap)
    windows = [rows[start : start + size] for start in starts]
    return max(windows, key=lambda window: sum(scores.get(row, 0.0) for row in window))


class _Layout:
    """How turns are written, and what that costs beyond their text."""

    def __init__(self, turns: TurnTable, estimator: Estimator) -> None:
        self._turns = turns
        self._estimator = estimator
        self._cost = lru_cache(maxsize=None)(estimator)

    def row_cost(self, row: int) -> float:
        """Tokens of a turn with its label."""
        return float(self._turns.tokens[row]) + self._cost(f"{self._turns.label(row)}:")

    def frame_cost(self, draft: _Draft, rows: Sequence[int]) -> float:
        """Tokens of what stands around the turns: heading, dates and marks."""
        return sum(self._cost(line) for line in self._lines(1, draft, rows) if isinstance(line, str))

    def block(self, number: int, draft: _Draft, text_of: Mapping[int, str]) -> str:
        """An episode as text."""
        return "\n".join(
            line if isinstance(line, str) else f"{self._turns.label(line)}: {text_of[line]}"
            for line in self._lines(number, draft, [row for row in draft.rows if self._turns.tokens[row] > 0])
        )

    def cut(self, row: int, text: str, room: float) -> str | None:
        """The beginning of a turn and a mark, in so many tokens with its label; None where nothing fits."""
        room -= self._cost(f"{self._turns.label(row)}:") + self._cost(CUT)
        fits = bisect_right(range(1, len(text) + 1), room, key=lambda end: self._estimator(text[:end]))
        head = text[:fits]
        if fits < len(text) and " " in head:
            head = head[: head.rindex(" ")]
        return f"{head.rstrip()} {CUT}" if head.strip() else None

    def _lines(self, number: int, draft: _Draft, rows: Sequence[int]) -> Iterator[str | int]:
        """Its lines; the number of a row stands for that turn."""
        day = self._day(rows[0])
        partly = "" if draft.whole(rows) else "..."
        yield f"[{number}{partly}] {day}".rstrip()
        last = rows[0]
        for row in rows:
            if draft.skipped(last, row):
                yield ELISION
            last = row
            today = self._day(row)
            if today and today != day:
                yield today
                day = today
            yield row

    def _day(self, row: int) -> str:
        seconds = float(self._turns.timestamps[row])
        return "" if math.isnan(seconds) else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _fill(drafts: Sequence[_Draft], layout: _Layout, texts: Texts, max_tokens: int, thrift: float) -> dict[int, str]:
    """Choose rows by score while they fit. Returns the text of a turn that had to be cut."""
    candidates = [
        (draft.ranked.turn_scores[row], place, row) for place, draft in enumerate(drafts) for row in draft.spoken
    ]
    costs = {row: layout.row_cost(row) for _, _, row in candidates}
    left = float(max_tokens)
    cut: dict[int, str] = {}
    if candidates:
        _, place, row = max(candidates, key=lambda c: (c[0], -c[1], -c[2]))
        draft, frame = drafts[place], layout.frame_cost(drafts[place], [row])
        if costs[row] + frame > left:
            shorter = layout.cut(row, texts([row])[0], left / 2 - frame)
            if shorter is not None:
                cut[row] = shorter
                draft.rows, draft.frame = [row], frame
                left /= 2
    for _, place, row in sorted(
        (thrift * math.log1p(costs[row] / BRIEF) - score, place, row) for score, place, row in candidates
    ):
        draft, cost = drafts[place], costs[row]
        if cost > left or row in cut:
            continue
        rows = sorted([*draft.rows, row])
        frame = layout.frame_cost(draft, rows)
        cost += frame - draft.frame
        if cost <= left:
            left -= cost
            draft.rows, draft.frame = rows, frame
    for draft in drafts:
        draft.take(draft.rows)
    return cut
