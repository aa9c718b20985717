"""Results as a Markdown page: every figure with its interval, what it was measured on, and the paper's beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scale_qa import published
from scale_qa.comparison import compare_systems
from scale_qa.errors import ResultsError
from scale_qa.plots import write_plots
from scale_qa.tables import best_bold, decimals, figure, markdown, package_title, with_interval

Results = Mapping[str, Any]
Summary = Mapping[str, Any]
BEYOND = ("sessions", "full-context")  # diagnostics: no memory can be expected to match them


def write_report(documents: Sequence[Results], out: Path, plots: Path | None = None) -> None:
    """Write the report of one or more results documents.

    Documents of the same package and settings become one section, so a matrix may be run in parts.

    Args:
        documents: As `scale_qa.results.read_results` gives them.
        out: The Markdown file.
        plots: Folder for the plots, SVG and PNG; none are drawn when None.

    Raises:
        ResultsError: If two documents of one package measured the same system.
    """
    groups = merge(documents)
    drawn = write_plots(groups, plots) if plots is not None else []
    parts = ["# SCALE-QA results", intro()]
    parts += [image(title, path, out) for title, path in drawn]
    parts += [section(group) for group in groups]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8", newline="\n")


def merge(documents: Sequence[Results]) -> list[dict[str, Any]]:
    """Join documents of one package and one set of settings.

    Raises:
        ResultsError: If two of them measured the same system.
    """
    groups: list[dict[str, Any]] = []
    for document in documents:
        key = (document["package"]["digest"], document["run"]["settings"])
        for group in groups:
            if (group["package"]["digest"], group["run"]["settings"]) == key:
                twice = sorted(set(group["systems"]) & set(document["systems"]))
                if twice:
                    raise ResultsError(f"two results files measured {twice[0]!r} on the same package; leave one out")
                group["systems"] = {**group["systems"], **document["systems"]}
                break
        else:
            groups.append(dict(document))
    return groups


def intro() -> str:
    """How to read the tables."""
    return (
        "*Recall@k*: the share of questions whose every evidence turn lies in the k units handed over; with write-back "
        "on, this is the paper's context-level hit. *Recall at N tokens*: the same for what fits into N estimated "
        "tokens (1.3 × words), units taken by rank and skipped where they do not fit; TSIM assembles for the budget "
        "itself. *Hard*: the questions that BM25 over 256-token windows does not settle with its first hit. "
        "*Co-containment*: of the questions with several evidence turns, the share where one unit holds them all. "
        "Brackets are Wilson 95 % intervals. The best of a column is bold, diagnostics aside."
    )


def image(title: str, path: Path, out: Path) -> str:
    """A plot, linked relative to the report where that is possible."""
    base, target = out.parent.resolve(), path.resolve()
    link = target.relative_to(base).as_posix() if target.is_relative_to(base) else path.as_posix()
    return f"![{title}]({link})"


def section(group: Results) -> str:
    """Everything about one package."""
    k = group["run"]["settings"]["k"]
    systems = ordered(group)
    parts = [
        f"## {package_title(group['package'])}",
        facts(group),
        "### Evidence\n\n" + evidence_table(systems, k),
        "### Cost\n\n" + cost_table(systems),
        against(group, systems),
        views(systems),
        ladder(systems, k),
        answers(systems),
        published_table(systems, k),
        breakdown(systems, k),
        notes(systems),
    ]
    return "\n\n".join(part for part in parts if part)


def ordered(group: Results) -> dict[str, Summary]:
    """Systems by recall under the middle budget, best first."""
    budgets = group["run"]["settings"]["budgets"]
    middle = str(budgets[len(budgets) // 2])
    items = sorted(group["systems"].items(), key=lambda item: -(item[1]["recall_at_tokens"][middle] or 0))
    return dict(items)


def facts(group: Results) -> str:
    """What was measured, on what, when and how."""
    package, run = group["package"], group["run"]
    settings, machine, counts = run["settings"], run["machine"], package["counts"]
    tokens = sum(batch["tokens"] for batch in package["batches"])
    batches = len(package["batches"])
    hard = sum(question["hard"] for question in group["questions"].values())
    plain = {
        key: value
        for key, value in package.items()
        if key not in ("name", "digest", "format", "counts", "batches", "reachability")
    }
    reach = ", ".join(f"{decimals(share)} in the last {int(span):,}" for span, share in package["reachability"].items())
    lines = [
        f"- **Package** `{package['digest'][:12]}`: {counts['questions']:,} questions ({hard:,} hard), "
        f"{counts['turns']:,} turns, {tokens:,.0f} tokens in {batches} thread{'s' if batches > 1 else ''}",
        f"- **Arrangement** {plain.pop('arrangement', 'as it came')}; evidence reachable by recency: {reach} tokens",
        f"- **Noise** {described(plain.pop('noise', None)) or 'none named'}",
        *(f"- **{key.replace('_', ' ').capitalize()}** {described(value)}" for key, value in plain.items()),
        f"- **Run** {run['date'][:10]}, {machine['system']}, {machine['cores']} cores (load {machine['load_at_end']} "
        f"at the end), Python {machine['python']}; "
        + ", ".join(f"{name} {version}" for name, version in run["versions"].items()),
        f"- **Settings** embedder {settings['embedder']}, k {settings['k']}, asked with "
        + ("the query and its four options" if settings["query_form"] == "options" else "the query text only")
        + f", write-back {'on' if settings['write_back'] else 'off'}, answer model {settings['answer'] or 'none'}",
    ]
    return "\n".join(lines)


def described(value: Any) -> str:
    """A manifest value in words."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {described(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(described, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and value > 9_999 else str(value)


