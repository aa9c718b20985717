"""Two systems on the same questions: which one got what the other missed, and whether that can be chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scale_qa.errors import ResultsError
from scale_qa.statistics import Paired, compare_paired

Row = Mapping[str, Any]
Outcome = Callable[[Row], bool | None]


def outcomes(results: Mapping[str, Any]) -> dict[str, Outcome]:
    """What can be compared in a results document, by the name of the figure."""
    settings = results["run"]["settings"]
    hard = {key for key, facts in results["questions"].items() if facts["hard"]}
    at_k = f"recall@{settings['k']}"
    found: dict[str, Outcome] = {
        at_k: lambda row: row["covered"],
        f"{at_k} hard": lambda row: row["covered"] if row["id"] in hard else None,
    }
    for budget in settings["budgets"]:
        found[f"recall@{budget} tokens"] = lambda row, key=str(budget): row["covered_at_tokens"][key]  # type: ignore[misc]
    found["co-containment"] = lambda row: row["co_contained"]
    found["accuracy"] = lambda row: (
        row["answer"]["right"] if "answer" in row and row["answer"]["failure"] is None else None
    )
    return found


def compare_systems(
    first: Mapping[str, Any], first_name: str, second: Mapping[str, Any], second_name: str
) -> dict[str, Paired]:
    """Compare a system of one results document with a system of another, or of the same.

    A question counts where both have an outcome: co-containment wants several evidence turns, accuracy an answer.

    Returns:
        Of each figure that both have, the comparison.

    Raises:
        ResultsError: If the documents are of different packages or settings, or have no such system.
    """
    if first["package"]["digest"] != second["package"]["digest"]:
        raise ResultsError(
            f"the results are of two packages ({first['package']['name']} and {second['package']['name']}): "
            "only the same questions can be compared"
        )
    rows = [_rows(first, first_name), _rows(second, second_name)]
    compared: dict[str, Paired] = {}
    theirs = outcomes(second)
    for name, outcome in outcomes(first).items():
        if name not in theirs:
            continue
        pairs = []
        for key, row in rows[0].items():
            if key in rows[1]:
                a, b = outcome(row), theirs[name](rows[1][key])
                if a is not None and b is not None:
                    pairs.append((a, b))
        if pairs:
            compared[name] = compare_paired([a for a, _ in pairs], [b for _, b in pairs])
    return compared


def common_names(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The pairs of systems to compare where none is named: the same names, else the only one of each.

    Raises:
        ResultsError: If neither holds.
    """
    same = [name for name in first["systems"] if name in second["systems"]]
    if same:
        return [(name, name) for name in same]
    if len(first["systems"]) == len(second["systems"]) == 1:
        return [(next(iter(first["systems"])), next(iter(second["systems"])))]
    raise ResultsError(
        "the two results share no system; name them with --first and --second: "
        f"{', '.join(first['systems'])} and {', '.join(second['systems'])}"
    )


def _rows(results: Mapping[str, Any], name: str) -> dict[str, Row]:
    if name not in results["systems"]:
        raise ResultsError(f"no results of {name!r}; there are {', '.join(results['systems'])}")
    return {row["id"]: row for row in results["systems"][name]["questions"]}
