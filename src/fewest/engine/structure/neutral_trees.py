"""The package's own tree estimators: one neutral tree on codes of the original features.

Nothing of `fewest.models.trees` is imported: a model is read through its ``tree_``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.engine.structure._trees import make_tree, stack, sum_tolerance
from fewest.engine.structure.base import Opaque, Reading
from fewest.engine.structure.question import FoundQuestion, Question, chances_only, plain
from fewest.tables.arrays import Floats

NEUTRAL = frozenset({"CARTClassifier", "C45Classifier", "GOSDTClassifier", "LoadedTreeClassifier", "TOptClassifier"})


def read_neutral(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read a neutral tree: the raw score is the leaf's share of the class."""
    refused = chances_only(model, question)
    if refused is not None:
        return refused
    tree, schema = model.tree_, model.tree_.schema
    share = tree.score if question.positive == 1 else 1.0 - tree.score
    value = np.where(tree.feature < 0, share, 0.0)
    # The tables list the code of unknown levels too, so only missing values are left to `missing_left`.
    levels = {int(node): tree.levels_left[tree.level_set[node]] for node in np.flatnonzero(tree.level_set >= 0)}
    read = make_tree(tree.feature, tree.threshold, tree.left, tree.right, tree.missing_left, value, levels)
    link = plain()
    cut, slack = link.cut(question)
    source = np.array([schema.columns.index(feature.columns[0]) for feature in schema.features], dtype=np.int32)
    reading = Reading(cut, sum_tolerance([read], 0.0) + slack, _TreeCodes(tree), source)
    return FoundQuestion(stack([read], 0.0, reading), link)


class _TreeCodes:
    """Model input as the codes a neutral tree walks on."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def __call__(self, model_input: Any) -> Floats:
        frame = self.tree.schema.conform(model_input, unseen="allow")
        return np.ascontiguousarray(self.tree.encode(frame))
