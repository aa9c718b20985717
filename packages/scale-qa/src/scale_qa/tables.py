"""Small helpers for Markdown tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is left-aligned, the others right."""
    lines = [
        "| " + " | ".join(headings) + " |",
        "|" + "|".join(["---"] + ["--:"] * (len(headings) - 1)) + "|",
    ]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def decimals(value: float | None, places: int = 3) -> str:
    """A number, or a dash where there is none. Shares lose their leading zero."""
    if value is None:
        return "–"
    text = f"{value:.{places}f}"
    return text[1:] if places == 3 and text.startswith("0.") else text


def with_interval(value: float | None, bounds: Sequence[float] | None) -> str:
    """A share with its interval, such as ``.751 [.723, .777]``."""
    if value is None or bounds is None:
        return "–"
    return f"{decimals(value)} [{decimals(bounds[0])}, {decimals(bounds[1])}]"


def best_bold(column: Sequence[tuple[float | None, str]], aside: Collection[int] = ()) -> list[str]:
    """The texts of a column, the one of the highest value in bold; those in the places ``aside`` do not compete."""
    competing = {i: value for i, (value, _) in enumerate(column) if value is not None and i not in aside}
    best = max(competing.values(), default=None)
    return [f"**{text}**" if i in competing and value == best else text for i, (value, text) in enumerate(column)]


def figure(summary: Mapping[str, Any], path: Sequence[str]) -> float | None:
    """A number deep in a summary; None where it is missing."""
    value: Any = summary
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return None if value is None else float(value)


def package_title(package: Mapping[str, Any]) -> str:
    """What a package is called: its name, and the length and arrangement that it was built for."""
    target = package.get("target_tokens")
    length = [f"{target / 1000:,.0f}k tokens"] if target else []
    arrangement = [str(package["arrangement"])] if "arrangement" in package else []
    return ", ".join([str(package["name"]), *length, *arrangement])
