"""Where the nodes of a drawn tree go: depth runs to the right, every leaf has a row of its own."""

from __future__ import annotations

import unicodedata
from collections.abc import Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fewest.models.trees import Tree

MOST_NODES = 31


@dataclass(frozen=True)
class Spot:
    """A drawn node: tests above it, its row from the top, nodes it stands for if collapsed, the node above it."""

    node: int
    depth: int
    row: float
    hidden: int
    parent: int


def lay_out(tree: Tree, keep: Set[int] = frozenset(), most: int = MOST_NODES) -> list[Spot]:
    """Places of the nodes that are drawn, parents before children; whole paths in ``keep`` are never collapsed."""
    opened = _opened(tree, keep, most)
    sizes = subtree_sizes(tree)
    spots: list[Spot] = []
    next_row = 0

    def place(node: int, depth: int, parent: int) -> float:
        nonlocal next_row
        here = len(spots)
        spots.append(Spot(node, depth, 0.0, 0, parent))
        if node in opened:
            rows = [place(int(child), depth + 1, node) for child in (tree.left[node], tree.right[node])]
            row, hidden = sum(rows) / 2, 0
        else:
            row, hidden = float(next_row), int(sizes[node]) if tree.feature[node] >= 0 else 0
            next_row += 1
        spots[here] = Spot(node, depth, row, hidden, parent)
        return row

    place(0, 0, -1)
    return spots


def _opened(tree: Tree, keep: Set[int], most: int) -> set[int]:
    """Tests drawn with both their sides: those on the paths, then level by level while there is room."""
    opened = {node for node in keep if tree.feature[node] >= 0}
    room = most - 1 - 2 * len(opened)
    level = [0]
    while level:
        for node in level:
            if node not in opened and tree.feature[node] >= 0 and room >= 2:
                opened.add(node)
                room -= 2
        level = [int(child) for node in level if node in opened for child in (tree.left[node], tree.right[node])]
    return opened


def subtree_sizes(tree: Tree) -> npt.NDArray[np.int64]:
    """Nodes in the subtree of each node, itself included (nodes,)."""
    sizes = np.ones(tree.n_nodes, dtype=np.int64)
    for node in reversed(range(tree.n_nodes)):
        if tree.feature[node] >= 0:
            sizes[node] += sizes[tree.left[node]] + sizes[tree.right[node]]
    return sizes


def width(text: str) -> float:
    """Width of a text in ems, rather too much than too little: no font is at hand to measure with."""
    return sum(_em(char) for char in text)


def _em(char: str) -> float:
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in ("W", "F") or char in "MW@%\u2026":
        return 1.0
    if char in "iljtfrI.,:;'!|()[] ":
        return 0.4
    return 0.74 if char.isupper() or char in "mw<>=+" else 0.6


def clip(text: str, room: float) -> str:
    """The text, or as much of its beginning as fits into this many ems."""
    if width(text) <= room:
        return text
    end = len(text)
    while end and width(text[:end]) + width("\u2026") > room:
        end -= 1
    return text[:end] + "\u2026"


def fit(head: str, tail: str, room: float) -> str:
    """Two parts side by side; the first is shortened before the second, which says what is asked of it."""
    tail = clip(tail, room - min(width(head), room / 2))
    return clip(head, room - width(tail)) + tail
