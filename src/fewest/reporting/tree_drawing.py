"""A decision tree as one SVG: the case's path solid, that of the changed case dashed, and the split to change named.

No script, no font to fetch, nothing in colour alone; every text is escaped, and long ones are whole in their tooltip.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError
from fewest.models.trees import Tree
from fewest.references import Leaves
from fewest.reporting.tree_paths import changed, decisive, one_row, path_of
from fewest.results.explanation import Explanation
from fewest.results.explanations import Explanations

MOST_NODES = 31
BOX_WIDTH, BOX_HEIGHT = 196, 38
COLUMN, ROW = 262, 68
LEFT, TOP, RIGHT = 16, 36, 144
TEXT, SMALL = 13, 11
ROOM = (BOX_WIDTH - 14) / TEXT
BOLD_ROOM = (BOX_WIDTH - 4) / (1.1 * SMALL)  # bold letters are about a tenth wider
UNDER = BOX_HEIGHT / 2 + 14
LEGEND = 22
NOT_XML = re.compile("[^\t\n\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
STYLE = resources.files("fewest.reporting").joinpath("templates", "tree.css").read_text("utf-8").strip()


@dataclass(frozen=True)
class _Drawing:
    """What is drawn: the tree, the nodes the two cases pass, and what is written where they part.

    Counts are -1 where they are not known; ``negatives`` are all negative training rows, wherever they end.
    """

    tree: Tree
    names: tuple[str, str]
    counts: npt.NDArray[np.int64]
    negatives: int
    case: tuple[int, ...]
    turned: tuple[int, ...]
    here: Mapping[int, tuple[str, str]]


def tree_svg(
    tree: Tree,
    *,
    case: Any = None,
    turned: Any = None,
    answer: Explanation | None = None,
    names: tuple[str, str] = ("negative", "positive"),
    counts: npt.ArrayLike | None = None,
) -> str:
    """Draw a tree, and how a case would have come to the other outcome.

    Parameters
    ----------
    tree : Tree
    case : mapping, Series or table of one row, optional
        Its path is solid and bold.
    turned : mapping, Series or table of one row, optional
        The case after the change; its path is dashed. Default: the case with the answer's changes.
    answer : Explanation, optional
        Names the change at the split it is about; default: the values that differ between the two.
    names : pair of str
        What a negative and a positive leaf are called.
    counts : (nodes, 2) int, optional
        Training rows labelled negative and positive at each node; default: the tree's own.

    Returns
    -------
    str
        An SVG document of at most 31 nodes, unless the two paths need more; the others are collapsed.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewest.tables.schema import Schema
    >>> from fewest.models.trees import Leaf, Split
    >>> schema = Schema.infer(pd.DataFrame({"priors": [0, 9]}))
    >>> tree = Tree.build(schema, Split("priors", 3.5, Leaf(False, negatives=80), Leaf(True, positives=20)))
    >>> svg = tree_svg(tree, case={"priors": 4}, turned={"priors": 3}, names=("good", "bad"))
    >>> "here: priors 4 -&gt; 3" in svg, "S/N- 1.00" in svg
    (True, True)
    """
    known = np.asarray(tree.counts if counts is None else counts, dtype=np.int64)
    if known.shape != (tree.n_nodes, 2):
        raise UsageError(f"counts have shape {known.shape}", do=f"pass ({tree.n_nodes}, 2): a pair for every node")
    before = None if case is None else one_row(tree, case)
    after = None if turned is None else one_row(tree, turned)
    if after is None and before is not None and answer is not None and answer.changes:
        after = changed(tree, before, answer)
    return _render(tree, names, known, int(known[tree.leaves, 0].sum()), before, after, answer)


def explanation_tree_svg(explanations: Explanations, row: int) -> str:
    """Draw the tree that decided, with the path of one case and the one that would have changed its outcome.

    Parameters
    ----------
    explanations : Explanations
        Made with `fewest.references.leaves`.
    row : int
        Position of the case in the table.

    Returns
    -------
    str
        An SVG document.

    Examples
    --------
    >>> import fewest as fw, pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(DecisionTreeClassifier().fit(X, y))
    >>> out = fw.Explainer(decision, fw.references.leaves(decision, X, y)).explain(X)
    >>> "here: debt 8 -&gt; 5" in explanation_tree_svg(out, 2)
    True
    """
    references, reach = explanations.references, explanations.reach
    if reach is None or not isinstance(references, Leaves):
        raise UsageError("these explanations do not lead to leaves of a tree", do="use references.leaves")
    answer, place = explanations[row], range(len(explanations))[row]
    case = explanations.frame.iloc[[place]]
    turned = None
    if answer.changes:
        goal = explanations.answers.reference[[place]]
        after, moved, _ = reach.turn(reach.tree.encode(case), goal)
        turned = reach.turned(case, after, moved)
    counts = np.full((reach.tree.n_nodes, 2), -1, dtype=np.int64)
    counts[reach.leaf, 0] = references.support
    names = (answer.outcome, answer.positive)
    return _render(reach.tree, names, counts, references.negatives, case, turned, answer)


def _render(
    tree: Tree, names: tuple[str, str], counts: npt.NDArray[np.int64], negatives: int, case: pd.DataFrame | None,
    turned: pd.DataFrame | None, answer: Explanation | None,
) -> str:  # fmt: skip
    path = path_of(tree, turned)
    here = decisive(tree, case, turned, path, answer)
    drawing = _Drawing(tree, (str(names[0]), str(names[1])), counts, negatives, path_of(tree, case), path, here)
    spots = lay_out(tree, {*drawing.case, *drawing.turned})
    across = LEFT + max(spot.depth for spot in spots) * COLUMN + BOX_WIDTH + RIGHT
    height = round(TOP + (max(spot.row for spot in spots) + 1) * ROW + LEGEND)
    title = _escaped(_sentence(drawing))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fewest-tree" role="img" aria-label="{title}" '
        f'viewBox="0 0 {across} {height}" width="{across}" height="{height}">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        *_edges(drawing, spots),
        *(line for spot in spots for line in _box(drawing, spot)),
        _legend(drawing, height),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _sentence(drawing: _Drawing) -> str:
    """What the picture shows, for those who do not see it."""
    tree = drawing.tree
    said = f"Decision tree with {len(tree.leaves)} {'leaf' if len(tree.leaves) == 1 else 'leaves'}"
    if drawing.case:
        said += f"; this case ends in {_leaf_name(drawing, drawing.case[-1])}"
    if drawing.turned:
        said += f"; with the change it ends in {_leaf_name(drawing, drawing.turned[-1])}"
    changes = ", ".join(f"{head.removeprefix('here: ')}{tail}" for head, tail in drawing.here.values())
    return f"{said} ({changes})." if changes else f"{said}."


def _leaf_name(drawing: _Drawing, node: int) -> str:
    """Leaves are numbered from left to right, as in `references.leaves`."""
    number = int(np.searchsorted(drawing.tree.leaves, node)) + 1
    return f"leaf {number} ({drawing.names[int(drawing.tree.positive[node])]})"


def _place(spot: Spot) -> tuple[int, float]:
    """Left end and middle of a node's box."""
    return LEFT + spot.depth * COLUMN, TOP + spot.row * ROW


