"""Several trainings that differ in their second phase only, after one warm-up that they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

from sklearn.base import clone

from fewest.models.training.classifiers import TrainedClassifier


def fit_each(
    estimator: TrainedClassifier, X: Any, y: Any, choices: Iterable[Mapping[str, Any]]
) -> Iterator[TrainedClassifier]:
    """The estimator fitted with each of the choices: what `fit` gives, for one warm-up.

    A choice has parameters of the second phase: ``c`` and ``spread`` of ExpO, ``c1`` and ``c2`` of All-Opt.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewest.models.training import ExpOClassifier
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9] * 20, "age": [30, 40, 50] * 40})
    >>> quick = ExpOClassifier(warmup_epochs=3, epochs=2)
    >>> [model.c for model in fit_each(quick, X, [0, 0, 0, 1, 1, 1] * 20, [{"c": 0.0}, {"c": 1.0}])]
    [0.0, 1.0]
    """
    begun = clone(estimator)
    session, history = begun._begin(X, y)
    trainer = session.trainer
    trainer.run("warm-up", begun._warm_up)
    values, order, warm = trainer.snapshot(), trainer.source.get_state(), list(history.rows)
    for choice in choices:
        trainer.restore(values)
        trainer.source.set_state(order)
        history.rows[:] = warm
        model = copy(begun).set_params(**choice)
        model._phases(session)
        model._finish(session, history)
        yield model
