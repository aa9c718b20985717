"""What one query's units are worth: which evidence they hold, and what they cost to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tsim_core.types import Turn

from scale_qa.systems.base import Unit
from scale_qa.tokens import estimate_tokens, words_to_tokens

_ONE_WORD = words_to_tokens(1)


class Reader:
    """Reads units the way a model would: turns verbatim, each once, and texts as given.

    One ruler for all systems: estimated tokens of what was said. Roles and separators cost nothing.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns: list[Turn] = []
        self._tokens: list[float] = []
        self.extend(turns)

    def extend(self, turns: Iterable[Turn]) -> None:
        """Append turns of the stream."""
        for turn in turns:
            self._turns.append(turn)
            self._tokens.append(estimate_tokens(turn.text))

    def tokens(self, units: Iterable[Unit]) -> float:
        """Estimated tokens of the units together."""
        seen: set[int] = set()
        total = 0.0
        for unit in units:
            new, cost = self._news(unit, seen)
            seen.update(new)
            total += cost
        return total

    def held(self, unit: Unit, evidence: Iterable[int]) -> set[int]:
        """The evidence turns that a unit really hands over."""
        claimed = {i for i in evidence if i in unit.turns}
        if unit.text is None or not claimed:
            return claimed
        text = _squeeze(unit.text)
        return {i for i in claimed if _squeeze(self._turns[i].text) in text}

    def found(self, units: Iterable[Unit], evidence: Iterable[int]) -> set[int]:
        """The evidence turns that the units together hand over."""
        evidence = tuple(evidence)
        return set().union(*(self.held(unit, evidence) for unit in units))

    def unbacked(self, units: Iterable[Unit], evidence: Iterable[int]) -> int:
        """Evidence turns that a unit claims while its text does not hold them."""
        evidence = set(evidence)
        return sum(len(evidence.intersection(unit.turns)) - len(self.held(unit, evidence)) for unit in units)

    def fill(self, units: Iterable[Unit], budget: float) -> list[Unit]:
        """Take units by rank while they fit the budget; what does not fit is skipped, not cut."""
        taken: list[Unit] = []
        seen: set[int] = set()
        used = 0.0
        for unit in units:
            if used + _ONE_WORD > budget:
                break
            new, cost = self._news(unit, seen)
            if cost > 0 and used + cost <= budget:
                taken.append(unit)
                seen.update(new)
                used += cost
        return taken

    def write(self, units: Iterable[Unit]) -> str:
        """The units as prompt text: blocks in rank order, each turn once, with its role."""
        seen: set[int] = set()
        blocks: list[str] = []
        for unit in units:
            new, _ = self._news(unit, seen)
            seen.update(new)
            if unit.text is not None:
                blocks.append(unit.text)
            elif new:
                blocks.append("\n".join(f"{self._turns[i].role}: {self._turns[i].text}" for i in new))
        return "\n\n".join(blocks)

    def _news(self, unit: Unit, seen: set[int]) -> tuple[list[int], float]:
        """The turns of a unit that are not in ``seen`` and what they cost; a text always costs all of itself."""
        if unit.text is not None:
            return [], estimate_tokens(unit.text)
        new = [i for i in unit.turns if i not in seen]
        return new, sum(self._tokens[i] for i in new)


def capped(reader: Reader, units: Sequence[Unit], cap: float | None) -> list[Unit]:
    """The units under a system's own cap on its context."""
    return list(units) if cap is None else reader.fill(units, cap)


def _squeeze(text: str) -> str:
    """Text with every run of whitespace as one space: rendering may wrap lines."""
    return " ".join(text.split())
