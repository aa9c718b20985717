"""Draws the pictures of the site from real runs: twice each, for light and for dark pages.

    python docs/pictures.py [--out docs/pictures]

thread      the similarity along the example thread, with its thresholds and cuts
problem     what three ways of remembering hand to the model for one request
evidence    what each view adds to the episodes of one recall
budget      recall by token budget, from the tables of docs/results/quality.md
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from tsim_core import EpisodicMemory, Recall, Thread, Turn, read_turns

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "examples" / "data"
BUDGET = 1300  # tokens that each way of remembering may hand over


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours that can be read on a page's background."""

    name: str
    ink: str
    faint: str
    grey: str
    good: str
    bad: str
    accent: str
    series: Sequence[str]


PALETTES = (
    Palette(
        "light", "#1f2933", "#c4ccd4", "#98a4b0", "#00796b", "#c62828", "#b26a00",
        ("#00796b", "#1565c0", "#b26a00", "#7b1fa2", "#c62828", "#5d6b78", "#00838f", "#827717"),
    ),
    Palette(
        "dark", "#e3e7ec", "#4a5464", "#6d7988", "#4db6ac", "#ff8a80", "#ffb74d",
        ("#4db6ac", "#64b5f6", "#ffb74d", "#ce93d8", "#ff8a80", "#a9b4c0", "#80deea", "#dce775"),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """The example thread in memory, and what was asked."""

    thread: Thread
    turns: Sequence[Turn]
    requests: Sequence[Mapping[str, Any]]

    @cached_property
    def all_handed(self) -> list[dict[str, set[str]]]:
        """For each request: ids of the turns that each way of remembering hands over under the same budget."""
        memory = self.thread.memory
        vectors = memory.embed([t.text for t in self.turns])
        newest = list(range(len(self.turns)))[::-1]
        handed = []
        for request in self.requests:
            cosines = vectors @ memory.embed([request["query"]])[0]
            found = {turn.id or "" for episode in self.recall(request).episodes for turn in episode.turns}
            handed.append(
                {
                    "the latest messages": self._fill(newest),
                    "the most similar messages": self._fill(np.argsort(-cosines, kind="stable").tolist()),
                    "TSIM episodes": found,
                }
            )
        return handed

    @property
    def shown(self) -> int:
        """The request that is drawn: the first that TSIM serves and similar messages do not, or else that it serves."""
        served = [
            [set(request["evidence"]) <= ids for ids in ways.values()]
            for request, ways in zip(self.requests, self.all_handed, strict=True)
        ]
        ours = [i for i, (_, _, tsim) in enumerate(served) if tsim]
        alone = [i for i in ours if not served[i][1]]
        return (alone or ours or [0])[0]

    def recall(self, request: Mapping[str, Any]) -> Recall:
        """What TSIM hands over under the budget."""
        return self.thread.recall(request["query"], k=None, max_tokens=BUDGET)

    def cost(self, turn: Turn) -> float:
        """Tokens of a turn with its label."""
        return float(self.thread.memory.config.estimator(f"{turn.role}: {turn.text}"))

    def _fill(self, order: Sequence[int]) -> set[str]:
        left, taken = float(BUDGET), set()
        for i in order:
            if (cost := self.cost(self.turns[i])) <= left:
                taken.add(self.turns[i].id or "")
                left -= cost
        return taken


def main() -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the site.")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    arguments = parser.parse_args()
    turns = read_turns(DATA / "mira.jsonl")
    requests = json.loads((DATA / "mira_requests.json").read_text(encoding="utf-8"))
    with EpisodicMemory() as memory:
        thread = memory.thread("mira", "assistant")
        thread.extend(turns)
        run = Run(thread, thread.turns(), requests)
        draw(arguments.out, "thread", similarity, run)
        draw(arguments.out, "problem", problem, run)
        draw(arguments.out, "evidence", evidence, run)
    draw(arguments.out, "budget", by_budget, (ROOT / "docs" / "results" / "quality.md").read_text(encoding="utf-8"))


def draw(folder: Path, name: str, picture: Callable[[Any, Palette], Figure], data: Any) -> None:
    """Draw one picture for each palette. The same run draws the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for palette in PALETTES:
        style = {
            "svg.hashsalt": "tsim",
            "svg.fonttype": "path",
            "font.size": 11,
            "text.color": palette.ink,
            "axes.labelcolor": palette.ink,
            "axes.edgecolor": palette.faint,
            "xtick.color": palette.ink,
            "ytick.color": palette.ink,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
        }
        with mpl.rc_context(style):
            figure = picture(data, palette)
            figure.savefig(
                folder / f"{name}-{palette.name}.svg", transparent=True, bbox_inches="tight", metadata={"Date": None}
            )
    print(f"{name}: {folder.name}/{name}-light.svg, {name}-dark.svg")


def similarity(run: Run, palette: Palette) -> Figure:
    """The similarity at each cut of the first hundred turns, and the threshold it fell below."""
    segments = [s for s in run.thread.segments() if s.end <= 110]
    figure = Figure(figsize=(6.4, 3.6))
    axes = figure.subplots()
    for s in segments:
        if s.similarity is None or s.threshold is None:
            continue
        axes.plot([s.end, s.end], [s.similarity, s.threshold], color=palette.faint, linewidth=2, zorder=1)
        axes.plot(s.end, s.threshold, "_", color=palette.accent, markersize=11, markeredgewidth=2.5)
        size = 20 + 110 * (s.strength or 0)
        axes.scatter(s.end, s.similarity, s=size, color=palette.good, zorder=3)
    runs = Counter(s.episode for s in segments)
    resumed = {episode: i for i, episode in enumerate(e for e in runs if runs[e] > 1)}
    for i, s in enumerate(segments):
        number = resumed.get(s.episode)
        shade = (palette.faint, palette.grey)[i % 2] if number is None else palette.series[number % len(palette.series)]
        axes.axvspan(s.start, s.end, ymin=0, ymax=0.045, color=shade, linewidth=0)
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.12 * (high - low), high)
    axes.plot([], [], "_", color=palette.accent, markersize=11, markeredgewidth=2.5, label="threshold of the moment")
    axes.plot([], [], "o", color=palette.good, label="similarity across the cut (larger: a clearer cut)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=2, fontsize=10)
    axes.set_xlim(0, segments[-1].end + 3)
    axes.set_xlabel("turn of the thread (bottom: its segments; in colour: resumed episodes)")
    axes.xaxis.label.set_size(10)
    axes.set_ylabel("similarity")
    return figure


def problem(run: Run, palette: Palette) -> Figure:
    """Which turns of five months each way of remembering hands over, and whether the rules are among them."""
    request = run.requests[run.shown]
    place = {turn.id: i for i, turn in enumerate(run.turns)}
    needed = [place[id_] for id_ in request["evidence"]]
    handed = run.all_handed[run.shown]
    counts = dict.fromkeys(handed, 0)
    for asked, ways in zip(run.requests, run.all_handed, strict=True):
        for name, ids in ways.items():
            counts[name] += set(asked["evidence"]) <= ids
    figure = Figure(figsize=(6.4, 3.6))
    axes = figure.subplots()
    rows = list(handed)
    for row, name in enumerate(reversed(rows)):
        spots = sorted(place[id_] for id_ in handed[name])
        axes.plot([0, len(run.turns)], [row, row], color=palette.faint, linewidth=9, solid_capstyle="butt", zorder=1)
        axes.plot(spots, [row] * len(spots), "|", color=palette.series[1], markersize=12, markeredgewidth=2, zorder=2)
        for spot in needed:
            found = spot in spots
            colour = palette.good if found else palette.bad
            axes.plot(spot, row, "o" if found else "X", color=colour, markersize=12, zorder=3)
        axes.text(
            0, row + 0.24, name, ha="left", va="bottom", fontsize=11, fontweight="bold" if "TSIM" in name else None
        )
        score = f"all rules found: {counts[name]} of {len(run.requests)} requests"
        axes.text(len(run.turns), row + 0.24, score, ha="right", va="bottom", fontsize=10)
    axes.set_ylim(-0.45, len(rows) - 0.35)
    axes.set_title("\n".join(wrap("“" + request["query"] + "”", 72)), fontsize=10.5, loc="left", pad=14)
    ticks = [i for i, t in enumerate(run.turns) if i == 0 or _month(t) != _month(run.turns[i - 1])]
    axes.set_xticks(ticks, [f"{run.turns[i].timestamp:%B}" for i in ticks])
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    marks = [
        axes.plot([], [], "|", color=palette.series[1], markersize=12, markeredgewidth=2, label="handed over")[0],
        axes.plot([], [], "o", color=palette.good, markersize=9, label="the rule, found")[0],
        axes.plot([], [], "X", color=palette.bad, markersize=9, label="the rule, missed")[0],
    ]
    axes.legend(handles=marks, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, fontsize=10)
    return figure


def _month(turn: Turn) -> int:
    assert turn.timestamp is not None
    return turn.timestamp.month


def evidence(run: Run, palette: Palette) -> Figure:
    """What each view adds to the score of the best episodes."""
    recall = run.thread.recall(run.requests[run.shown]["query"])
    figure = Figure(figsize=(6.4, 3.4))
    axes = figure.subplots()
    views = [v for v in recall.episodes[0].evidence if any(e.evidence.get(v) for e in recall.episodes)]
    names = [" ".join(e.turns[0].text.split())[:28] + " …" for e in recall.episodes]
    places = np.arange(len(names))[::-1]
    right, left = np.zeros(len(names)), np.zeros(len(names))
    for view, colour in zip(views, cycle(palette.series)):
        values = np.array([e.evidence.get(view, 0.0) for e in recall.episodes])
        axes.barh(places, values, left=np.where(values > 0, right, left), color=colour, label=view, height=0.62)
        right += np.maximum(values, 0)
        left += np.minimum(values, 0)
    axes.set_yticks(places, names, fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.axvline(0, color=palette.faint, linewidth=1)
    axes.set_xlabel("score, in standard deviations of each view")
    axes.legend(loc="upper center", bbox_to_anchor=(0.35, 1.26), ncols=4, fontsize=10)
    return figure


def by_budget(report: str, palette: Palette) -> Figure:
    """All-evidence recall by token budget, from the first table of a report of ``scale-qa report``."""
    table = report.split("### Evidence", 1)[1].strip().split("\n\n")[0]
    header, _, *rows = ([cell.strip(" `*") for cell in row.split("|")[1:-1]] for row in table.splitlines())
    budgets = {i: head.split()[0] for i, head in enumerate(header) if head.endswith(" tokens")}
    recall = {row[0]: [float(row[i].split()[0]) for i in budgets] for row in rows}
    names = [n for n in ("tsim", "hybrid-rrf", "bm25-256", "sliding-3", "tsim-paper", "dense-turn") if n in recall]
    figure = Figure(figsize=(6.4, 3.8))
    axes = figure.subplots()
    places = [int(budget.replace(",", "")) for budget in budgets.values()]
    for name, colour in zip(names, palette.series, strict=False):
        width = 3 if name == "tsim" else 1.6
        axes.plot(places, recall[name], color=colour, label=name, linewidth=width, marker="o")
    axes.set_xticks(places, list(budgets.values()))
    axes.set_xlabel("tokens that may be handed over")
    axes.set_ylabel("questions with all their evidence")
    axes.set_ylim(0, 1.02)
    axes.grid(axis="y", color=palette.faint, linewidth=0.6)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=10)
    return figure


if __name__ == "__main__":
    main()
