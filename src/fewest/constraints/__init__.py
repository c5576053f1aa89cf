"""What may change: immutable features, directions, ranges, linked features, causal edges, forbidden sets, at most k."""

from fewest.constraints.base import AtMost, Constraint, Constraints, Forbidden, Implies, Linked
from fewest.constraints.single import Immutable, OneOf, Only, Range
from fewest.constraints.units import Units

__all__ = [
    "AtMost",
    "Constraint",
    "Constraints",
    "Forbidden",
    "Immutable",
    "Implies",
    "Linked",
    "OneOf",
    "Only",
    "Range",
    "Units",
]
