"""Segmentation against gold files, beside the published figures: writes docs/results/segmentation.md.

    python benchmarks/quality/segmentation.py DIALSEG.json TIAGE.json

The files are JSON lists of {"utterances": [...], "segments": [lengths]}, as for `scale-qa segment-eval`.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from scale_qa.embeddings import CachedEmbedder
from scale_qa.segmentation_eval import PRESETS, evaluate, read_gold
from tsim_core import __version__
from tsim_core.embedding import resolve_embedder

ROOT = Path(__file__).parents[2]
OUT = ROOT / "docs" / "results" / "segmentation.md"
CACHE = ROOT / "build" / "quality" / "segmentation.sqlite"

HEADER = """# Segmentation

Where `thread.segments()` cuts, against people's cuts. Each dialogue is a thread of its own, so nothing can be learned
from the others; it is cut as it comes in, with at most one exchange of delay. The halves of the sets that were used
here are those that the default was tuned on.

*Pk* and *WindowDiff* count windows that are cut otherwise (less is better), *F1* cuts at the very turn, and *Score* is
half of F1 and half of what is right by the other two (SuperDialseg, EMNLP 2023). All are means over dialogues.

| set | system | Score | F1 | Pk | WindowDiff | purity | coverage |
|---|---|--:|--:|--:|--:|--:|--:|
"""
PUBLISHED = """
Published figures for these sets, on other splits of them:

| method | sees | TIAGE Score | F1 | Pk | DialSeg711 Score | F1 | Pk |
|---|---|--:|--:|--:|--:|--:|--:|
| TextTiling | all | .363 | .204 | .469 | .382 | .245 | .470 |
| GreedySeg | all | .341 | | | .525 | .445 | .381 |
| CSM, the best without supervision | all | .509 | .427 | .400 | .660 | .610 | .278 |
| Hi-OnTop | what came so far | .493 | .416 | .404 | .607 | .551 | .307 |
| RoBERTa, supervised | all | .482 | | | .702 | | |
"""


def main() -> None:
    """Score and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gold", nargs="+", type=Path)
    parser.add_argument("--embedder", help="as for `scale-qa run`")
    args = parser.parse_args()
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    embedder = CachedEmbedder(resolve_embedder(args.embedder), CACHE)
    rows = []
    for path in args.gold:
        dialogues = read_gold(path)
        for system in PRESETS:
            scores, roles = evaluate(dialogues, system, embedder)
            values = (scores.score, scores.f1, scores.pk, scores.windowdiff, scores.purity, scores.coverage)
            rows.append(
                f"| {path.stem} ({len(dialogues)}, roles {roles}) | `{system}` | "
                + " | ".join(f"{value:.3f}".lstrip("0") for value in values)
                + " |\n"
            )
            print(rows[-1], end="", flush=True)
    made = f"\n*tsim-core {__version__}, {embedder.name}, {datetime.now(UTC):%Y-%m-%d}.*\n"
    OUT.write_text(HEADER + "".join(rows) + PUBLISHED + made, encoding="utf-8")


if __name__ == "__main__":
    main()
