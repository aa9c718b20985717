"""``scale-qa run``: measure systems on a package."""

from __future__ import annotations

import argparse
from pathlib import Path

from scale_qa.answers import PROVIDERS


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "run",
        help="measure systems on a package",
        description="Measure systems on a package. A run that is broken off goes on when the same command is given "
        "again; systems that OUT already holds under the same settings are kept.",
    )
    parser.add_argument("package", type=Path, metavar="DIR", help="a package made by build, convert or import")
    parser.add_argument(
        "--system",
        action="append",
        required=True,
        dest="systems",
        metavar="NAME",
        help="a name of `scale-qa systems`, or FILE.py:NAME of your own; give it once a system",
    )
    parser.add_argument("--out", type=Path, required=True, help="the results file (JSON)")
    parser.add_argument(
        "--embedder",
        help="a sentence-transformers model, static:MODEL for a model2vec one; MiniLM by default",
    )
    parser.add_argument("--cache", type=Path, help="file of embeddings; embeddings.sqlite beside OUT by default")
    parser.add_argument("-k", type=int, default=5, help="units handed over (default 5)")
    parser.add_argument(
        "--budget",
        action="append",
        type=int,
        dest="budgets",
        metavar="TOKENS",
        help="a token budget to measure recall under; 600, 1300 and 2600 by default",
    )
    parser.add_argument(
        "--query",
        choices=("query", "options"),
        default="query",
        help="ask the memory with the query alone, or with its four options appended",
    )
    parser.add_argument(
        "--write-back",
        choices=("auto", "on", "off"),
        default="auto",
        help="let questions and answers become turns of the thread; auto: when there is an --answer",
    )
    parser.add_argument(
        "--answer",
        metavar="PROVIDER:MODEL",
        help=f"answer model through LangChain, such as ollama:gemma2:9b (providers: {', '.join(PROVIDERS)} ...)",
    )
    parser.add_argument("--answer-url", metavar="URL", help="base URL of an OpenAI-compatible server")
    parser.add_argument(
        "--answer-method",
        choices=("json_schema", "function_calling", "json_mode"),
        help="how the choice is constrained; the model's default otherwise",
    )
    parser.add_argument(
        "--llm",
        action="store_true",
        help="lend the answer model to memories that want an LLM (HyDE, summaries, triples) instead of stand-ins",
    )
    parser.add_argument("--cross-encoder", metavar="MODEL", help="a sentence-transformers cross-encoder to lend")
    parser.add_argument("--fresh", action="store_true", help="start over instead of going on")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Run it and print a table."""
    from tsim_core.embedding import resolve_embedder

    from scale_qa.answers import load_answerer
    from scale_qa.embeddings import CachedEmbedder
    from scale_qa.errors import RunError
    from scale_qa.package import load_package
    from scale_qa.progress import RunProgress
    from scale_qa.run import Runner, RunSettings
    from scale_qa.summary import print_summary

    if args.llm and not args.answer:
        raise RunError("--llm lends the answer model; name one with --answer PROVIDER:MODEL")
    package = load_package(args.package)
    answerer = load_answerer(args.answer, args.answer_url, args.answer_method) if args.answer else None
    cache = args.cache or args.out.with_name("embeddings.sqlite")
    embedder = CachedEmbedder(resolve_embedder(args.embedder), cache)
    settings = RunSettings(
        embedder=embedder.name,
        k=args.k,
        budgets=tuple(sorted(set(args.budgets or (600, 1300, 2600)))),
        write_back=args.write_back == "on" or (args.write_back == "auto" and answerer is not None),
        query_form=args.query,
        answer=args.answer,
        llm=args.answer if args.llm else None,
        cross_encoder=args.cross_encoder,
    )
    systems = list(dict.fromkeys(args.systems))
    total = package.manifest["counts"]["questions"] * len(systems)
    try:
        with RunProgress(total) as progress:
            embedder.on_progress = progress.embedded
            runner = Runner(package, settings, embedder, answerer, answerer if args.llm else None, progress=progress)
            results = runner.run(systems, args.out, fresh=args.fresh)
    finally:
        embedder.close()
    print_summary(results, systems)
    return 0
