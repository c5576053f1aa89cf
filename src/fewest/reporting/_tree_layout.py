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
    """A drawn node.

    Attributes
    ----------
    node : int
    depth : int
        Tests above it.
    row : float
        Place from top to bottom; leaves have whole numbers.
    hidden : int
        Nodes it stands for; 0 unless the subtree is collapsed.
    parent : int
        Node above it, -1 for the root.
    """

    node: int
    depth: int
    row: float
    hidden: int
    parent: int


def lay_out(tree: Tree, keep: Set[int] = frozenset(), most: int = MOST_NODES) -> list[Spot]:
    """Places of the nodes that are drawn, parents before children.

    Parameters
    ----------
    tree : Tree
    keep : set of int
        Nodes that are never collapsed, whatever ``most`` says: whole paths from the root.
    most : int
        Nodes drawn otherwise; subtrees further down become one collapsed node each.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewest.tables.schema import Schema
    >>> from fewest.models.trees import Leaf, Split
    >>> schema = Schema.infer(pd.DataFrame({"age": [20, 50]}))
    >>> tree = Tree.build(schema, Split("age", 40, Leaf(True), Split("age", 60, Leaf(False), Leaf(True))))
    >>> [(spot.depth, spot.row, spot.hidden) for spot in lay_out(tree, most=3)]
    [(0, 0.5, 0), (1, 0.0, 0), (1, 1.0, 3)]
    """
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
    """Width of a text in ems, rather too much than too little: no font is at hand to measure with.

    Examples
    --------
    >>> width("age") < width("AGE") < width("\u5e74\u9f62\u5e2f")
    True
    """
    return sum(_em(sign) for sign in text)


def _em(sign: str) -> float:
    if unicodedata.combining(sign):
        return 0.0
    if unicodedata.east_asian_width(sign) in ("W", "F") or sign in "MW@%\u2026":
        return 1.0
    if sign in "iljtfrI.,:;'!|()[] ":
        return 0.4
    return 0.74 if sign.isupper() or sign in "mw<>=+" else 0.6


def clip(text: str, room: float) -> str:
    """The text, or as much of its beginning as fits into so many ems.

    Examples
    --------
    >>> clip("checking_status", 9.0), clip("checking_status", 5.0)
    ('checking_status', 'checkin…')
    """
    if width(text) <= room:
        return text
    end = len(text)
    while end and width(text[:end]) + width("\u2026") > room:
        end -= 1
    return text[:end] + "\u2026"


def fit(head: str, tail: str, room: float) -> str:
    """Two parts side by side; the first is shortened before the second, which says what is asked of it.

    Examples
    --------
    >>> fit("months_since_most_recent_inquiry", " <= 6.5?", 11.0)
    'months_si… <= 6.5?'
    """
    tail = clip(tail, room - min(width(head), room / 2))
    return clip(head, room - width(tail)) + tail