def evidence_table(systems: Mapping[str, Summary], k: int) -> str:
    """Recall, recall on hard, recall under budgets, co-containment and tokens."""
    budgets = list(next(iter(systems.values()))["recall_at_tokens"])
    paths = [
        [f"recall_at_{k}"],
        [f"recall_at_{k}_hard"],
        *(["recall_at_tokens", budget] for budget in budgets),
        ["co_containment"],
    ]
    aside = [i for i, name in enumerate(systems) if name in BEYOND]

    def cells(path: list[str]) -> list[str]:
        values = [(figure(s, path), with_interval(figure(s, path), _bounds(s, path))) for s in systems.values()]
        return best_bold(values, aside)

    columns = [cells(path) for path in paths]
    tokens = [f"{s['context_tokens']['mean']:,.0f}" for s in systems.values()]
    headings = [
        "system",
        f"recall@{k}",
        "hard",
        *(f"{int(b):,} tokens" for b in budgets),
        "co-containment",
        f"tokens@{k}",
    ]
    return markdown(headings, list(zip([f"`{name}`" for name in systems], *columns, tokens, strict=True)))


def cost_table(systems: Mapping[str, Summary]) -> str:
    """Context, time and space."""
    rows = [
        [
            f"`{name}`",
            *(f"{s['context_tokens'][key]:,.0f}" for key in ("mean", "median", "p95", "max")),
            f"{s['ingest_ms_per_turn']:.2f}",
            f"{s['retrieval_ms']['p50']:.1f}",
            f"{s['retrieval_ms']['p95']:.1f}",
            f"{s['vectors']:,}",
            f"{s['bytes'] / 1e6:,.1f}",
        ]
        for name, s in systems.items()
    ]
    headings = ["system", "tokens mean", "median", "p95", "max", "ingest ms/turn", "retrieval p50 ms", "p95 ms"]
    table = markdown([*headings, "vectors", "MB"], rows)
    return (
        table + "\n\nTimes hold the embedding of turns and queries, measured once a text and charged to every system."
    )


def against(group: Results, systems: Mapping[str, Summary]) -> str:
    """Paired tests between the reference and everything else."""
    reference = "tsim" if "tsim" in systems else next(iter(systems))
    others = [name for name in systems if name != reference]
    if not others:
        return ""
    k = group["run"]["settings"]["k"]
    budgets = group["run"]["settings"]["budgets"]
    names = [f"recall@{k}", f"recall@{budgets[len(budgets) // 2]} tokens"]
    rows = []
    for other in others:
        compared = compare_systems(group, reference, group, other)
        cells = [f"`{other}`"]
        for name in names:
            paired = compared[name]
            low, high = paired.interval
            cells += [f"{paired.difference:+.3f} [{low:+.3f}, {high:+.3f}]", f"{paired.p_value:.2g}"]
        rows.append(cells)
    headings = [f"`{reference}` minus", *(part for name in names for part in (name, "p"))]
    return (
        f"### `{reference}` against each\n\n{markdown(headings, rows)}\n\n"
        "Paired bootstrap intervals (10,000 resamples); p by the exact two-sided McNemar test."
    )


def views(systems: Mapping[str, Summary]) -> str:
    """View hit rates beside the paper's."""
    having = {name: s["view_hit_rates"] for name, s in systems.items() if s["view_hit_rates"]}
    if not having:
        return ""
    names = sorted({view for rates in [*having.values(), published.VIEW_HITS] for view in rates})
    rows = [[f"`{name}`", *(decimals(rates.get(view)) for view in names)] for name, rates in having.items()]
    rows.append([f"{published.PAPER}", *(decimals(published.VIEW_HITS.get(view)) for view in names)])
    return "### View hits\n\nShare of questions whose evidence lies in what the view found.\n\n" + markdown(
        ["system", *names], rows
    )


