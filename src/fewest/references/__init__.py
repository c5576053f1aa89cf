"""What cases are compared with: the prototypical accepted cases an explanation leads to."""

from fewest.references._anyone import Anyone, anyone
from fewest.references._leaves import Leaves, leaves
from fewest.references._whole_rows import Paired, accepted, paired
from fewest.references.audit import Audit
from fewest.references.base import References
from fewest.references.build import build
from fewest.references.clusters import clusters, near_threshold
from fewest.references.file import Difference, differences
from fewest.references.own_points import load, supplied
from fewest.references.signatures import Signature
from fewest.references.single import single

__all__ = [
    "Anyone",
    "Audit",
    "Difference",
    "Leaves",
    "Paired",
    "References",
    "Signature",
    "accepted",
    "anyone",
    "build",
    "clusters",
    "differences",
    "leaves",
    "load",
    "near_threshold",
    "paired",
    "single",
    "supplied",
]
