"""Three or more classes: one against each of the others, and classifiers made of one model per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fewest.engine.structure.base import Opaque, Reading, Rivals
from fewest.engine.structure.combinations import Find, composite_of
from fewest.engine.structure.question import FoundQuestion, Question
from fewest.tables.arrays import Floats


def read_rivals(model: Any, question: Question, count: int, find: Find) -> Rivals | Opaque:
    """Read whether a class is ahead of each of the others: the comparisons with them, one by one."""
    members = []
    for other in range(count):
        if other != question.positive:
            found = find(model, replace(question, against=other))
            if isinstance(found, Opaque):
                return found
            members.append(found.structure)
    readings = [member.reading for member in members]
    tolerance, growth = max(part.tolerance for part in readings), max(part.growth for part in readings)
    first, widths = readings[0], [len(part.source) for part in readings]
    if all(part.prepare is first.prepare for part in readings):
        spans = [slice(0, widths[0])] * len(members)
        reading = Reading(0.0, tolerance, first.prepare, first.source, growth, first.several)
    else:
        ends = np.cumsum(widths).tolist()
        spans = [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
        source = np.concatenate([part.source for part in readings]).astype(np.int32)
        several = tuple(places for part in readings for places in part.inputs)
        prepare = _side_by_side([part.prepare for part in readings])
        reading = Reading(0.0, tolerance, prepare, source, growth, several if any(p.several for p in readings) else ())
    return Rivals(reading, tuple(members), tuple(spans))


def _side_by_side(parts: list[Callable[[Any], Floats]]) -> Callable[[Any], Floats]:
    return lambda model_input: np.ascontiguousarray(np.hstack([part(model_input) for part in parts]))


def read_one_vs_rest(model: Any, question: Question, find: Find) -> FoundQuestion | Opaque:
    """Read OneVsRestClassifier: two classes are compared by the difference of their own models' scores."""
    if model.multilabel_:
        return Opaque("OneVsRestClassifier: several labels at once are not one decision")
    if question.against is None:  # two classes: one model decides
        return find(model.estimators_[0], question)
    asked = Question(1, None, question.kind, 0.5 if question.kind == "proba" else 0.0)
    found = [find(model.estimators_[place], asked) for place in question.pair]
    # A difference of decision functions is bounded by nothing, as one of numbers is.
    made = composite_of(found, [1.0, -1.0], Question(kind="value", threshold=question.threshold))
    if isinstance(made, Opaque) or question.kind != "proba":
        return made
    return FoundQuestion(made.structure, replace(made.link, plain=False))  # all are divided by their sum
