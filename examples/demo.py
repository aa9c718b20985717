"""What TSIM does, on a thread of several hundred turns.

Ingests five months of one person's chat with an assistant (mixed topics, no session marks), then asks for ordinary
help. Each answer hangs on rules that were set weeks before and never mentioned again. Prints the episodes that come
back, what each view says of them, the tokens handed over and the times.

    python examples/demo.py [--all]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text
from tsim_core import Episode, EpisodicMemory, Recall, read_turns

DATA = Path(__file__).parent / "data"
SHOWN = 5  # episodes without a rule, for each request


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description="What TSIM does, on a thread of several hundred turns.")
    parser.add_argument("--all", action="store_true", help="ask all requests, the hard ones too")
    arguments = parser.parse_args()
    console = Console(highlight=False)
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
            f"{len(episodes)} episodes ({linked} of them of several runs), "
            f"{1000 * seconds / len(turns):.0f} ms a turn\n"
        )
        found = 0
        asked = requests if arguments.all else requests[:3]
        for request in asked:
            start = time.perf_counter()
            recall = thread.recall(request["query"])
            found += show(console, request, recall, time.perf_counter() - start)
        console.print(f"{found} of {len(asked)} requests came with every rule that they need.")
        if not arguments.all:
            console.print("Nine more, and harder ones among them: examples/demo.py --all")


def show(console: Console, request: dict[str, object], recall: Recall, seconds: float) -> bool:
    """Print one request and what came back. Returns whether all that it needs did."""
    needed = set(request["evidence"])  # type: ignore[call-overload]
    console.rule(style="dim")
    console.print(f"[bold]{request['query']}\n")
    handed = {turn.id for episode in recall.episodes for turn in episode.turns}
    others = 0
    for rank, episode in enumerate(recall.episodes, 1):
        rules = [turn for turn in episode.turns if turn.id in needed]
        others += not rules
        if rules or others <= SHOWN:
            console.print(Text(line(rank, episode), "" if rules else "dim"), no_wrap=True, overflow="ellipsis")
        for turn in rules:
            console.print(Padding(Text(f"{turn.timestamp:%d %b} {turn.role}: {turn.text}", "green"), (0, 0, 0, 4)))
    if others > SHOWN:
        console.print(f"    [dim]and {others - SHOWN} more")
    for id_ in sorted(needed - handed):
        console.print(f"    [red]{id_} did not come")
    console.print(f"\n{request['why']}")
    console.print(f"[dim]{recall.tokens} tokens handed over, {1000 * seconds:.0f} ms\n")
    return needed <= handed


def line(rank: int, episode: Episode) -> str:
    """An episode: its rank, score, what the views say of it, and how it begins."""
    views = sorted(episode.evidence.items(), key=lambda item: -item[1])
    said = ", ".join(f"{view} {value:.1f}" for view, value in views[:3] if value > 0)
    return f"{rank:2} {episode.score:5.1f} = {said}, ...  {' '.join(episode.turns[0].text.split())}"


if __name__ == "__main__":
    main()
