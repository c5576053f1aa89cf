from .c45 import C45Classifier
from .cart import CARTClassifier
from .estimator import LoadedTreeClassifier, TreeClassifier
from .from_models import read, read_plain
from .gosdt import GOSDTClassifier
from .leaf_boxes import boxes, collapse
from .reach import Reach
from .thresholds import BinaryColumns, guess_thresholds
from .tree import Leaf, Split, Tree

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
    "read_plain",
]
