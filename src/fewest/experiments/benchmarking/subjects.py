"""The paper's models on the paper's data, fitted once per run: pipelines on raw frames, one split, seed 0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest import references
from fewest.decision import Decision
from fewest.engine.cubes import CasePairs, set_up_cubes
from fewest.engine.model_reading import ModelReading
from fewest.engine.points import PointGoals
from fewest.engine.search import Budget, Problem
from fewest.engine.structure import Opaque
from fewest.engine.structure.base import Structure
from fewest.experiments.paper import models
from fewest.experiments.paper.data import Rows, load_split
from fewest.explainer import Explainer
from fewest.references.base import References

PAPER = ("compas", "german", "adult", "headline", "fico")


@lru_cache(maxsize=8)
def load(name: str) -> Rows:
    """Train and test rows of the first split."""
    return load_split(name, 0)


def estimator(kind: str, name: str = "") -> Any:
    """An unfitted model by its short name."""
    from sklearn import calibration, ensemble, naive_bayes, neighbors, svm

    if kind.upper() in models.MODELS:
        return models.estimator(kind.upper(), name)
    alone = {"n_estimators": 200, "n_jobs": 1, "random_state": 42}
    return {
        "xgboost": lambda: import_module("xgboost").XGBClassifier(max_depth=6, **alone),
        "lightgbm": lambda: import_module("lightgbm").LGBMClassifier(num_leaves=31, verbose=-1, **alone),
        "histgb": lambda: ensemble.HistGradientBoostingClassifier(max_iter=200, random_state=42),
        "forest8": lambda: ensemble.RandomForestClassifier(100, max_depth=8, random_state=42),
        "forest": lambda: ensemble.RandomForestClassifier(100, random_state=42),
        "neighbours": lambda: neighbors.KNeighborsClassifier(25),
        "bayes": lambda: naive_bayes.GaussianNB(var_smoothing=1e-3),
        "kernel": lambda: calibration.CalibratedClassifierCV(svm.SVC(), cv=2),
    }[kind]()


@dataclass(frozen=True)
class Subject:
    """A fitted pipeline, its references, and the test rows it refuses."""

    decision: Decision
    references: References
    cases: pd.DataFrame

    def explainer(self, **options: Any) -> Explainer:
        """An explainer on one thread."""
        return Explainer(self.decision, self.references, n_jobs=1, **options)

    def inside(self) -> ModelReading:
        """What was read of the model."""
        return self.explainer().look_inside(self.cases)

    def prepared(self) -> tuple[Any, npt.NDArray[Any], npt.NDArray[Any]]:
        """The final model, its input for the cases, and for the reference, as dense arrays."""
        encoding = self.inside().encoding
        rows, goal = (encoding.transform(frame) for frame in (self.cases, self.references.frame))
        dense = [part.toarray() if hasattr(part, "toarray") else np.asarray(part) for part in (rows, goal)]
        return encoding.final, dense[0], dense[1]

    def problem(self, **options: Any) -> tuple[Structure, Problem]:
        """The search problem of the cases."""
        goals = self.explainer(**options).goals
        if not isinstance(goals, PointGoals):
            raise TypeError("only points span hypercubes")
        task = goals.task(self.cases, float("inf"), 0)
        inside = task.inside
        if isinstance(inside.structure, Opaque):
            raise TypeError(f"not read: {inside.structure.reason}")
        far = task.goal_rows.distances(self.cases)
        goal_of = self.references.candidates(self.cases, far)[:, 0]
        towards = CasePairs(self.cases, far, np.arange(len(self.cases)), goal_of)
        prepared = inside.prepare(inside.encoding.transform(self.cases))
        problem = set_up_cubes(task, towards, np.full(len(self.cases), np.inf), prepared).problem
        return inside.structure, replace(problem, budget=Budget())


@lru_cache(maxsize=64)
def subject(name: str, kind: str) -> Subject:
    """A model fitted on a dataset; the median is used where the mean reference is itself decided positive."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X_train, X_test, y_train, _ = load(name)
    text = [c for c in X_train if not pd.api.types.is_numeric_dtype(X_train[c].dtype)]
    numbers = [c for c in X_train if c not in text]
    encoder = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore", sparse_output=False), text)
    )
    model = make_pipeline(encoder, estimator(kind, name)).fit(X_train, y_train)
    decision = Decision(model, positive=1)
    refs = references.single(decision, X_train, y_train, on_positive="allow")
    if name == "fico" or refs.score[0] >= decision.cut:
        refs = references.single(decision, X_train, y_train, centre="median", on_positive="allow")
    cases = X_test[decision.refuses(refs.schema.conform(X_test, unseen="allow"))]
    return Subject(decision, refs, refs.schema.conform(cases, unseen="allow"))
