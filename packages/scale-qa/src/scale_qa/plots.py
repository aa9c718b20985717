"""The plots of a report, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scale_qa.tables import package_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Group = Mapping[str, Any]
# Okabe and Ito's palette: told apart by every eye.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8B6914")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
FIRST = ("tsim", "tsim-paper", "sliding-3", "bm25-256", "hybrid-rerank", "memgpt", "raptor", "standard-rag")
REST = "#9A9A9A"
PARTS = ("ladder-", "tsim-no-", "tsim-paper-no-")  # how the names of systems begin that lack a part
ENDS = ("full-context", "no-context")  # all and nothing: no budget and no latency to speak of


def write_plots(groups: Sequence[Group], folder: Path) -> list[tuple[str, Path]]:
    """Draw what the results have the data for.

    Args:
        groups: Results, one a package and settings.
        folder: Where the files go.

    Returns:
        Title and SVG path of each plot, in the order of a report.
    """
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    written: list[tuple[str, Path]] = []
    # A fixed salt and no date: the same results draw the same bytes.
    style: Any = {
        "svg.hashsalt": "scale-qa",
        "svg.fonttype": "path",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#E4E4E4",
        "axes.axisbelow": True,
        "legend.frameon": False,
    }
    with matplotlib.rc_context(style):
        for number, group in enumerate(groups):
            stem = f"{number}-" if len(groups) > 1 else ""
            name = package_title(group["package"])
            for kind, title, draw in (
                ("budget", "Recall by token budget", by_budget),
                ("latency", "Recall and latency", by_latency),
                ("ablation", "Ablation", ablation),
            ):
                figure = draw(group)
                if figure is not None:
                    written.append((f"{title}, {name}", _save(figure, f"{title} · {name}", folder / f"{stem}{kind}")))
        figure = by_length(groups)
        if figure is not None:
            written.append(("Recall by context length", _save(figure, "Recall by context length", folder / "length")))
    return written


def by_budget(group: Group) -> Figure | None:
    """Recall over the token budget, a line a system; None where there is none to draw."""
    if not _between(group["systems"]):
        return None
    budgets = group["run"]["settings"]["budgets"]
    figure, axes = _canvas()
    for name, look in _looks(_between(group["systems"])).items():
        recall = group["systems"][name]["recall_at_tokens"]
        axes.plot(budgets, [recall[str(b)] for b in budgets], label=name, **look)
    axes.set_xlabel("tokens handed over (estimated)")
    axes.set_xticks(budgets, [f"{b:,}" for b in budgets])
    _share_axis(axes, "all-evidence recall")
    _legend(axes)
    return figure


def by_latency(group: Group) -> Figure | None:
    """Recall under the middle budget over retrieval time; None where there is none to draw."""
    if not _between(group["systems"]):
        return None
    budgets = group["run"]["settings"]["budgets"]
    middle = str(budgets[len(budgets) // 2])
    figure, axes = _canvas()
    for name, look in _looks(_between(group["systems"])).items():
        system = group["systems"][name]
        point = {**look, "linestyle": "none", "markersize": 8}
        axes.plot([max(system["retrieval_ms"]["p50"], 0.01)], [system["recall_at_tokens"][middle]], label=name, **point)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("retrieval p50, milliseconds (log scale)")
    _share_axis(axes, f"recall at {int(middle):,} tokens")
    _legend(axes)
    return figure


def ablation(group: Group) -> Figure | None:
    """Recall@k of the ladder and of every part left out, with intervals; None where none was measured."""
    k = group["run"]["settings"]["k"]
    systems = group["systems"]
    parts = sorted(name for name in systems if name.startswith(PARTS))
    if not parts:
        return None
    names = [*reversed(parts), *(name for name in ("tsim-paper", "tsim") if name in systems)]
    values = [systems[name][f"recall_at_{k}"] for name in names]
    bounds = [systems[name]["intervals"][f"recall_at_{k}"] for name in names]
    figure, axes = _canvas(height=1.2 + 0.32 * len(names))
    errors = [
        [max(0.0, v - b[0]) for v, b in zip(values, bounds, strict=True)],
        [max(0.0, b[1] - v) for v, b in zip(values, bounds, strict=True)],
    ]
    colours = [COLOURS[0] if name in ("tsim", "tsim-paper") else "#A9C9E0" for name in names]
    axes.barh(names, values, xerr=errors, color=colours, ecolor="#555555", capsize=2, height=0.7)
    axes.set_xlim(0, 1)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"all-evidence recall@{k}, 95 % interval")
    return figure


def by_length(groups: Sequence[Group]) -> Figure | None:
    """Recall under the middle budget over the length that packages were built for; None for a single length.

    Only packages of one arrangement can be compared: that of the first.
    """
    points: dict[str, list[tuple[int, float]]] = {}
    built = [group for group in groups if group["package"].get("target_tokens") is not None]
    for group in built:
        if group["package"].get("arrangement") == built[0]["package"].get("arrangement"):
            length = group["package"]["target_tokens"]
            budgets = group["run"]["settings"]["budgets"]
            middle = str(budgets[len(budgets) // 2])
            for name, system in group["systems"].items():
                points.setdefault(name, []).append((length, system["recall_at_tokens"][middle]))
    points = {name: sorted(line) for name, line in _between(points).items() if len({x for x, _ in line}) > 1}
    if not points:
        return None
    figure, axes = _canvas()
    for name, look in _looks(points).items():
        axes.plot([x for x, _ in points[name]], [y for _, y in points[name]], label=name, **look)
    axes.set_xscale("log")
    lengths = sorted({x for line in points.values() for x, _ in line})
    axes.set_xticks(lengths, [f"{x / 1000:,.0f}k" for x in lengths])
    axes.minorticks_off()
    axes.set_xlabel("tokens of a thread (log scale)")
    _share_axis(axes, "recall at the middle budget")
    _legend(axes)
    return figure


def _canvas(height: float = 4.0) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, height), layout="constrained")  # its words can be read on a phone, too
    axes: Axes = figure.subplots()
    return figure, axes


def _between(systems: Mapping[str, Any]) -> dict[str, Any]:
    """Systems between all and nothing; those that lack a part have a plot of their own."""
    return {name: system for name, system in systems.items() if name not in ENDS and not name.startswith(PARTS)}


def _looks(names: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Colour and marker of each system; the best known ones stand out, the others are grey."""
    known = [name for name in FIRST if name in names]
    others = [name for name in names if name not in known]
    loud = (known + others)[: len(COLOURS)]
    looks: dict[str, dict[str, Any]] = {}
    for i, name in enumerate(loud):
        looks[name] = {
            "color": COLOURS[i],
            "marker": MARKERS[i],
            "linewidth": 2.4 if name == "tsim" else 1.5,
            "zorder": 3,
        }
    for i, name in enumerate(name for name in names if name not in loud):
        looks[name] = {"color": REST, "marker": MARKERS[i % len(MARKERS)], "linewidth": 0.9, "markersize": 4}
    return looks


def _share_axis(axes: Axes, title: str) -> None:
    axes.set_ylabel(title)
    low, _ = axes.dataLim.intervaly
    axes.set_ylim(max(0.0, int(low * 10 - 0.5) / 10), 1.01)


def _legend(axes: Axes) -> None:
    """Below the plot, with room for as many rows as there are names."""
    _, names = axes.get_legend_handles_labels()
    columns = max(2, min(4, 72 // (max(map(len, names)) + 5)))
    axes.figure.legend(loc="outside lower center", ncols=columns, fontsize=9, columnspacing=1.2, handletextpad=0.4)
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.set_figheight(figure.get_figheight() + 0.2 * (len(names) // columns))


def _save(figure: Figure, title: str, stem: Path) -> Path:
    figure.axes[0].set_title(title, loc="left", fontsize=11, fontweight="bold")
    svg = stem.with_suffix(".svg")
    figure.savefig(svg, metadata={"Date": None})
    figure.savefig(stem.with_suffix(".png"), dpi=150, metadata={"Software": None})
    return svg
