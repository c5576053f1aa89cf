"""Trees: one neutral tree over original features, read from any library's, or grown by an estimator."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fewest.trees.boxes import boxes, collapse
from fewest.trees.reach import Reach
from fewest.trees.read import read
from fewest.trees.thresholds import BinaryColumns, guess_thresholds
from fewest.trees.tree import Leaf, Split, Tree

if TYPE_CHECKING:
    from fewest.trees.c45 import C45Classifier
    from fewest.trees.cart import CARTClassifier
    from fewest.trees.estimator import TreeClassifier
    from fewest.trees.gosdt import GOSDTClassifier
    from fewest.trees.loaded import LoadedTreeClassifier

__all__ = [
    "BinaryColumns",
    "C45Classifier",
    "CARTClassifier",
    "GOSDTClassifier",
    "Leaf",
    "LoadedTreeClassifier",
    "Reach",
    "Split",
    "Tree",
    "TreeClassifier",
    "boxes",
    "collapse",
    "guess_thresholds",
    "read",
]

_ESTIMATORS = {
    "C45Classifier": "c45",
    "CARTClassifier": "cart",
    "GOSDTClassifier": "gosdt",
    "LoadedTreeClassifier": "loaded",
    "TreeClassifier": "estimator",
}


def __getattr__(name: str) -> Any:
    """Load an estimator when it is asked for: its base class takes most of a second of scikit-learn with it."""
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ESTIMATORS[name]}"), name)
