"""M2, the published views: deterministic texts of an episode and of a cluster, made without any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tsim_core.errors import ConfigError
from tsim_core.types import Turn


@dataclass(frozen=True)
class PublishedViews:
    """Constants of the summary and cluster views (paper M2 and table 18).

    Attributes:
        summary_chars: Characters of an episode's text that its summary keeps.
        cluster_threshold: Cosine to a centroid above which an episode joins the cluster.
        soft_margin: An episode joins every cluster within this margin of its best one.
        merge_threshold: Cosine of two centroids above which their clusters become one. The paper says that clusters
            merge and not when; this is our reading.
        cluster_members: Most recent member summaries that make up a cluster's text; our reading as well.
    """

    summary_chars: int = 1200
    cluster_threshold: float = 0.42
    soft_margin: float = 0.08
    merge_threshold: float = 0.85
    cluster_members: int = 3

    def __post_init__(self) -> None:
        if self.summary_chars < 1 or self.cluster_members < 1:
            raise ConfigError("summary_chars and cluster_members must be at least 1")
        for name in ("cluster_threshold", "merge_threshold"):
            if not -1 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} {getattr(self, name)}: a cosine lies between -1 and 1")
        if self.soft_margin < 0:
            raise ConfigError(f"soft_margin {self.soft_margin}: expected at least 0")


def episode_text(turns: Sequence[Turn]) -> str:
    """The turns of an episode as lines of role and text; blank turns are left out."""
    return "\n".join(f"{turn.role}: {turn.text}" for turn in turns if turn.text.strip())


def summary_text(start: int, turns: Sequence[Turn], config: PublishedViews) -> str:
    """The text of an episode's summary view: a recency tag, the episode's number and the beginning of its text.

    An episode is the latest of its thread when its summary is written, hence the constant tag.
    """
    return f"[latest] episode {start}\n{episode_text(turns)[: config.summary_chars]}"


def cluster_text(summaries: Sequence[str]) -> str:
    """The text of a cluster view: its most recent member summaries, newest first."""
    return "\n\n".join(reversed(summaries))
