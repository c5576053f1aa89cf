"""Trees: one neutral tree over original features, read from any library's."""

from fewest.trees.tree import Leaf, Split, Tree

__all__ = ["Leaf", "Split", "Tree"]
