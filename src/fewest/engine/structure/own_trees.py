"""The package's own estimators: one neutral tree, or a booster's trees with leaf values of their own.

Nothing of `fewest.models` is imported: a model is read through its ``tree_`` or ``ensemble_``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fewest.engine.structure._trees import ModelTree, stack, sum_tolerance
from fewest.engine.structure.question import FoundQuestion, Question, logistic, margin_link, plain
from fewest.tables.arrays import Floats

NEUTRAL = frozenset({"CARTClassifier", "C45Classifier", "GOSDTClassifier", "LoadedTreeClassifier", "TOptClassifier"})


def read_neutral(model: Any, question: Question) -> FoundQuestion:
    """Read a neutral tree on codes of the original features: the raw score is the leaf's share of the class."""
    tree, schema = model.tree_, model.tree_.schema
    share = tree.score if question.positive == 1 else 1.0 - tree.score
    value = np.where(tree.feature < 0, share, 0.0)
    # The tables list the code of unknown levels too, so only missing values are left to `missing_left`.
    levels = {int(node): tree.levels_left[tree.level_set[node]] for node in np.flatnonzero(tree.level_set >= 0)}
    read = ModelTree(tree.feature, tree.threshold, tree.left, tree.right, tree.missing_left, value, levels)
    source = np.array([schema.columns.index(feature.columns[0]) for feature in schema.features], dtype=np.int32)

    def codes(model_input: Any) -> Floats:
        return np.ascontiguousarray(tree.encode(schema.conform(model_input, unseen="allow")))

    return stack([read], 0.0, plain(), question, codes, source)


def read_leaf_sum(model: Any, question: Question) -> FoundQuestion:
    """Read LeafSumClassifier: the raw score is the log-odds."""
    trees, sign, link = model.ensemble_, question.sign, margin_link(question, logistic())
    # The band of the booster the trees are from does not hold for other leaf values.
    leaves = np.split(np.where(trees.column < 0, trees.value, 0.0), trees.root[1:])
    tolerance = sum_tolerance(leaves, trees.base)
    reading = link.reading(question, tolerance, trees.reading.prepare, trees.reading.source, trees.reading.growth)
    return FoundQuestion(replace(trees, reading=reading, value=sign * trees.value, base=sign * trees.base), link)
