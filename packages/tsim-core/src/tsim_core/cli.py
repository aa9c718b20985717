"""The command line: ``tsim``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from tsim_core._version import __version__
from tsim_core.config import TSIMConfig
from tsim_core.embedding import resolve_embedder
from tsim_core.errors import InputError, TSIMError
from tsim_core.intake import unseen
from tsim_core.memory import EpisodicMemory, Progress
from tsim_core.readers import FORMATS, parse_time, read_turns
from tsim_core.thread import Thread
from tsim_core.types import Recall, Segment, Turn

PRESETS = {
    "default": TSIMConfig.default,
    "paper": TSIMConfig.paper,
    "longmemeval": TSIMConfig.longmemeval,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``tsim``. Returns the exit status: 0, 1 for an error said on stderr, 2 for wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a lone surrogate in a turn must not end a listing
    arguments = _parser().parse_args(argv)
    try:
        run: Callable[[argparse.Namespace], int] = arguments.run
        return run(arguments)
    except TSIMError as error:
        print(f"tsim: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tsim: interrupted; what was stored before is safe", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tsim", description="Episodic memory for chat threads.")
    parser.add_argument("--version", action="version", version=f"tsim {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    ingest = _command(commands, "ingest", _ingest, "read transcripts into a thread (creates the store)")
    ingest.add_argument("files", nargs="+", metavar="FILE")
    ingest.add_argument("--thread", required=True, help="name of the thread, such as alice/support")
    ingest.add_argument("--format", default="auto", choices=FORMATS)
    ingest.add_argument("--preset", choices=PRESETS, help="configuration of a new store (default: default)")
    ingest.add_argument("--again", action="store_true", help="add turns without ids that are in the thread already too")

    recall = _command(commands, "recall", _recall, "find the episodes that bear on a query")
    recall.add_argument("query")
    recall.add_argument("--thread", help="one thread; without it --prefix is needed")
    recall.add_argument("--prefix", help="all threads whose name begins so, such as alice")
    recall.add_argument("-k", type=int, help="most episodes")
    recall.add_argument("--max-tokens", type=int, help="most estimated tokens handed over")
    recall.add_argument("--after", help="only turns of this time or later (ISO 8601)")
    recall.add_argument("--before", help="only turns earlier than this (ISO 8601)")
    recall.add_argument("--explain", action="store_true", help="show what each view adds to the scores")
    _json(recall)

    segment = commands.add_parser("segment", help="show where a transcript is cut, and why")
    segment.set_defaults(run=_segment)
    segment.add_argument("file", metavar="FILE")
    segment.add_argument("--format", default="auto", choices=FORMATS)
    segment.add_argument("--preset", default="default", choices=PRESETS)
    segment.add_argument("--embedder")
    _json(segment)

    threads = _command(commands, "threads", _threads, "list the threads of a store")
    threads.add_argument("--prefix", default="")
    _json(threads)
    _json(_command(commands, "stats", _stats, "count what a store holds"))

    export = _command(commands, "export", _export, "write threads to a file of JSON lines")
    export.add_argument("--out", required=True, metavar="FILE")
    export.add_argument("--prefix", default="")
    import_ = _command(commands, "import", _import, "read a file that export wrote")
    import_.add_argument("file", metavar="FILE")

    forget = _command(commands, "forget", _forget, "delete turns for good")
    forget.add_argument("--thread", required=True)
    forget.add_argument("--turn", action="append", metavar="ID", help="a turn's id; may be given many times")
    forget.add_argument("--before", help="turns earlier than this (ISO 8601)")
    forget.add_argument("--after", help="turns of this time or later (ISO 8601)")
    forget.add_argument("--all", action="store_true", help="the whole thread")

    reindex = _command(commands, "reindex", _reindex, "embed and segment everything anew")
    reindex.add_argument("--preset", choices=PRESETS, help="with another configuration")
    _json(_command(commands, "check", _check, "verify the store against its indices"))

    inspect = _command(
        commands, "inspect", _inspect, "show the episodes of a thread as a page (comes with a later version)"
    )
    inspect.add_argument("--thread", required=True)
    inspect.add_argument("--out", metavar="PAGE.html")
    return parser


def _command(commands: Any, name: str, run: Callable[..., int], help: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    parser.set_defaults(run=run)
    parser.add_argument("--store", required=True, help="path of the store")
    parser.add_argument("--embedder", help="embedder of the store: minilm (default), a model name, static:NAME")
    return parser


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")


def _memory(arguments: argparse.Namespace, **options: Any) -> EpisodicMemory:
    options.setdefault("create", False)
    return EpisodicMemory(arguments.store, embedder=resolve_embedder(arguments.embedder), **options)


def _name(text: str) -> tuple[str, ...]:
    return tuple(text.split("/"))


@contextmanager
def _bar(label: str = "", first: str = "embedding") -> Iterator[Progress]:
    """A progress bar on stderr, and a second one as turns that were embedded are stored."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        tasks = [bar.add_task(f"{first} {label}".rstrip(), total=None)]

        def report(done: int, total: int) -> None:
            if done < bar.tasks[-1].completed:
                tasks.append(bar.add_task(f"storing {label}".rstrip(), total=total))
            bar.update(tasks[-1], completed=done, total=total)

        yield report


