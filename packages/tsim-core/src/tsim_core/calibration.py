"""Interim."""

from dataclasses import dataclass

from tsim_core.segmentation import PublishedSegmentation, PublishedSegmenter


@dataclass(frozen=True)
class CalibratedSegmentation:
    """Interim."""

    theta: float = 0.15


class CalibratedSegmenter(PublishedSegmenter):
    """Interim."""

    def __init__(self, config: CalibratedSegmentation) -> None:
        super().__init__(PublishedSegmentation(theta_s=config.theta, l_min=30, l_max=400))
