"""``scale-qa build``: records and noise become a package."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from scale_qa.arrange import ARRANGEMENTS
from scale_qa.tokens import parse_tokens


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "build",
        help="build a package from records and noise",
        description="Build a package: batches of truth and noise at a target length, the same bytes everywhere.",
    )
    parser.add_argument("--records", type=Path, nargs="+", required=True, help="record files")
    parser.add_argument(
        "--noise",
        nargs="+",
        default=["own"],
        help="'own' for the noise that ships with the package (the default), or paths of noise files, each perhaps "
        "with its format in front: oasst:FILE, mtbench101:, mt-eval:, ultrachat:, wildchat:, sharegpt:, jsonl:",
    )
    parser.add_argument("--target", type=_tokens, required=True, help="length of a batch: 16k, 128k, 1M, 10M, ...")
    parser.add_argument("--seed", type=int, default=7, help="order and arrangement (default 7)")
    parser.add_argument("--noise-seed", type=int, default=None, help="choice of noise (default: the seed)")
    parser.add_argument("--arrangement", choices=ARRANGEMENTS, default="interleaved")
    parser.add_argument("--truth-cap", type=float, default=0.82, help="truth's share of a batch (default 0.82)")
    parser.add_argument("--questions", type=int, default=None, help="use only so many records, balanced by seed")
    parser.add_argument("--out", type=Path, required=True, help="folder of the package")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> None:
    """Build and say what came out."""
    from rich.progress import track

    from scale_qa.build import Plan, build, select
    from scale_qa.noise import NoisePool, own_noise
    from scale_qa.noise_readers import parse_source, read_dump
    from scale_qa.records import read_records

    plan = Plan(
        target=args.target,
        seed=args.seed,
        noise_seed=args.seed if args.noise_seed is None else args.noise_seed,
        arrangement=args.arrangement,
        truth_cap=args.truth_cap,
    )
    records = read_records(*args.records)
    if args.questions is not None:
        records = select(records, args.questions, args.seed)
    with NoisePool() as pool:
        for source in track(args.noise, "reading noise"):
            if source == "own":
                pool.add(own_noise(plan.noise_seed))
            else:
                format, path = parse_source(source)
                pool.add(read_dump(path, format))
        package = build(records, pool, plan, args.out)
    facts = package.manifest
    print(
        f"{args.out}: {facts['mode']}, {len(package.batch_names)} batch(es) of {args.target} tokens, "
        f"{facts['counts']['questions']} questions, {facts['counts']['turns']} turns, {args.arrangement}"
    )
    for noise in facts["noise"]:
        size = f"{noise['dialogues']} dialogues, {noise['tokens']:.0f} tokens"
        print(f"noise {noise['source']} ({noise['licence']}): {size}")
    reach = ", ".join(f"{share:.1%} in the last {tokens}" for tokens, share in facts["reachability"].items())
    print(f"recency reachability: {reach}\nmanifest sha256 {package.digest}")


def _tokens(value: str) -> int:
    try:
        return parse_tokens(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
