"""`LeafSumClassifier`: the trees of a booster with leaf values of their own.

Nothing of `fewest.models.training` is imported: a model is read through its ``ensemble_``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fewest.engine.structure._trees import ModelTree, sum_tolerance
from fewest.engine.structure.base import Ensemble, Opaque
from fewest.engine.structure.question import FoundQuestion, Question, logistic, margin_link


def read_leaf_sum(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read LeafSumClassifier: the raw score is the log-odds."""
    link = margin_link(model, question, logistic())
    if isinstance(link, Opaque):
        return link
    trees, sign = model.ensemble_, question.sign
    cut, slack = link.cut(question)
    # The band of the booster the trees are from does not hold for other leaf values.
    tolerance = sum_tolerance(_single_trees(trees), trees.base) + slack
    reading = replace(trees.reading, cut=cut, tolerance=tolerance)
    return FoundQuestion(replace(trees, reading=reading, value=sign * trees.value, base=sign * trees.base), link)


def _single_trees(trees: Ensemble) -> list[ModelTree]:
    """The trees one by one; enough of each to bound its values."""
    ends = np.append(trees.root[1:], len(trees.column))
    return [
        ModelTree(trees.column[one], trees.threshold[one], trees.left[one], trees.right[one], trees.missing_left[one],
             trees.value[one])
        for one in (slice(first, last) for first, last in zip(trees.root, ends, strict=True))
    ]  # fmt: skip
