"""``scale-qa segment-eval``: score segmentation against a gold file."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "segment-eval",
        help="score segmentation against a gold file",
        description='Score segmentation against a JSON list of {"utterances": [...], "segments": [lengths]}: Pk, '
        "WindowDiff, F1 and Score as SuperDialseg defines them, purity and coverage.",
    )
    parser.add_argument("gold", type=Path, metavar="GOLD.json")
    parser.add_argument("--system", choices=("tsim", "tsim-paper"), default="tsim")
    parser.add_argument("--embedder", help="as for `scale-qa run`")
    parser.add_argument(
        "--roles",
        choices=("auto", "alternate", "none"),
        default="auto",
        help="gold files have no roles: user and assistant in turn, speakers on a par, or what the file looks like",
    )
    parser.add_argument("--cache", type=Path, help="file of embeddings to reuse")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Score and print."""
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.progress import Progress
    from tsim_core.embedding import resolve_embedder

    from scale_qa.embeddings import CachedEmbedder
    from scale_qa.segmentation_eval import evaluate, read_gold

    dialogues = read_gold(args.gold)
    embedder = CachedEmbedder(resolve_embedder(args.embedder), args.cache)
    try:
        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task(args.gold.name, total=len(dialogues))
            scores, roles = evaluate(
                dialogues, args.system, embedder, args.roles, lambda done: bar.update(task, completed=done)
            )
    finally:
        embedder.close()
    document = {
        **asdict(scores),
        "system": args.system,
        "embedder": embedder.name,
        "roles": roles,
    }
    if args.json:
        print(json.dumps(document, ensure_ascii=False, indent=1))
        return 0
    for name, value in document.items():
        print(f"{name:<15} {value:.3f}" if isinstance(value, float) else f"{name:<15} {value}")
    return 0
