"""The quality benchmark: build the 128k package, measure systems on it, write the report into docs/results.

    python benchmarks/quality/run.py               the cheap systems, minutes on two cores (make bench-quality)
    python benchmarks/quality/run.py --full        every system, an hour or two
    python benchmarks/quality/run.py --plateau     the default with each constant moved by a fifth
    python benchmarks/quality/run.py --arrangement braided       another arrangement
    python benchmarks/quality/run.py --questions 3000 --full      the whole data set in batches of 128k, many hours

Records, package and embeddings are kept in build/quality, so a second run only measures, and one that was broken off
goes on. ``--package DIR`` takes a package of your own instead, such as one that ``scale-qa convert`` made of LoCoMo.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from plateau import SYSTEMS as MOVED
from scale_qa.cli import main as scale_qa
from scale_qa.systems import built_in

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "quality"
CHEAP = [
    "tsim",
    "tsim-paper",
    "sliding-3",
    "bm25-256",
    "bm25-turn",
    "dense-turn",
    "standard-rag",
    "hybrid-rrf",
    "sessions",
]
NOT_HERE = ["no-context", "mem0-raw"]  # a control for answer models; a package that is installed by hand


def step(*arguments: str | Path) -> None:
    """Run one command of scale-qa, or stop with its exit status."""
    words = [str(argument) for argument in arguments]
    print("scale-qa", *words, flush=True)
    status = scale_qa(words)
    if status:
        sys.exit(status)


def package(questions: int, arrangement: str) -> Path:
    """The package, built where it is not there yet."""
    records = BUILD / "records.jsonl"
    if not records.exists():
        step("generate", "--out", records, "--count", "3000", "--seed", "7")
    folder = BUILD / f"128k-{questions}-{arrangement}"
    if not (folder / "manifest.json").exists():
        build = ["--target", "128k", "--seed", "7", "--questions", str(questions), "--arrangement", arrangement]
        step("build", "--records", records, *build, "--out", folder)
    return folder


def main() -> None:
    """Build, run, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="every system")
    parser.add_argument("--plateau", action="store_true", help="the default and its neighbours")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--arrangement", default="interleaved")
    parser.add_argument("--package", type=Path, help="measure on this package instead")
    parser.add_argument("--name", help="of the report; quality or quality-full by default")
    args = parser.parse_args()
    folder = args.package or package(args.questions, args.arrangement)
    names = [name for name in built_in() if name not in NOT_HERE] if args.full else CHEAP
    if args.plateau:
        names = ["tsim", *(f"{Path(__file__).parent / 'plateau.py'}:{name}" for name in MOVED)]
    name = args.name or ("quality-full" if args.full else "quality")
    results = BUILD / f"{folder.name}.json"
    systems = [word for system in names for word in ("--system", system)]
    step("run", folder, *systems, "--out", results, "--cache", BUILD / "embeddings.sqlite")
    out = ROOT / "docs" / "results"
    step("report", results, "--out", out / f"{name}.md", "--plots", out / name)


if __name__ == "__main__":
    main()
