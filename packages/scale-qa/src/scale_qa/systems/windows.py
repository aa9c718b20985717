"""Fixed windows and turns, lexical and dense, and the sliding window: the baselines that are hard to beat."""

from __future__ import annotations

from functools import partial

from scale_qa.systems import SystemSpec
from scale_qa.systems.spans import DenseSpans, HybridSpans, LexicalSpans, single_turns, windows, with_neighbours

SPECS = [
    *(
        SystemSpec(
            f"fixed-{size}",
            f"windows of whole turns up to {size} tokens, dense",
            partial(DenseSpans, spanner=windows(size)),
        )
        for size in (128, 256, 320)
    ),
    *(
        SystemSpec(
            f"bm25-{size}",
            f"windows of whole turns up to {size} tokens, BM25",
            partial(LexicalSpans, spanner=windows(size)),
        )
        for size in (128, 256, 320)
    ),
    SystemSpec("bm25-turn", "single turns, BM25", partial(LexicalSpans, spanner=single_turns)),
    SystemSpec("dense-turn", "single turns, dense", partial(DenseSpans, spanner=single_turns)),
    SystemSpec(
        "sliding-3",
        "a turn with a neighbour each side, BM25 and dense z-scores summed, merged",
        partial(HybridSpans, spanner=with_neighbours(1)),
    ),
]