def _print_json(data: Any) -> None:
    print(json.dumps(data, indent=1))


def _ingest(arguments: argparse.Namespace) -> int:
    files = [(file, read_turns(file, arguments.format)) for file in arguments.files]  # all, before any is stored
    config = PRESETS[arguments.preset]() if arguments.preset else None
    with _memory(arguments, create=True, config=config) as memory:
        thread = memory.thread(*_name(arguments.thread))
        fresh = [turns for _, turns in files] if arguments.again else _unseen(files, thread.turns())
        for (file, turns), new in zip(files, fresh, strict=True):
            before = len(thread)
            with _bar(os.path.basename(file)) as progress:
                thread.extend(new, progress)
            added = len(thread) - before
            known = f", {len(turns) - added} were there already" if added < len(turns) else ""
            print(f"{file}: {added} turns added to {arguments.thread}{known}")
        print(f"{arguments.thread}: {len(thread)} turns in {_episodes(thread)} episodes")
    return 0


def _unseen(files: Sequence[tuple[str, list[Turn]]], stored: list[Turn]) -> list[list[Turn]]:
    """What each file adds to a thread, and to the files before it."""
    fresh = []
    for file, turns in files:
        try:
            fresh.append(unseen(stored, turns))
        except InputError as error:
            raise InputError(
                f"{file}: {error}. Nothing was added. Give it a thread of its own, or add all of it with --again"
            ) from error
        stored = stored + fresh[-1]
    return fresh


def _episodes(thread: Thread) -> int:
    """Number of episodes, without reading their turns."""
    return len({segment.episode for segment in thread.segments()})


def _recall(arguments: argparse.Namespace) -> int:
    options: dict[str, Any] = {
        name: value for name in ("k", "max_tokens") if (value := getattr(arguments, name)) is not None
    }
    options |= _times(arguments)
    with _memory(arguments, read_only=True) as memory:
        if arguments.thread is not None:
            name = _name(arguments.thread)
            if name not in memory.threads():
                raise InputError(_no_thread(memory, arguments.thread))
            recall = memory.thread(*name).recall(arguments.query, **options)
        elif arguments.prefix is not None:
            recall = memory.recall(arguments.query, prefix=_prefix(memory, arguments.prefix), **options)
        else:
            raise InputError("say where to look: --thread alice/support, or --prefix alice for all of hers")
    if arguments.json:
        _print_json(recall_dict(recall))
        return 0
    print(recall.text or "nothing was found")
    if arguments.explain and recall.episodes:
        print()
        print(explain(recall))
    return 0


def _times(arguments: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(arguments, name) for name in ("after", "before")}
    return {name: parse_time(value, f"--{name}") for name, value in given.items() if value is not None}


def _prefix(memory: EpisodicMemory, text: str) -> tuple[str, ...]:
    """A prefix that some thread begins with."""
    prefix = _name(text)
    if not memory.threads(prefix):
        raise InputError(_no_thread(memory, text, "that begins with "))
    return prefix


def _no_thread(memory: EpisodicMemory, name: str, which: str = "") -> str:
    known = ["/".join(n) for n in memory.threads()]
    shown = ", ".join(known[:5]) + (" …" if len(known) > 5 else "")
    return f"there is no thread {which}{name!r} in {memory.location}; there are: {shown or 'none'}"


def turn_json(turn: Turn) -> dict[str, Any]:
    """A turn as the command line prints it."""
    return {
        "id": turn.id,
        "role": turn.role,
        "text": turn.text,
        "timestamp": turn.timestamp.isoformat() if turn.timestamp else None,
    }


def recall_dict(recall: Recall) -> dict[str, Any]:
    """A recall as JSON data."""
    return {
        "query": recall.query,
        "episodes": [
            {
                "id": episode.id,
                "thread": list(episode.thread),
                "score": episode.score,
                "evidence": dict(episode.evidence),
                "omitted": episode.omitted,
                "turns": [turn_json(turn) for turn in episode.turns],
            }
            for episode in recall.episodes
        ],
        "text": recall.text,
        "tokens": recall.tokens,
    }


