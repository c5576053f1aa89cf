"""Plots in scikit-learn's manner: ``SomeDisplay.from_estimator(...).plot()``. Needs matplotlib, loaded when drawing."""

from fewest.plots.floor import FloorDisplay
from fewest.plots.front import FrontDisplay

__all__ = ["FloorDisplay", "FrontDisplay"]
