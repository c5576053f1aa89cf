from .base import Member, RashomonSet, rashomon_set
from .sev_of_members import score_set
from .topt import TOptClassifier

__all__ = ["Member", "RashomonSet", "TOptClassifier", "rashomon_set", "score_set"]
