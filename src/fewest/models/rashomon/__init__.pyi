from .base import Member, RashomonSet, rashomon_set
from .topt import TOptClassifier, score_set

__all__ = ["Member", "RashomonSet", "TOptClassifier", "rashomon_set", "score_set"]
