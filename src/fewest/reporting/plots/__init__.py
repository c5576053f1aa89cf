"""Plots in scikit-learn's manner: ``SomeDisplay.from_estimator(...).plot()``. Needs matplotlib, loaded when drawing.

Each can be read in grey: markers, hatches and words carry what is said. The numbers are in ``.table``.
"""

from fewest.reporting.plots.before_after import BeforeAfterDisplay
from fewest.reporting.plots.cluster_map import ClusterMapDisplay
from fewest.reporting.plots.distribution import SevDistributionDisplay
from fewest.reporting.plots.flexibility import FlexibilityDisplay
from fewest.reporting.plots.floor import FloorDisplay
from fewest.reporting.plots.frequency import FeatureFrequencyDisplay
from fewest.reporting.plots.front import FrontDisplay
from fewest.reporting.plots.hypercube import HypercubeDisplay
from fewest.reporting.plots.regions import RegionDisplay
from fewest.reporting.plots.trade_off import TradeOffDisplay
from fewest.reporting.plots.training_front import TrainingFrontDisplay

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
