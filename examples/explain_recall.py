"""Why something was cut here, recalled there, and left out: five months of somebody's chat, explained.

Prints the first cuts with their reasons, the best episodes of one request with the views that speak for them, and how
much of it fits under several budgets.

    python examples/explain_recall.py ["another request"]

No model is asked: TSIM calls none.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tsim_core import EpisodicMemory, read_turns

CHAT = Path(__file__).parent / "data" / "mira.jsonl"
REQUEST = "Wiebke could label for another twelve hours, 420 euros. Whom do I ask?"


def main() -> None:
    """Cut, rank, hand over."""
    request = sys.argv[1] if len(sys.argv) > 1 else REQUEST
    with EpisodicMemory() as memory:
        thread = memory.thread("mira", "assistant")
        thread.extend(read_turns(CHAT))
        print(f"{len(thread)} turns, {len(thread.episodes())} episodes")
        for segment in thread.segments()[:3]:
            print(f"cut at {segment.end}: similarity {segment.similarity:.2f} below {segment.threshold:.2f}")

        print(f"\n{request}")
        for episode in thread.recall(request, k=3, max_tokens=None).episodes:
            loudest = sorted(episode.evidence, key=lambda view: -episode.evidence[view])[:2]
            print(f"{episode.score:6.2f}  by {' and '.join(loudest)}: {episode.turns[0].text[:60]}")

        print()
        for budget in (300, 600, 1200):
            recall = thread.recall(request, k=None, max_tokens=budget)
            left_out = sum(episode.omitted for episode in recall.episodes)
            print(f"at most {budget} tokens: {len(recall.episodes)} episodes, {left_out} of their turns left out")


if __name__ == "__main__":
    main()
