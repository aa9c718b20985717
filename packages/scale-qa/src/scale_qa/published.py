"""Figures that others published, for the reports. Nothing here was measured by us.

From arXiv 2608.25655v1 unless another source is named.
"""

from __future__ import annotations

PAPER = "arXiv 2608.25655v1"

# 128k target, 3,000 questions, four batches, write-back on: accuracy %, context-level hit %, context tokens.
ANSWER_MODELS = ("Gemma2:9b", "Gemini 2.5 Flash", "GPT-4o-mini")
ACCURACY: dict[str, tuple[tuple[float, float | None, float | None] | None, ...]] = {
    "tsim-paper": ((69.6, 70.7, 1061), (80.2, 67.9, 1275), (73.8, 74.2, 1044)),
    "standard-rag": ((24.4, 7.7, 930), (29.8, 7.6, 913), (27.1, 7.6, 910)),
    "hybrid-rrf": ((31.1, 11.2, 1194), (32.8, 11.2, 1193), (31.1, 11.3, 1194)),
    "raptor": ((40.6, 35.3, 791), (52.6, 34.8, 790), (43.0, 35.1, 789)),
    "memgpt": ((60.1, 62.6, 2302), (74.6, 62.3, 2350), (50.2, 58.6, 2238)),
    "hipporag": ((25.2, 12.5, 749), (34.4, 12.1, 753), (31.0, 11.9, 754)),
    "hybrid-rerank": (None, None, (56.2, 63.5, 3004)),
    "full-context": (None, None, (29.8, None, None)),
}
LADDER = {"ladder-l0": 26.2, "ladder-l1": 43.4, "ladder-l2": 55.5, "ladder-l3": 74.2}  # GPT-4o-mini, accuracy %

# All-evidence recall@5 and co-containment with no answer model (tables 21 and 22); bge-large unless named.
EVIDENCE: dict[str, tuple[float, float | None]] = {
    "tsim-paper": (0.810, 0.890),
    "fixed-128": (0.719, 0.675),
    "fixed-256": (0.647, 0.826),
    "fixed-320": (0.577, 0.831),
    "standard-rag": (0.456, 0.004),
}
EVIDENCE_MINILM = {"tsim-paper": 0.649, "standard-rag": 0.408}
VIEW_HITS = {"raw": 0.638, "summary": 0.861, "cluster": 0.708}

# Table 24: vectors, ingest ms a turn, retrieval p50 ms.
COST = {"tsim-paper": (6281, 24.99, 141.0), "standard-rag": (5554, 4.18, 21.0)}

# A third party, BM25 over 256-token windows: all-evidence recall@5, (questions, context).
BM25_256 = ((0.941, "1,000 questions, 512k tokens"), (0.911, "3,000 questions"))
