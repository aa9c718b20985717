"""From the rows of a run to ``results.json``: shares with their intervals, costs, strata."""

from __future__ import annotations

import json
import os
import platform
import statistics as plain
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scale_qa.errors import ResultsError
from scale_qa.package import Package, Question
from scale_qa.statistics import wilson

if TYPE_CHECKING:
    from scale_qa.journal import Journal
    from scale_qa.run import RunSettings

FORMAT = "scale-qa-results/1"
_MEASURED_WITH = ("scale-qa", "tsim-core", "bm25s", "faiss-cpu", "numpy", "scikit-learn", "onnxruntime")
Row = Mapping[str, Any]
Labels = Mapping[str, Mapping[str, Any]]


def label(question: Question, batch: str, hard: bool) -> dict[str, Any]:
    """What a question is, for strata: the same for every system."""
    return {
        "batch": batch,
        "topic": question.topic,
        "stress": list(question.stress),
        "overlap": question.overlap,
        "language": question.language,
        "evidence": len(question.evidence),
        "hard": hard,
    }


def assemble(
    package: Package,
    settings: RunSettings,
    labels: Mapping[str, Labels],
    done: Mapping[str, Any],
    measured: Mapping[str, str],
    journal: Journal,
) -> dict[str, Any]:
    """The results document.

    Args:
        package: What was run on.
        settings: What decided the figures.
        labels: `label` of each question, by batch.
        done: Summaries kept from an earlier run.
        measured: Systems whose rows are in the journal, with the fingerprint of their code.
        journal: The rows.
    """
    by_id = {key: value for batch in labels.values() for key, value in batch.items()}
    systems = dict(done)
    for name, code in measured.items():
        batches = [journal.finished(name, batch) or {} for batch in labels]
        rows = [row for batch in labels for row in journal.rows(name, batch)]
        systems[name] = {**summarise(rows, by_id, batches, settings.k), "code": code}
    return {
        "format": FORMAT,
        "package": package_facts(package),
        "run": {
            "settings": json.loads(json.dumps(asdict(settings))),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "versions": versions(_MEASURED_WITH),
        },
        "systems": systems,
        "questions": by_id,
    }


def summarise(rows: Sequence[Row], labels: Labels, batches: Iterable[Mapping[str, Any]], k: int) -> dict[str, Any]:
    """The figures of one system.

    Args:
        rows: One a question.
        labels: What each question is.
        batches: Facts of the finished batches.
        k: Units handed over.
    """
    batches = list(batches)
    turns = sum(batch["turns"] for batch in batches)
    tokens = [row["context_tokens"] for row in rows]
    times = [row["retrieval_ms"] for row in rows]
    all_rows = outcome(rows, k)
    hard = outcome([row for row in rows if labels[row["id"]]["hard"]], k)
    summary: dict[str, Any] = {
        **{name: value for name, value in all_rows.items() if name not in ("n", "intervals")},
        f"recall_at_{k}_hard": hard[f"recall_at_{k}"],
        "recall_at": {depth: share([row["recall_at"][depth] for row in rows]) for depth in rows[0]["recall_at"]},
        "evidence_found": sum(row["found"] for row in rows) / sum(labels[row["id"]]["evidence"] for row in rows),
        "context_tokens": {
            "mean": plain.fmean(tokens),
            "median": plain.median(tokens),
            "p95": float(np.percentile(tokens, 95)),
            "max": max(tokens),
        },
        "ingest_ms_per_turn": 1000 * sum(batch["ingest_seconds"] for batch in batches) / max(turns, 1),
        "retrieval_ms": {
            "p50": float(np.percentile(times, 50)),
            "p95": float(np.percentile(times, 95)),
        },
        "vectors": sum(batch["vectors"] for batch in batches),
        "bytes": sum(batch["bytes"] for batch in batches),
        "view_hit_rates": view_rates(rows),
        "unbacked_claims": sum(row["unbacked"] for row in rows),
        "notes": sorted({note for batch in batches for note in batch["notes"]}),
        "intervals": {**all_rows["intervals"], f"recall_at_{k}_hard": hard["intervals"][f"recall_at_{k}"]},
        "strata": strata(rows, labels, k),
    }
    if any("answer" in row for row in rows):
        summary["answers"] = answer_figures([row["answer"] for row in rows if "answer" in row])
    summary["questions"] = list(rows)
    return summary


