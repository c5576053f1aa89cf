"""Rashomon sets: all sparse trees that are nearly as good as the best, their SEV-T, and the sparsest choice (TOpt)."""

from typing import TYPE_CHECKING, Any

from fewest.rashomon.base import Member, RashomonSet, rashomon_set
from fewest.rashomon.scoring import score_set

if TYPE_CHECKING:
    from fewest.rashomon.topt import TOptClassifier

__all__ = ["Member", "RashomonSet", "TOptClassifier", "rashomon_set", "score_set"]


def __getattr__(name: str) -> Any:
    """Load the estimator when it is asked for: its base class takes most of a second of scikit-learn with it."""
    if name != "TOptClassifier":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fewest.rashomon.topt import TOptClassifier

    return TOptClassifier
