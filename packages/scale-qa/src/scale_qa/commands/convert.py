"""``scale-qa convert``: other people's data as packages."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

SOURCES = ("locomo", "longmemeval", "beam", "realtalk", "goodai")


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "convert",
        help="other people's data as a package",
        description="Make a package of other data: one batch a conversation, session marks stripped.",
    )
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("files", type=Path, nargs="+", help="files of that source; for beam also folders of a chat")
    parser.add_argument("--out", type=Path, required=True, help="folder of the package")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> None:
    """Convert and report what could not be used."""
    from scale_qa.convert import convert, write

    package = write(args.source, convert(args.source, args.files), args.out)
    counts = package.manifest["counts"]
    print(
        f"{args.out}: {len(package.batch_names)} batch(es), {counts['questions']} questions, {counts['turns']} turns, "
        f"manifest sha256 {package.digest}"
    )
    for reason, number in package.manifest["left_out"].items():
        print(f"left out: {number} {reason}")
