"""fewest: the fewest facts that decide.

Exact, verified sparse explanations of a classifier's decisions (Sparse Explanation Value).
"""

from fewest import references
from fewest.constraints import AtMost, Constraints, Forbidden, Immutable, Implies, Linked, OneOf, Only, Range
from fewest.decision import Decision
from fewest.errors import FewestError
from fewest.explainer import Explainer, FewestWarning
from fewest.explanation import Change, Explanation, Proof, Status
from fewest.explanations import Explanations
from fewest.schema import Feature, Schema

__version__ = "0.1.0"

__all__ = [
    "AtMost",
    "Change",
    "Constraints",
    "Decision",
    "Explainer",
    "Explanation",
    "Explanations",
    "Feature",
    "FewestError",
    "FewestWarning",
    "Forbidden",
    "Immutable",
    "Implies",
    "Linked",
    "OneOf",
    "Only",
    "Proof",
    "Range",
    "Schema",
    "Status",
    "references",
]
