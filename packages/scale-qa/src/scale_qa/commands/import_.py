"""``scale-qa import``: a published runtime package as records and noise."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "import",
        help="a published runtime package as records and noise",
        description="Read the Python files of a published runtime package as literals; nothing is executed.",
    )
    parser.add_argument("directory", type=Path, help="the folder that holds runtime/, or one mode's folder")
    parser.add_argument("--out", type=Path, required=True, help="record file to write")
    parser.add_argument("--noise-out", type=Path, required=True, help="noise file to write")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> None:
    """Import and report what a reader must know."""
    from scale_qa.importer import import_package
    from scale_qa.records import write_noise, write_records

    imported = import_package(args.directory)
    write_records(args.out, imported.records)
    write_noise(args.noise_out, imported.noise)
    print(f"{len(imported.records)} records written to {args.out}")
    print(f"{len(imported.noise)} noise dialogues written to {args.noise_out}")
    for note, number in sorted(imported.notes.items()):
        print(f"note: {number} {note}")
