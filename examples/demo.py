"""What TSIM does, on a thread of several hundred turns.

Ingests five months of one person's chat with an assistant (mixed topics, no session marks), then asks for ordinary
help. Each answer hangs on a rule that was set weeks before and never mentioned again. Prints the episodes that come
back, what each view says of them, the tokens handed over and the times.

    python examples/demo.py [--all]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from tsim_core import EpisodicMemory, Recall, read_turns

DATA = Path(__file__).parent / "data"


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description="What TSIM does, on a thread of several hundred turns.")
    parser.add_argument("--all", action="store_true", help="ask all requests, not only the first three")
    arguments = parser.parse_args()
    console = Console(width=110, highlight=False)
    turns = read_turns(DATA / "mira.jsonl")
    requests = json.loads((DATA / "mira_requests.json").read_text())

    with EpisodicMemory() as memory:
        thread = memory.thread("mira", "assistant")
        start = time.perf_counter()
        columns = (TextColumn("embedding"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("embed", total=len(turns))
            thread.extend(turns, lambda done, total: bar.update(task, completed=done, total=total))
        seconds = time.perf_counter() - start
        episodes = thread.episodes()
        linked = sum(len(episode.segments) > 1 for episode in episodes)
        console.print(
            f"{len(turns)} turns, {turns[0].timestamp:%d %B} to {turns[-1].timestamp:%d %B %Y}: "
            f"{len(episodes)} episodes ({linked} of them resumed after an interruption), "
            f"{1000 * seconds / len(turns):.0f} ms a turn\n"
        )
        for request in requests if arguments.all else requests[:3]:
            start = time.perf_counter()
            recall = thread.recall(request["query"])
            show(console, request, recall, time.perf_counter() - start)


def show(console: Console, request: dict[str, object], recall: Recall, seconds: float) -> None:
    """Print one request and what came back."""
    needed = set(request["evidence"])  # type: ignore[call-overload]
    console.rule(f"[bold]{request['query']}", align="left")
    views = list(dict.fromkeys(view for episode in recall.episodes for view in episode.evidence))
    table = Table("episode", "score", *views, "turns", "the rule is here", box=None, header_style="dim")
    for episode in recall.episodes:
        found = [turn.id or "" for turn in episode.turns if turn.id in needed]
        table.add_row(
            " ".join(episode.turns[0].text.split())[:34],
            f"{episode.score:.2f}",
            *(f"{episode.evidence.get(view, 0):.2f}" for view in views),
            str(len(episode.turns)),
            "[green]" + ", ".join(found),
        )
    console.print(table)
    handed = {turn.id: turn for episode in recall.episodes for turn in episode.turns}
    for id_ in sorted(needed):
        if id_ in handed:
            console.print(f"  [green]{handed[id_].timestamp:%d %b}[/] {handed[id_].role}: {handed[id_].text}")
        else:
            console.print(f"  [red]{id_} was not found")
    console.print(f"  [dim]{request['why']}[/]")
    console.print(f"  [dim]{recall.tokens} tokens handed over, {1000 * seconds:.0f} ms[/]\n")


if __name__ == "__main__":
    main()
