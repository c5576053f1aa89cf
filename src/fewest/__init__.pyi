from . import checks as checks
from . import credibility as credibility
from . import datasets as datasets
from . import models as models
from . import references as references
from . import reporting as reporting
from . import runs as runs
from .constraints import AtMost, Constraints, Forbidden, Immutable, Implies, Linked, OneOf, Only, Range
from .decision import Decision
from .errors import FewestError, FewestWarning
from .explainer import Explainer, explain
from .models import rashomon, training, trees
from .persistence import load
from .reporting import plots
from .results import metrics
from .results.explanation import Change, Explanation, Proof, Status
from .results.explanations import Explanations
from .runs import compare
from .tables.schema import Feature, Schema

__version__: str

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
    "checks",
    "compare",
    "credibility",
    "datasets",
    "explain",
    "load",
    "metrics",
    "models",
    "plots",
    "rashomon",
    "references",
    "reporting",
    "runs",
    "training",
    "trees",
]
