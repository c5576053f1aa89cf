"""Pipelines of pyspark.ml, as `fewest.runs.spark_model` keeps them: linear classifiers, trees, forests and boosting.

Nothing of Spark is imported: a model is read through its ``parts``, and the vector its classifier takes is prepared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.engine.structure._trees import ModelTree, stack
from fewest.engine.structure.base import Additive, Opaque
from fewest.engine.structure.question import EPS64, FoundQuestion, Question, logistic, plain


def read_spark(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read a pipeline of Spark: the raw score is the margin, or the mean of the leaves' shares."""
    parts = model.parts
    if parts.unread:
        return Opaque(parts.unread)
    source = np.array(parts.sources(), dtype=np.int32)
    if parts.coef is not None:
        coef = np.asarray(sum(sign * parts.coef[output] for output, sign in question.parts.items()))
        constant = float(sum(sign * parts.intercept[output] for output, sign in question.parts.items()))
        tolerance = 1e-8 * (1.0 + abs(constant) + float(np.abs(parts.coef).sum()))
        reading = logistic().reading(question, tolerance, parts.vector, source, growth=16 * EPS64)
        return FoundQuestion(Additive(reading, np.ascontiguousarray(coef), constant), logistic())
    trees = []
    for tree in parts.trees:
        if parts.boosted:
            value = question.sign * tree.value[:, 0]
        else:
            first, second = question.positive, question.against
            value = tree.value[:, first] - (0.0 if second is None else tree.value[:, second])
            value = value / len(parts.trees)
        trees.append(
            ModelTree(tree.column, tree.threshold, tree.left, tree.right, tree.beyond_left, value, tree.levels)
        )  # fmt: skip
    return stack(trees, 0.0, logistic(2.0) if parts.boosted else plain(), question, parts.vector, source)
