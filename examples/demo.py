"""What TSIM does, on a thread of several hundred turns.

Ingests five months of one person's chat with an assistant (mixed topics, no session marks), then asks for ordinary
help. Each answer hangs on rules that were set weeks before and never mentioned again. Prints the episodes that come
back, what each view says of them, the tokens handed over and the times.

    python examples/demo.py [--all]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text
from tsim_core import Episode, EpisodicMemory, Recall, Turn, read_turns

LEGEND = (
    "Each line is an episode: its rank, its score, the views that add most to it, and how its longest message begins. "
    "raw: the meaning of a turn; lexical: its words; context: its meaning with its neighbours; episode_raw and "
    "episode_lexical: the whole episode; nearby: it stands beside one of the best. They count standard deviations: how "
    "far an episode stands out. In green, with their days: the turns that decide. All views: docs/concepts/views.md.\n"
)
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
        console.print(f"[dim]{LEGEND}")
        said = {turn.id: turn for turn in turns}
        found = 0
        asked = requests if arguments.all else requests[:3]
        for request in asked:
            start = time.perf_counter()
            recall = thread.recall(request["query"])
            found += show(console, request, recall, said, time.perf_counter() - start)
        console.print(f"{found} of {len(asked)} requests came with every rule that they need.")
        if not arguments.all:
            console.print(f"Nine more, and harder ones among them: {command()} --all", soft_wrap=True)


def show(
    console: Console, request: dict[str, object], recall: Recall, said: dict[str | None, Turn], seconds: float
) -> bool:
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
            console.print(Padding(Text(quote(turn), "green"), (0, 0, 0, 4)))
    if others > SHOWN:
        console.print(f"    [dim]and {others - SHOWN} more")
    for id_ in sorted(needed - handed):
        console.print(Padding(Text(f"did not come: {quote(said[id_])}", "red"), (0, 0, 0, 4)))
    console.print(
        f"\n[bold]What a right answer takes from it[/] (written beforehand; no model runs here): {request['why']}"
    )
    console.print(f"[dim]{recall.tokens} tokens handed over, {1000 * seconds:.0f} ms\n")
    return needed <= handed


def line(rank: int, episode: Episode) -> str:
    """An episode: its rank, score, what the views say of it, and how its longest message of a user begins."""
    views = sorted(episode.evidence.items(), key=lambda item: -item[1])
    parts = ", ".join(f"{view} {value:.1f}" for view, value in views[:3] if value > 0)
    longest = max(episode.turns, key=lambda turn: (turn.role == "user", len(turn.text)))
    return f"{rank:2} {episode.score:5.1f} = {parts}, ...  {' '.join(longest.text.split())}"


def quote(turn: Turn) -> str:
    """A turn with its day and speaker."""
    return f"{turn.timestamp:%d %b} {turn.role}: {turn.text}"


def command() -> str:
    """How to run this script again, with the same Python."""
    python, here = Path(sys.executable), Path.cwd()
    return f"{python.relative_to(here) if python.is_relative_to(here) else python} {sys.argv[0]}"


if __name__ == "__main__":
    main()