def explain(recall: Recall) -> str:
    """A table of scores by view; the episodes have the numbers of the text."""
    views = list(dict.fromkeys(view for e in recall.episodes for view in e.evidence))
    rows = [
        [f"[{number}]", *(f"{value:.2f}" for value in values), str(len(episode.turns)), str(episode.omitted)]
        for number, episode in enumerate(recall.episodes, start=1)
        for values in [[episode.score, *(episode.evidence.get(view, 0.0) for view in views)]]
    ]
    titles = [name.replace("_", " ").rpartition(" ")[::2] for name in ("", "score", *views, "turns", "left out")]
    table = [*map(list, zip(*titles, strict=True)), *rows]  # titles of two words stand on two lines
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
    return "\n".join([*(line.rstrip() for line in lines if line.strip()), f"{recall.tokens} tokens handed over"])


def _segment(arguments: argparse.Namespace) -> int:
    turns = read_turns(arguments.file, arguments.format)
    config = PRESETS[arguments.preset]()
    with EpisodicMemory(embedder=resolve_embedder(arguments.embedder), config=config) as memory:
        thread = memory.thread("segment")
        with _bar(os.path.basename(arguments.file)) as progress:
            thread.extend(turns, progress)
        segments = thread.segments()
    number: dict[str, int] = {}
    for s in segments:
        number.setdefault(s.episode, len(number))
    if arguments.json:
        _print_json({"segments": [{**asdict(s), "episode": number[s.episode]} for s in segments]})
        return 0
    for s in segments:
        first = " ".join(turns[s.start].text.split())[:60]
        span = f"{s.start}–{s.end - 1}"
        print(f"{span:>13}  episode {number[s.episode]:<5} {s.tokens:5} tokens  {_why(s):24}  {first}")
    return 0


def _why(segment: Segment) -> str:
    if segment.similarity is None or segment.threshold is None:
        return segment.cut
    sign = "<" if segment.similarity < segment.threshold else "≥"
    return f"{segment.cut} ({segment.similarity:.2f} {sign} {segment.threshold:.2f})"


def _threads(arguments: argparse.Namespace) -> int:
    prefix = _name(arguments.prefix) if arguments.prefix else ()
    with _memory(arguments, read_only=True) as memory:
        threads = [memory.thread(*name) for name in memory.threads(prefix)]
        rows = [{"thread": t.name, "turns": len(t), "episodes": _episodes(t)} for t in threads]
    if arguments.json:
        _print_json({"threads": rows})
        return 0
    for thread, row in zip(threads, rows, strict=True):
        print(f"{'/'.join(thread.name)}  {row['turns']} turns  {row['episodes']} episodes")
    if not rows:
        print("no threads")
    return 0


def _stats(arguments: argparse.Namespace) -> int:
    with _memory(arguments, read_only=True) as memory:
        stats = memory.stats()
    if arguments.json:
        _print_json(stats)
        return 0
    for name, value in stats.items():
        print(f"{name:11} {value}")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    with _memory(arguments, read_only=True) as memory:
        count = memory.export(arguments.out, _prefix(memory, arguments.prefix) if arguments.prefix else ())
    print(f"{count} turns written to {arguments.out}")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    with _memory(arguments, create=True) as memory, _bar() as progress:
        count = memory.import_(arguments.file, progress)
    print(f"{count} turns added from {arguments.file}")
    return 0


def _forget(arguments: argparse.Namespace) -> int:
    times = _times(arguments)
    if not (arguments.all or arguments.turn or times):
        raise InputError("say what to forget: --turn ID, --before or --after a time, or --all for the whole thread")
    with _memory(arguments) as memory:
        name = _name(arguments.thread)
        if name not in memory.threads():
            raise InputError(_no_thread(memory, arguments.thread))
        thread = memory.thread(*name)
        if arguments.all:
            if arguments.turn or times:
                raise InputError("--all forgets the whole thread; leave out --turn, --before and --after")
            count = thread.clear()
        else:
            count = thread.forget(arguments.turn, **times)
    print(f"{count} turns forgotten")
    return 0


def _reindex(arguments: argparse.Namespace) -> int:
    config = PRESETS[arguments.preset]() if arguments.preset else None
    embedder = resolve_embedder(arguments.embedder)
    with _bar() as progress:
        count = EpisodicMemory.reindex(arguments.store, embedder=embedder, config=config, progress=progress)
    print(f"{count} turns embedded with {embedder.name}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    with _memory(arguments, read_only=True) as memory, _bar(first="checking") as progress:
        problems = memory.check(progress)
    if arguments.json:
        _print_json({"problems": problems})
    else:
        print("\n".join(problems) or "the store is sound")
    return 1 if problems else 0


def _inspect(arguments: argparse.Namespace) -> int:
    raise InputError(
        "tsim inspect comes with a later version; `tsim segment` and `tsim recall --explain` say why today"
    )


if __name__ == "__main__":
    sys.exit(main())
