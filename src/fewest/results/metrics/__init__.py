"""Figures of explanations: how few features, how close, how usual, how stable, and for which people."""

from fewest.results.metrics._closeness import Closeness, closeness
from fewest.results.metrics._likelihood import Likelihood, likelihood
from fewest.results.metrics._parity import parity
from fewest.results.metrics._sparsity import Sparsity, sparsity
from fewest.results.metrics._stability import Stability, stability

__all__ = [
    "Closeness",
    "Likelihood",
    "Sparsity",
    "Stability",
    "closeness",
    "likelihood",
    "parity",
    "sparsity",
    "stability",
]
