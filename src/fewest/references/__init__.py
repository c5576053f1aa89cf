"""What cases are compared with: the prototypical accepted cases an explanation leads to."""

from fewest.references._leaves import Leaves, leaves
from fewest.references.audit import Audit
from fewest.references.base import References
from fewest.references.clusters import clusters
from fewest.references.near_threshold import near_threshold
from fewest.references.own_points import load, supplied
from fewest.references.signatures import Signature
from fewest.references.single import single

__all__ = [
    "Audit",
    "Leaves",
    "References",
    "Signature",
    "clusters",
    "leaves",
    "load",
    "near_threshold",
    "single",
    "supplied",
]
