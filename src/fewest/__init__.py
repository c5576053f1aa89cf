"""fewest: the fewest facts that decide.

Exact, verified sparse explanations of a classifier's decisions (Sparse Explanation Value).
"""

from typing import TYPE_CHECKING, Any

from fewest import credibility, references, trees
from fewest.constraints import AtMost, Constraints, Forbidden, Immutable, Implies, Linked, OneOf, Only, Range
from fewest.decision import Decision
from fewest.errors import FewestError, FewestWarning
from fewest.explainer import Explainer
from fewest.explanation import Change, Explanation, Proof, Status
from fewest.explanations import Explanations
from fewest.schema import Feature, Schema

if TYPE_CHECKING:
    from fewest import rashomon

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
    "credibility",
    "rashomon",
    "references",
    "trees",
]


def __getattr__(name: str) -> Any:
    """Load the part that compiles its searches when it is asked for: `fewest --help` must not wait for it."""
    if name == "rashomon":
        from importlib import import_module

        return import_module("fewest.rashomon")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