def ladder(systems: Mapping[str, Summary], k: int) -> str:
    """The ablation ladder and what is left out, beside the paper's ladder."""
    parts = [name for name in systems if name.startswith(("ladder-", "tsim-no-", "tsim-paper-no-"))]
    if not parts:
        return ""
    shown = [name for name in ("tsim", "tsim-paper") if name in systems] + sorted(parts)
    rows = [
        [
            f"`{name}`",
            with_interval(systems[name][f"recall_at_{k}"], systems[name]["intervals"][f"recall_at_{k}"]),
            decimals(systems[name]["co_containment"]),
            decimals(published.LADDER.get(name), 1),
        ]
        for name in shown
    ]
    return "### Ablation\n\n" + markdown(
        ["system", f"recall@{k}", "co-containment", "paper, accuracy % (GPT-4o-mini)"], rows
    )


def answers(systems: Mapping[str, Summary]) -> str:
    """Accuracy of the answer model, with what failed."""
    having = {name: s for name, s in systems.items() if "answers" in s}
    if not having:
        return ""
    rows = [
        [
            f"`{name}`",
            with_interval(s["accuracy"], s["intervals"]["accuracy"]),
            f"{s['answers']['asked']:,}",
            str(s["answers"]["no_letter"]),
            str(s["answers"]["errors"]),
            decimals(s["answers"]["accuracy_of_asked"]),
            decimals(s["answers"]["rationale_similarity"]),
        ]
        for name, s in having.items()
    ]
    headings = [
        "system",
        "accuracy of answered",
        "asked",
        "no letter",
        "errors",
        "right of asked",
        "rationale similarity",
    ]
    return "### Answers\n\n" + markdown(headings, rows)


def published_table(systems: Mapping[str, Summary], k: int) -> str:
    """The paper's figures beside ours, for the systems that both measured."""
    names = [name for name in systems if name in published.EVIDENCE or name in published.ACCURACY]
    if not names:
        return ""
    evidence = []
    for name in names:
        recall, together = published.EVIDENCE.get(name, (None, None))
        evidence.append(
            [
                f"`{name}`",
                decimals(systems[name][f"recall_at_{k}"]),
                decimals(recall),
                decimals(published.EVIDENCE_MINILM.get(name)),
                decimals(systems[name]["co_containment"]),
                decimals(together),
            ]
        )
    text = (
        f"### Beside the paper\n\nPublished figures ({published.PAPER}) are of the published 3,000 records at 128k "
        "tokens, not of this package.\n\n"
        + markdown(
            ["system", f"ours, recall@{k}", "paper (bge-large)", "paper (MiniLM)", "ours, co-containment", "paper"],
            evidence,
        )
    )
    rows = [
        [f"`{name}`", _ours(systems[name], k), *(_cell(value) for value in published.ACCURACY[name])]
        for name in names
        if name in published.ACCURACY
    ]
    if rows:
        text += (
            "\n\nAccuracy % / context-level hit % / context tokens, published with three answer models:\n\n"
            + markdown(["system", "ours", *published.ANSWER_MODELS], rows)
        )
    others = "; ".join(f"{value:.3f} ({what})" for value, what in published.BM25_256)
    return text + f"\n\nA third party measured BM25 over 256-token windows on the published records: {others}."


def breakdown(systems: Mapping[str, Summary], k: int) -> str:
    """Recall by every stratum."""
    parts = []
    kinds = dict.fromkeys(kind for s in systems.values() for kind in s["strata"])
    for kind in kinds:
        groups = {key: part["n"] for key, part in next(iter(systems.values()))["strata"].get(kind, {}).items()}
        if len(groups) < 2:
            continue
        rows = [
            [f"`{name}`", *(decimals(s["strata"][kind][key][f"recall_at_{k}"]) for key in groups)]
            for name, s in systems.items()
        ]
        headings = ["system", *(f"{key} ({count:,})" for key, count in groups.items())]
        parts.append(f"By {kind}:\n\n{markdown(headings, rows)}")
    return f"### Recall@{k} by stratum\n\n" + "\n\n".join(parts) if parts else ""


def notes(systems: Mapping[str, Summary]) -> str:
    """Stand-ins, and claims that the text did not bear out."""
    lines = [f"- `{name}`: {note}" for name, s in systems.items() for note in s["notes"]]
    lines += [
        f"- `{name}`: {s['unbacked_claims']} evidence turns were claimed and are not in the text: counted as not found"
        for name, s in systems.items()
        if s["unbacked_claims"]
    ]
    return "### Notes\n\n" + "\n".join(lines) if lines else ""


def _ours(summary: Summary, k: int) -> str:
    accuracy = summary.get("accuracy")
    return _cell(
        (
            None if accuracy is None else 100 * accuracy,
            100 * summary[f"recall_at_{k}"],
            summary["context_tokens"]["mean"],
        )
    )


def _cell(value: tuple[float | None, float | None, float | None] | None) -> str:
    if value is None:
        return "–"
    accuracy, hit, tokens = value
    return f"{decimals(accuracy, 1)} / {decimals(hit, 1)} / {'–' if tokens is None else f'{tokens:,.0f}'}"


def _bounds(summary: Summary, path: Sequence[str]) -> Sequence[float]:
    value = summary["intervals"]
    for key in path:
        value = value[key]
    bounds: Sequence[float] = value
    return bounds
