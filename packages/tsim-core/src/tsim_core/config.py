"""Configuration: frozen data, validated once. Each part belongs to the module that it steers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from tsim_core.assembly import Assembly
from tsim_core.calibration import CalibratedSegmentation, CalibratedSegmenter
from tsim_core.errors import ConfigError
from tsim_core.fusion import FusedRanking
from tsim_core.lexical import without_label
from tsim_core.linking import Linker, Linking
from tsim_core.ranking import PublishedRanking
from tsim_core.scale import Scale
from tsim_core.segmentation import PublishedSegmentation, PublishedSegmenter, Segmenter
from tsim_core.tokens import ESTIMATORS, Estimator, resolve_estimator
from tsim_core.views import PublishedViews

PARTS: dict[str, tuple[type, ...]] = {
    "segmentation": (CalibratedSegmentation, PublishedSegmentation),
    "linking": (Linking,),
    "views": (PublishedViews,),
    "ranking": (FusedRanking, PublishedRanking),
    "assembly": (Assembly,),
}
WRITTEN = ("segmentation", "linking", "views", "tokens")  # what shapes the stored data


@dataclass(frozen=True)
class TSIMConfig:
    """How a memory segments, ranks and hands over. Use a preset, and `replace` for single values.

    Attributes:
        segmentation: M1: where segments are cut.
        linking: Which segments belong to one episode; None for an episode a segment.
        views: The summary and cluster views of the paper; None for none.
        ranking: M3: how episodes are scored.
        assembly: What is handed over, and how it is laid out.
        tokens: Name of the token estimator: "universal" or "published".
    """

    segmentation: CalibratedSegmentation | PublishedSegmentation = field(default_factory=CalibratedSegmentation)
    linking: Linking | None = field(default_factory=Linking)
    views: PublishedViews | None = None
    ranking: FusedRanking | PublishedRanking = field(default_factory=FusedRanking)
    assembly: Assembly = field(default_factory=Assembly)
    tokens: str = "universal"

    def __post_init__(self) -> None:
        for name, types in PARTS.items():
            value = getattr(self, name)
            if not isinstance(value, types) and not (value is None and name in ("linking", "views")):
                known = ", ".join(t.__name__ for t in types)
                raise ConfigError(f"{name} is {type(value).__name__}; expected {known}")
        if self.tokens not in ESTIMATORS:
            known = ", ".join(sorted(ESTIMATORS))
            raise ConfigError(f"unknown token estimator {self.tokens!r}; known: {known}")
        if isinstance(self.ranking, PublishedRanking) and self.views is None:
            raise ConfigError("the published ranking needs the published views: set views=PublishedViews()")

    @classmethod
    def default(cls) -> TSIMConfig:
        """Our own: segmentation calibrated to the embedder, linked runs, lexical and dense evidence fused."""
        return cls()

    @classmethod
    def paper(cls) -> TSIMConfig:
        """The published method with the constants of paper table 18."""
        return cls(
            segmentation=PublishedSegmentation(),
            linking=None,
            views=PublishedViews(),
            ranking=PublishedRanking(),
            assembly=Assembly.published(),
            tokens="published",
        )

    @classmethod
    def longmemeval(cls) -> TSIMConfig:
        """The published variant for LongMemEval-S (paper table 18, last rows)."""
        return cls(
            segmentation=PublishedSegmentation(theta_s=0.74, l_min=160, l_max=480, recent_episodes=2, b=0.06),
            linking=None,
            views=PublishedViews(),
            ranking=PublishedRanking(
                k_r=16, k_s=24, k_l=1, w_r=1.5, w_s=1.5, w_l=0.35, temporal_hops=1, temporal_decay=0.5
            ),
            assembly=Assembly.published(k=8),
            tokens="published",
        )

    @property
    def estimator(self) -> Estimator:
        """The token estimator."""
        return resolve_estimator(self.tokens)

    def segmenter(self, scale: Scale) -> Segmenter:
        """A fresh segmenter for an embedder of that scale."""
        if isinstance(self.segmentation, PublishedSegmentation):
            return PublishedSegmenter(self.segmentation)
        return CalibratedSegmenter(self.segmentation, scale)

    def linker(self, scale: Scale) -> Linker | None:
        """A fresh linker for an embedder of that scale, where linking is on."""
        return None if self.linking is None else Linker(self.linking, scale)

    def said(self, text: str) -> str:
        """What of a turn's text is embedded.

        Without the name in front, in ours: it would make all turns of a speaker alike, and like any query that names
        them. Who spoke is a view of its own. As published: the text.
        """
        return text if isinstance(self.segmentation, PublishedSegmentation) else without_label(text)

    def replace(self, **changes: Any) -> TSIMConfig:
        """A copy with other values.

        Args:
            changes: Whole parts by name, or single fields of a part by theirs, such as ``k=3`` or ``theta_s=0.6``.

        Raises:
            ConfigError: If no part of this configuration has such a field, or the value is out of range.
        """
        own = {f.name for f in fields(self)}
        whole = {name: value for name, value in changes.items() if name in own}
        result = replace(self, **whole)
        for name, value in changes.items():
            if name in own:
                continue
            holders = [p for p in PARTS if name in _field_names(getattr(result, p))]
            if not holders:
                known = sorted({n for p in PARTS for n in _field_names(getattr(self, p))} | own)
                raise ConfigError(f"unknown setting {name!r}; known: {', '.join(known)}")
            for part in holders:
                result = replace(result, **{part: replace(getattr(result, part), **{name: value})})
        return result

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        data: dict[str, Any] = {"tokens": self.tokens}
        for name in PARTS:
            part = getattr(self, name)
            data[name] = None if part is None else {"kind": type(part).__name__, **asdict(part)}
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TSIMConfig:
        """The inverse of `to_dict`.

        Raises:
            ConfigError: If a name or a kind is unknown, or a value is out of range.
        """
        unknown = set(data) - set(PARTS) - {"tokens"}
        if unknown:
            raise ConfigError(f"unknown settings: {', '.join(sorted(unknown))}")
        parts: dict[str, Any] = {}
        for name, value in data.items():
            if name in PARTS and value is not None:
                kinds = {kind.__name__: kind for kind in PARTS[name]}
                values = dict(value)
                kind = kinds.get(values.pop("kind", ""))
                if kind is None:
                    raise ConfigError(f"{name} needs a kind, one of: {', '.join(kinds)}")
                wrong = set(values) - _field_names(kind)
                if wrong:
                    raise ConfigError(f"{name} has no settings {', '.join(sorted(wrong))}")
                parts[name] = kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})
            else:
                parts[name] = value
        return cls(**parts)

    def written(self) -> dict[str, Any]:
        """The part that shapes what is stored: a store is continued with the same."""
        data = self.to_dict()
        return {name: data[name] for name in WRITTEN}


def _field_names(part: object) -> set[str]:
    return set() if part is None else {f.name for f in fields(part)}  # type: ignore[arg-type]
