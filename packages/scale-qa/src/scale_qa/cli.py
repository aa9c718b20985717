"""The command ``scale-qa``: finds its subcommands in `scale_qa.commands` and reports errors in one line."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence

from tsim_core.errors import TSIMError

from scale_qa import commands
from scale_qa._version import __version__


def build_parser() -> argparse.ArgumentParser:
    """The parser with every subcommand in it."""
    parser = argparse.ArgumentParser(
        prog="scale-qa", description="A benchmark of episode integrity for the memory of chat assistants."
    )
    parser.add_argument("--version", action="version", version=f"scale-qa {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in pkgutil.iter_modules(commands.__path__):
        importlib.import_module(f"{commands.__name__}.{module.name}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Args:
        argv: Arguments; those of the process when None.

    Returns:
        Exit status: 0, or 1 after an error that is printed on stderr. Wrong usage exits with 2.
    """
    args = build_parser().parse_args(argv)
    try:
        return int(args.handler(args) or 0)
    except (TSIMError, OSError) as error:
        print(f"scale-qa: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
