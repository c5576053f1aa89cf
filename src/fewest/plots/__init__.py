"""Plots in scikit-learn's manner: ``SomeDisplay.from_estimator(...).plot()``. Needs matplotlib, loaded when drawing.

Each can be read in grey: markers, hatches and words carry what is said. The numbers are in ``.table``.
"""

from fewest.plots.before_after import BeforeAfterDisplay
from fewest.plots.cluster_map import ClusterMapDisplay
from fewest.plots.distribution import SevDistributionDisplay
from fewest.plots.flexibility import FlexibilityDisplay
from fewest.plots.floor import FloorDisplay
from fewest.plots.frequency import FeatureFrequencyDisplay
from fewest.plots.front import FrontDisplay
from fewest.plots.hypercube import HypercubeDisplay
from fewest.plots.regions import RegionDisplay
from fewest.plots.trade_off import TradeOffDisplay
from fewest.plots.training_front import TrainingFrontDisplay

__all__ = [
    "BeforeAfterDisplay",
    "ClusterMapDisplay",
    "FeatureFrequencyDisplay",
    "FlexibilityDisplay",
    "FloorDisplay",
    "FrontDisplay",
    "HypercubeDisplay",
    "RegionDisplay",
    "SevDistributionDisplay",
    "TradeOffDisplay",
    "TrainingFrontDisplay",
]
