"""``scale-qa audit``: every rule of the records and of their balance."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

SHOWN = 20


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "audit",
        help="check every rule of a record file",
        description="Check every rule; exit status 1 when one is broken.",
    )
    parser.add_argument("records", type=Path, nargs="+", help="record files, taken together")
    parser.add_argument(
        "--full", action="store_true", help="also the counts of the 3,000 and how hard a 128k package is for BM25"
    )
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Print figures and breaches."""
    from scale_qa.audit import audit
    from scale_qa.records import read_records

    records = read_records(*args.records)
    report = audit(records, args.full)
    for name, value in report.figures.items():
        print(f"{name}: {value:g}" if value == int(value) else f"{name}: {value:.3f}")
    for _, text in report.breaches[:SHOWN]:
        print(f"breach: {text}")
    if len(report.breaches) > SHOWN:
        print(f"... and {len(report.breaches) - SHOWN} more breaches")
    for rule, number in Counter(rule for rule, _ in report.breaches).most_common():
        print(f"{number} breach(es) of {rule}")
    print(f"{len(records)} records, {len(report.breaches)} breaches")
    return 1 if report.breaches else 0
