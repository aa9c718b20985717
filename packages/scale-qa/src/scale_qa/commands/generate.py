"""``scale-qa generate``: draw records from the scenario families."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("generate", help="draw records from the scenario families")
    parser.add_argument("--out", type=Path, required=True, help="file to write, JSON lines")
    parser.add_argument("--count", type=int, default=3000, help="how many records (default 3000)")
    parser.add_argument("--seed", type=int, default=7, help="the same seed gives the same bytes (default 7)")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> None:
    """Write the records."""
    from scale_qa.families import shipped_families
    from scale_qa.generate import generate
    from scale_qa.records import write_records

    families = shipped_families()
    records = generate(families, args.count, args.seed)
    write_records(args.out, records)
    print(f"{len(records)} records from {len(families)} families written to {args.out}")
