"""``scale-qa report``: results as a Markdown page with plots."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "report",
        help="write results as a Markdown page with plots",
        description="Write one or more results as a Markdown page: intervals, paired tests, the paper's figures beside "
        "ours. Results of several packages get a section each, and a plot over the context length.",
    )
    parser.add_argument("results", type=Path, nargs="+", metavar="RESULTS.json")
    parser.add_argument("--out", type=Path, required=True, help="the Markdown file")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="folder for the plots (SVG and PNG)")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Write it."""
    from scale_qa.report import write_report
    from scale_qa.results import read_results

    write_report([read_results(path) for path in args.results], args.out, args.plots)
    return 0
