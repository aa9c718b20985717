"""TSIM itself: our default, the published configuration, the paper's ladder, and each part left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tsim_core import EpisodicMemory, TSIMConfig, Turn

from scale_qa.systems import SystemSpec
from scale_qa.systems.base import Footprint, MemorySystem, Resources, Unit
from scale_qa.systems.chunks import StandardRAG
from scale_qa.systems.spans import DenseSpans, windows


class TSIM(MemorySystem):
    """A `tsim_core` memory in a file of its own, through its public names only.

    A unit is an episode as it is handed over. Under a token budget TSIM's own assembly counts: the unit is its prompt
    text, so a turn that was shortened there is not counted.

    Args:
        resources: What the run lends.
        config: The configuration.
    """

    depth = 60  # the published views find at most 28 + 20 + 4 + 4 episodes

    def __init__(self, resources: Resources, config: TSIMConfig) -> None:
        self._folder = TemporaryDirectory(prefix="scale-qa-", ignore_cleanup_errors=True)
        self._memory = EpisodicMemory(Path(self._folder.name) / "memory.db", embedder=resources.embedder, config=config)
        self._thread = self._memory.thread("scale-qa")
        self._turns = 0
        self._text = ""

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Append turns, in one transaction; a turn's id is its position."""
        self._thread.extend(replace(turn, id=str(i)) for i, turn in enumerate(turns, self._turns))
        self._turns += len(turns)

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """The best episodes, each as long as the configuration hands it over."""
        recall = self._thread.recall(query, k=k)  # within the budget of the configuration
        self._text = recall.text
        return [Unit(_positions(episode.turns), episode.score, views=episode.evidence) for episode in recall.episodes]

    def retrieve_budget(self, query: str, max_tokens: int) -> list[Unit]:
        """What TSIM lays out for the budget."""
        recall = self._thread.recall(query, k=None, max_tokens=max_tokens)
        held = sorted({i for episode in recall.episodes for i in _positions(episode.turns)})
        return [Unit(tuple(held), text=recall.text)]

    def prompt(self, query: str, units: Sequence[Unit]) -> str:
        """The prompt text of the last `retrieve`."""
        return self._text

    def footprint(self) -> Footprint:
        """Vectors of all views, and the size of the file."""
        stats = self._memory.stats()
        return Footprint(stats["vectors"], stats["bytes"])

    def close(self) -> None:
        """Close the memory and delete its file."""
        self._memory.close()
        self._folder.cleanup()


def _positions(turns: Sequence[Turn]) -> tuple[int, ...]:
    return tuple(int(turn.id) for turn in turns if turn.id is not None)


def without(preset: str, config: TSIMConfig, parts: Mapping[str, Mapping[str, Any]]) -> list[SystemSpec]:
    """A system for each part left out.

    Args:
        preset: Name of the full system.
        config: Its configuration.
        parts: Of each part, the settings that switch it off.
    """
    return [
        SystemSpec(
            f"{preset}-no-{part}",
            f"{preset} without {part}",
            lambda resources, changes=changes: TSIM(resources, config.replace(**changes)),  # type: ignore[misc]
        )
        for part, changes in parts.items()
    ]


DEFAULT, PAPER = TSIMConfig.default(), TSIMConfig.paper()
DEFAULT_PARTS: dict[str, dict[str, Any]] = {
    "raw": {"raw": 0.0},
    "context": {"context": 0.0, "neighbour": 0.0},
    "lexical": {"lexical": 0.0, "episode_lexical": 0.0},
    "dense": {"raw": 0.0, "context": 0.0, "episode_raw": 0.0},
    "episode": {"episode_lexical": 0.0, "episode_raw": 0.0},
    "speaker": {"speaker": 0.0},
    "time": {"time": 0.0},
    "links": {"linking": None},
    "nearby": {"nearby": 0.0},
    "calibration": {"segmentation": PAPER.segmentation},
    "thrift": {"thrift": 0.0},
}
PAPER_PARTS: dict[str, dict[str, Any]] = {
    "raw": {"k_r": 0},
    "summary": {"k_s": 0},
    "cluster": {"k_l": 0},
    "semantic": {"lambda_sem": 0.0},
}
EPISODES_ONLY = PAPER.replace(k_s=0, k_l=0, lambda_sem=0.0)

SPECS = [
    SystemSpec("tsim", "TSIM in our default configuration", partial(TSIM, config=DEFAULT)),
    SystemSpec("tsim-paper", "TSIM as published (paper table 18)", partial(TSIM, config=PAPER)),
    SystemSpec("ladder-l0", "the paper's L0: standard RAG", StandardRAG),
    SystemSpec("ladder-l1", "the paper's L1: fixed windows (256 tokens)", partial(DenseSpans, spanner=windows(256))),
    SystemSpec(
        "ladder-l2", "the paper's L2: semantic-drift episodes, raw hits only", partial(TSIM, config=EPISODES_ONLY)
    ),
    SystemSpec("ladder-l3", "the paper's L3: the full published stack", partial(TSIM, config=PAPER)),
    *without("tsim", DEFAULT, DEFAULT_PARTS),
    *without("tsim-paper", PAPER, PAPER_PARTS),
]
