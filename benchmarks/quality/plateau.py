"""The default with each of its constants moved by a fifth, as systems for `scale-qa run`: does it sit on a plateau?

One of them is named ``benchmarks/quality/plateau.py:raw_down``; ``run.py --plateau`` measures all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from scale_qa.systems import MemorySystem, Resources
from scale_qa.systems.tsim import TSIM
from tsim_core import TSIMConfig

DEFAULT = TSIMConfig.default()
FACTORS = {"down": 0.8, "up": 1.2}
MOVED = (
    *("cut_probability", "shift_rate", "l_max"),  # where to cut
    *("link_probability", "link_rate", "max_episode_tokens"),  # what to link
    *("raw", "context", "lexical", "episode_lexical", "episode_raw", "neighbour", "compact", "idf_power", "nearby"),
    *("thrift", "max_tokens"),  # what to hand over
)


def moved(name: str, factor: float) -> TSIMConfig:
    """The default with one constant times a factor; one that may not exceed 1 stays there."""
    parts = (DEFAULT.segmentation, DEFAULT.linking, DEFAULT.ranking, DEFAULT.assembly)
    value = next(getattr(part, name) for part in parts if hasattr(part, name))
    new = value * factor
    if name in ("nearby", "neighbour"):
        new = min(1.0, new)
    return DEFAULT.replace(**{name: round(new) if isinstance(value, int) else new})


def _system(config: TSIMConfig, resources: Resources) -> MemorySystem:
    return TSIM(resources, config)


SYSTEMS: dict[str, Callable[[Resources], MemorySystem]] = {
    f"{name}_{way}": partial(_system, moved(name, factor)) for name in MOVED for way, factor in FACTORS.items()
}
globals().update(SYSTEMS)
