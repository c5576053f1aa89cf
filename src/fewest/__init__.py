"""fewest: the fewest facts that decide.

Exact, verified sparse explanations of a classifier's decisions (Sparse Explanation Value).
"""

from importlib import import_module
from pathlib import Path
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
    "load",
    "rashomon",
    "references",
    "trees",
]


def load(path: str | Path, allow_pickle: bool = False) -> Explainer:
    """An explainer from the file that `Explainer.save` wrote; the file is audited before anything of it is used.

    Parameters
    ----------
    path : path
        Ends in ``.fewest``.
    allow_pickle : bool
        Whether the model inside may hold types beyond the list of safe ones, which can run code.

    Examples
    --------
    >>> load("no-such.fewest")
    Traceback (most recent call last):
    fewest.errors.ModelError: there is no model file no-such.fewest
      Do: check the path
    """
    explainer: Explainer = import_module("fewest.persistence").load(path, allow_pickle)
    return explainer


def __getattr__(name: str) -> Any:
    """Load the part that compiles its searches when it is asked for: `fewest --help` must not wait for it."""
    if name == "rashomon":
        return import_module("fewest.rashomon")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
