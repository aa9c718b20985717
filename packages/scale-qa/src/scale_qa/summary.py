"""The table that a run prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from scale_qa.tables import decimals


def print_summary(results: Mapping[str, Any], names: Sequence[str], console: Console | None = None) -> None:
    """Print the figures of some systems."""
    settings = results["run"]["settings"]
    k, budgets = settings["k"], settings["budgets"]
    table = Table(title=f"{results['package']['name']}: {results['package']['counts']['questions']:,} questions")
    table.add_column("system", no_wrap=True)
    for heading in (f"recall@{k}", "hard", *(f"{b:,} tok" for b in budgets), "together", "tokens", "p50 ms", "ms/turn"):
        table.add_column(heading, justify="right")
    if settings["answer"]:
        table.add_column("accuracy", justify="right")
        table.add_column("failed", justify="right")
    for name in names:
        system = results["systems"][name]
        cells = [
            name,
            decimals(system[f"recall_at_{k}"]),
            decimals(system[f"recall_at_{k}_hard"]),
            *(decimals(system["recall_at_tokens"][str(b)]) for b in budgets),
            decimals(system["co_containment"]),
            f"{system['context_tokens']['mean']:,.0f}",
            f"{system['retrieval_ms']['p50']:.1f}",
            f"{system['ingest_ms_per_turn']:.2f}",
        ]
        if "answers" in system:
            failed = system["answers"]["no_letter"] + system["answers"]["errors"]
            cells += [decimals(system["accuracy"]), str(failed)]
        table.add_row(*cells)
    if console is None:
        console = Console()
        if not console.is_terminal:  # a pipe has no width of its own
            console = Console(width=140)
    console.print(table)
    for name in names:
        for note in results["systems"][name]["notes"]:
            console.print(f"[dim]{name}: {note}[/dim]", highlight=False)