def outcome(rows: Sequence[Row], k: int) -> dict[str, Any]:
    """Recall, recall under budgets and co-containment of some rows, with Wilson intervals.

    A share of nothing is None, and its interval is (0, 1).
    """
    covered = [row["covered"] for row in rows]
    pairs = [row["co_contained"] for row in rows if row["co_contained"] is not None]
    budgets = rows[0]["covered_at_tokens"] if rows else {}
    at_tokens = {budget: [row["covered_at_tokens"][budget] for row in rows] for budget in budgets}
    figures: dict[str, Any] = {
        "n": len(rows),
        f"recall_at_{k}": share(covered),
        "recall_at_tokens": {budget: share(values) for budget, values in at_tokens.items()},
        "co_containment": share(pairs),
        "intervals": {
            f"recall_at_{k}": interval(covered),
            "recall_at_tokens": {budget: interval(values) for budget, values in at_tokens.items()},
            "co_containment": interval(pairs),
        },
    }
    answers = [row["answer"] for row in rows if "answer" in row]
    if answers:
        rights = [answer["right"] for answer in answers if answer["failure"] is None]
        figures["accuracy"] = share(rights)
        figures["intervals"]["accuracy"] = interval(rights)
    return figures


def strata(rows: Sequence[Row], labels: Labels, k: int) -> dict[str, dict[str, Any]]:
    """Outcomes by difficulty, domain, stress cue, overlap, language and number of evidence turns."""
    groups: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        facts = labels[row["id"]]
        groups["difficulty"]["hard" if facts["hard"] else "settled by BM25"].append(row)
        groups["domain"][facts["topic"] or "none"].append(row)
        groups["overlap"][facts["overlap"] or "unlabelled"].append(row)
        groups["language"][facts["language"]].append(row)
        groups["evidence"]["1" if facts["evidence"] == 1 else "2 and more"].append(row)
        for cue in facts["stress"]:
            groups["stress"][cue].append(row)
    return {name: {key: outcome(group, k) for key, group in sorted(parts.items())} for name, parts in groups.items()}


def view_rates(rows: Sequence[Row]) -> dict[str, float]:
    """Of all questions, the share whose evidence each view found."""
    names = sorted({name for row in rows for name in row["views"]})
    return {name: sum(row["views"].get(name, False) for row in rows) / len(rows) for name in names}


def answer_figures(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of an answer model: what failed is told apart from what is wrong."""
    valid = [answer for answer in answers if answer["failure"] is None]
    similarities = [a["rationale_similarity"] for a in valid if a["rationale_similarity"] is not None]
    return {
        "asked": len(answers),
        "answered": len(valid),
        "right": sum(answer["right"] for answer in valid),
        "no_letter": sum(answer["failure"] == "no_letter" for answer in answers),
        "errors": sum(answer["failure"] == "error" for answer in answers),
        "accuracy_of_asked": sum(answer["right"] for answer in valid) / len(answers),
        "rationale_similarity": plain.fmean(similarities) if similarities else None,
        "seconds_p50": plain.median(answer["seconds"] for answer in answers),
    }


def share(values: Sequence[bool]) -> float | None:
    """The share of true values; None of none."""
    return sum(values) / len(values) if values else None


def interval(values: Sequence[bool]) -> list[float]:
    """Wilson's interval of `share`."""
    return list(wilson(sum(values), len(values)))


def package_facts(package: Package) -> dict[str, Any]:
    """The manifest without its file list, and the digest that stands for that."""
    facts = {key: value for key, value in package.manifest.items() if key != "files"}
    return {"name": package.directory.resolve().name, **facts, "digest": package.digest}


def machine() -> dict[str, Any]:
    """What the times were measured on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": cores,
        "load_at_end": load,
        "python": platform.python_version(),
    }


def versions(names: Iterable[str]) -> dict[str, str]:
    """Versions of the packages that are installed."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def write_results(path: Path, results: Mapping[str, Any]) -> None:
    """Write a results file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".new")
    part.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n")
    part.replace(path)


def read_results(path: Path) -> dict[str, Any]:
    """Read a results file.

    Raises:
        ResultsError: If there is none, or it is none.
    """
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise ResultsError(f"{path}: no results file; scale-qa run writes one") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ResultsError(f"{path}: not JSON: {error}") from error
    if not isinstance(results, dict) or results.get("format") != FORMAT:
        raise ResultsError(f"{path}: not a results file of {FORMAT}; run the systems again")
    return results
