"""What is inside a fitted model: `read` turns a classifier into plain arrays that the exact searches read.

A *structure* gives a raw score and the cut at which the decision turns; `Opaque` says why a model is not read.
"""

from fewest.engine.structure.base import (
    Additive,
    Composite,
    Ensemble,
    Neighbours,
    Network,
    Opaque,
    as_float32_values,
    as_floats,
)
from fewest.engine.structure.read import read

__all__ = [
    "Additive",
    "Composite",
    "Ensemble",
    "Neighbours",
    "Network",
    "Opaque",
    "as_float32_values",
    "as_floats",
    "read",
]
