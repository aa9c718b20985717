"""Benchmark a memory of your own: this file is all it takes.

    scale-qa build --records records.jsonl --target 128k --out package
    scale-qa run package --system examples/scale_qa_your_memory.py:Recent --system tsim --out results.json
    scale-qa report results.json --out report.md --plots plots

To ship it in a package of yours, name it in its pyproject.toml, and ``scale-qa systems`` lists it:

    [project.entry-points."scale_qa.systems"]
    my-recent = "my_package.memory:Recent"
"""

from collections.abc import Sequence

from scale_qa.systems import MemorySystem, Resources, Unit
from tsim_core import Turn


class Recent(MemorySystem):
    """Remembers turns and returns those that share most words with the query, newer ones first."""

    def __init__(self, resources: Resources) -> None:  # resources.embedder embeds, once a text for all systems
        self.words: list[set[str]] = []

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Append turns; called again when answers are written back."""
        self.words += [set(turn.text.lower().split()) for turn in turns]

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """Return units, best first; each names the positions of its turns."""
        asked = set(query.lower().split())
        ranked = sorted(range(len(self.words)), key=lambda i: (-len(asked & self.words[i]), -i))
        return [Unit(turns=(i,)) for i in ranked[:k]]
