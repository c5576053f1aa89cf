"""A decision tree in words, for terminals and mails."""

from __future__ import annotations

from fewest.models.trees import Tree


def tree_text(tree: Tree, names: tuple[str, str] = ("negative", "positive")) -> str:
    """A tree as indented questions with their answers.

    Parameters
    ----------
    tree : Tree
    names : pair of str
        What a negative and a positive leaf are called.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewest.tables.schema import Schema
    >>> from fewest.models.trees import Leaf, Split
    >>> schema = Schema.infer(pd.DataFrame({"priors": [0, 9]}))
    >>> leaves = Leaf(False, negatives=60, positives=20), Leaf(True, positives=20)
    >>> print(tree_text(Tree.build(schema, Split("priors", 3.5, *leaves)), names=("good", "bad")))
    priors <= 3.5?
      yes: good (80 rows, 20 of them bad)
      no: bad (20 rows, 20 of them bad)
    """
    lines: list[str] = []
    # A stack and not recursion: a text has no limit on its depth.
    todo = [(0, "")]
    while todo:
        node, lead = todo.pop()
        if tree.feature[node] < 0:
            lines.append(f"{lead}{_leaf(tree, node, names)}")
            continue
        lines.append(f"{lead}{tree.describe(node)}?")
        deeper = " " * (len(lead) - len(lead.lstrip()) + 2)
        todo += [(int(tree.right[node]), f"{deeper}no: "), (int(tree.left[node]), f"{deeper}yes: ")]
    return "\n".join(lines)


def _leaf(tree: Tree, node: int, names: tuple[str, str]) -> str:
    name = names[int(tree.positive[node])]
    rows = int(tree.counts[node].sum())
    return f"{name} ({rows:,} rows, {int(tree.counts[node, 1]):,} of them {names[1]})" if rows else name