def _edges(drawing: _Drawing, spots: Iterable[Spot]) -> list[str]:
    """Lines from tests to what follows: plain ones first, so that the two paths lie above them."""
    at = {spot.node: spot for spot in spots}
    layers: dict[str, list[str]] = {"edge": [], "turned": [], "case": []}
    words = []
    for spot in at.values():
        if spot.parent < 0:
            continue
        x, y = _place(at[spot.parent])
        to_x, to_y = _place(spot)
        middle = x + BOX_WIDTH + 18
        kind = "case" if spot.node in drawing.case else "turned" if spot.node in drawing.turned else "edge"
        layers[kind].append(f'<path class="{kind}" d="M{x + BOX_WIDTH} {y:g}H{middle}V{to_y:g}H{to_x}"/>')
        answer = "yes" if spot.node == drawing.tree.left[spot.parent] else "no"
        words.append(f'<text class="small" x="{to_x - 8}" y="{to_y - 6:g}" text-anchor="end">{answer}</text>')
    return [*layers["edge"], *layers["turned"], *layers["case"], *words]


def _box(drawing: _Drawing, spot: Spot) -> list[str]:
    """A node's box with its words, and what stands under and beside it."""
    x, y = _place(spot)
    on = " on" if spot.node in drawing.case or spot.node in drawing.turned else ""
    if spot.hidden:
        what = f"... {spot.hidden} more"
        return _boxed(x, y, "box more", "", what, f"{spot.hidden} nodes that are not drawn")
    if drawing.tree.feature[spot.node] >= 0:
        out = _asked(drawing.tree, spot.node, x, y, f"box{on}")
        if spot.node in drawing.here:
            head, tail = drawing.here[spot.node]
            out.append(_text(x + 2, y + UNDER, "here", fit(head, tail, BOLD_ROOM), head + tail))
        return out
    positive = bool(drawing.tree.positive[spot.node])
    name = drawing.names[int(positive)]
    kind, ink = ("box positive", "said") if positive else ("box", "")
    out = _boxed(x, y, f"{kind}{on}", ink, clip(name, ROOM), _leaf_name(drawing, spot.node), round_=19)
    under, whole = _support(drawing, spot.node)
    if under:
        out.append(_text(x + 12, y + UNDER, "small", under, whole))
    for path, tag in ((drawing.case, "this case"), (drawing.turned, "with the change")):
        if path and path[-1] == spot.node:
            out.append(_text(x + BOX_WIDTH + 8, y + 5, "tag", tag, tag))
            break
    return out


