"""What is believable: a density of the accepted cases, and a floor below which no explanation may lead."""

from fewest.credibility.base import Credibility, supplied
from fewest.credibility.leaf_support import leaf_support
from fewest.credibility.mixture import mixture
from fewest.credibility.points import neighbours

__all__ = ["Credibility", "leaf_support", "mixture", "neighbours", "supplied"]
