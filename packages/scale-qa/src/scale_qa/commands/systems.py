"""``scale-qa systems``: what can be measured."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("systems", help="list the systems, plug-ins included, with one line each")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Print the list."""
    from scale_qa.systems import all_systems

    specs = all_systems()
    width = max(map(len, specs))
    for name, spec in specs.items():
        extra = f"  (needs: pip install {spec.extra})" if spec.extra else ""
        print(f"{name:<{width}}  {spec.summary}{extra}")
    return 0
