"""fewest: the fewest facts that decide.

Exact, verified sparse explanations of a classifier's decisions (Sparse Explanation Value).
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewest import credibility, rashomon, references, trees
    from fewest.constraints import AtMost, Constraints, Forbidden, Immutable, Implies, Linked, OneOf, Only, Range
    from fewest.decision import Decision
    from fewest.errors import FewestError, FewestWarning
    from fewest.explainer import Explainer
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
    "credibility",
    "load",
    "rashomon",
    "references",
    "trees",
]

_MODULES = ("credibility", "rashomon", "references", "trees")
_HOMES = {
    "constraints": ("AtMost", "Constraints", "Forbidden", "Immutable", "Implies", "Linked", "OneOf", "Only", "Range"),
    "decision": ("Decision",),
    "errors": ("FewestError", "FewestWarning"),
    "explainer": ("Explainer",),
    "explanation": ("Change", "Explanation", "Proof", "Status"),
    "explanations": ("Explanations",),
    "schema": ("Feature", "Schema"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


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
      Try: check the path
    """
    explainer: Explainer = import_module("fewest.persistence").load(path, allow_pickle)
    return explainer


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `fewest --help` and the explorer must not wait for the rest."""
    if name in _MODULES:
        return import_module(f"fewest.{name}")
    if name in _HOME_OF:
        value = globals()[name] = getattr(import_module(f"fewest.{_HOME_OF[name]}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