def _support(drawing: _Drawing, node: int) -> tuple[str, str]:
    """Training rows of a leaf and, for a negative one, the share of all negatives that is there (Theorem 4.3)."""
    negatives, positives = (int(count) for count in drawing.counts[node])
    everybody = drawing.negatives
    said, whole = [], []
    if positives >= 0 and drawing.counts.max() > 0:
        said.append(f"{negatives + positives:,} rows")
        whole.append(f"{negatives + positives:,} training rows end here")
    if not drawing.tree.positive[node] and everybody and negatives >= 0:
        said.append(f"S/N- {negatives / everybody:.2f}")
        whole.append(f"{negatives:,} of {everybody:,} negative training rows end here: the bound S/N-")
    return ", ".join(said), "; ".join(whole)


def _asked(tree: Tree, node: int, x: float, y: float, kind: str) -> list[str]:
    """A test: in one line where it fits, else the feature above and what is asked of it below."""
    whole = tree.describe(node) + "?"
    feature = tree.schema.features[tree.feature[node]].title
    if width(whole) <= ROOM:
        return _boxed(x, y, kind, "", whole, whole)
    middle = x + BOX_WIDTH / 2
    lines = ((feature, -3.0), (whole[len(feature) :].strip(), 13.0))
    return [_shape(x, y, kind, 3), *(_text(middle, y + down, "", clip(t, ROOM), whole, True) for t, down in lines)]


def _boxed(x: float, y: float, kind: str, ink: str, text: str, whole: str, round_: int = 3) -> list[str]:
    return [_shape(x, y, kind, round_), _text(x + BOX_WIDTH / 2, y + 4.5, ink, text, whole, middle=True)]


def _shape(x: float, y: float, kind: str, round_: int) -> str:
    place = f'x="{x:g}" y="{y - BOX_HEIGHT / 2:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="{round_}"'
    return f'<rect class="{kind}" {place}/>'


def _text(x: float, y: float, kind: str, text: str, whole: str, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    style = f' class="{kind}"' if kind else ""
    tip = f"<title>{_escaped(whole)}</title>" if whole != text else ""
    return f'<text x="{x:g}" y="{y:g}"{style}{anchor}>{tip}{_escaped(text)}</text>'


def _legend(drawing: _Drawing, height: int) -> str:
    said = []
    if drawing.case:
        said.append("solid: this case")
    if drawing.turned:
        said.append("dashed: with the change")
    if any("S/N-" in _support(drawing, int(leaf))[0] for leaf in drawing.tree.leaves):
        said.append("S/N-: share of the negative training rows")
    return _text(LEFT, height - 8, "small", "; ".join(said), "; ".join(said)) if said else ""


def _escaped(text: str) -> str:
    """Text for XML: markup escaped, and characters that no XML may hold replaced."""
    return escape(NOT_XML.sub("\ufffd", text))


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
