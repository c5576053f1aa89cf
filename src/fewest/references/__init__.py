"""Compared with whom: the prototypical accepted cases an explanation leads to."""

from fewest.references.base import References
from fewest.references.single import single
from fewest.references.supplied import supplied

__all__ = ["References", "single", "supplied"]
