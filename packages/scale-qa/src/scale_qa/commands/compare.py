"""``scale-qa compare``: two results question by question."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "compare",
        help="compare two systems question by question",
        description="Paired bootstrap and exact McNemar test between two systems on the same package. Without names, "
        "systems that both files hold are compared; A and B may be the same file with --first and --second.",
    )
    parser.add_argument("a", type=Path, metavar="A.json")
    parser.add_argument("b", type=Path, metavar="B.json")
    parser.add_argument("--first", metavar="NAME", help="the system of A")
    parser.add_argument("--second", metavar="NAME", help="the system of B")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Compare and print."""
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table

    from scale_qa.comparison import common_names, compare_systems
    from scale_qa.errors import ResultsError
    from scale_qa.results import read_results

    first, second = read_results(args.a), read_results(args.b)
    if bool(args.first) != bool(args.second):
        raise ResultsError("give both --first and --second, or neither")
    pairs = [(args.first, args.second)] if args.first else common_names(first, second)
    compared = {pair: compare_systems(first, pair[0], second, pair[1]) for pair in pairs}
    if args.json:
        document = [
            {"first": a, "second": b, "figures": {name: asdict(paired) for name, paired in figures.items()}}
            for (a, b), figures in compared.items()
        ]
        print(json.dumps(document, ensure_ascii=False, indent=1))
        return 0
    console = Console()
    for (a, b), figures in compared.items():
        table = Table(title=f"{a} ({args.a.name}) against {b} ({args.b.name})")
        for heading in ("figure", "n", "first", "second", "difference [95 %]", "only first", "only second", "p"):
            table.add_column(heading, justify="left" if heading == "figure" else "right")
        for name, paired in figures.items():
            low, high = paired.interval
            table.add_row(
                name,
                f"{paired.n:,}",
                f"{paired.first:.3f}",
                f"{paired.second:.3f}",
                f"{paired.difference:+.3f} [{low:+.3f}, {high:+.3f}]",
                str(paired.only_first),
                str(paired.only_second),
                f"{paired.p_value:.2g}",
            )
        console.print(table)
    return 0
