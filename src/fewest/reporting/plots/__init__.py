"""Plots in scikit-learn's manner: ``SomeDisplay.from_estimator(...).plot()``. Needs matplotlib, loaded when drawing.

Colours differ for the colour-blind too; ``plot(style="paper")`` has greys, markers and hatches
alone. The numbers are in ``.table``.
"""

from fewest.reporting.plots.bars import BeforeAfterDisplay, FeatureFrequencyDisplay, SevDistributionDisplay
from fewest.reporting.plots.hypercube import HypercubeDisplay
from fewest.reporting.plots.maps import ClusterMapDisplay, RegionDisplay
from fewest.reporting.plots.score_line import ScoreLineDisplay, overview
from fewest.reporting.plots.trade_offs import (
    FlexibilityDisplay,
    FloorDisplay,
    FrontDisplay,
    TradeOffDisplay,
    TrainingFrontDisplay,
)  # fmt: skip

__all__ = [
    "BeforeAfterDisplay", "ClusterMapDisplay", "FeatureFrequencyDisplay", "FlexibilityDisplay", "FloorDisplay",
    "FrontDisplay", "HypercubeDisplay", "RegionDisplay", "ScoreLineDisplay", "SevDistributionDisplay",
    "TradeOffDisplay", "TrainingFrontDisplay", "overview",
]  # fmt: skip
