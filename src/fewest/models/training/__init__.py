"""Training models whose decisions need few reasons: All-Opt, and ExpO as the yardstick.

torch is needed to train (extra ``train``), not to use what was trained.
"""

from fewest.models.training.classifiers import AllOptClassifier, ExpOClassifier
from fewest.models.training.comparison import Comparison, compare
from fewest.models.training.search import AllOptSearchCV
from fewest.models.training.settings import AlignedBatch, Architecture, Optimizer, SevLoss

__all__ = [
    "AlignedBatch",
    "AllOptClassifier",
    "AllOptSearchCV",
    "Architecture",
    "Comparison",
    "ExpOClassifier",
    "Optimizer",
    "SevLoss",
    "compare",
]
