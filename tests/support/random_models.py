"""Random fitted models with random cases, small enough for brute force; one generator per structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import fewest as fw
from fewest.references.base import References


@dataclass
class Setting:
    decision: fw.Decision
    references: References
    cases: pd.DataFrame


def table(random: np.random.Generator, n: int, p: int, per_one: int = 10, counts: int = 5) -> pd.DataFrame:
    """Mixed features: coarse numbers (ties on purpose; ``per_one`` steps in one), integers, text levels, booleans."""
    columns: dict[str, Any] = {}
    for j in range(p):
        kind = random.integers(4)
        if kind == 0:
            columns[f"number{j}"] = np.round(random.normal(size=n) * per_one) / per_one
        elif kind == 1:
            columns[f"count{j}"] = random.integers(0, counts, n)
        elif kind == 2:
            columns[f"level{j}"] = pd.Series(random.choice(["a", "b", "c"], n), dtype="str")
        else:
            columns[f"flag{j}"] = random.random(n) < 0.5
    return pd.DataFrame(columns)


def labels(random: np.random.Generator, X: pd.DataFrame) -> np.ndarray:
    codes = np.column_stack([pd.factorize(X[c], sort=True)[0] for c in X]).astype(float)
    centred = codes - codes.mean(axis=0)
    interaction = centred[:, 0] * centred[:, -1]
    signal = centred @ random.normal(size=X.shape[1]) + interaction + random.normal(size=len(X))
    return (signal > np.median(signal)).astype(int)


def encoder(X: pd.DataFrame, scale: bool) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    text = [c for c in X if str(X[c].dtype) in ("str", "object", "string")]
    rest = [c for c in X if c not in text]
    return make_column_transformer((OneHotEncoder(), text), (StandardScaler() if scale else "passthrough", rest))


def fitted(
    random: np.random.Generator, estimator: Any, scale: bool = True, n: int = 80, p: int | None = None
) -> Setting:
    """A pipeline of an encoder and the estimator, fitted on a random table; references that may be positive."""
    from sklearn.pipeline import make_pipeline

    X = table(random, n, int(random.integers(2, 7)) if p is None else p)
    y = labels(random, X)
    decision = fw.Decision(make_pipeline(encoder(X, scale), estimator).fit(X, y), positive=int(random.integers(2)))
    centre = ("mean", "median", "medoid")[random.integers(3)]
    references = fw.references.single(decision, X, y, centre=centre, on_positive="allow")
    return Setting(decision, references, X.sample(4, random_state=int(random.integers(1 << 30))))


def boolean_function(random: np.random.Generator, p: int | None = None) -> Setting:
    """A random truth table as a model: scores on a coarse grid, some of them exactly at the threshold."""
    p = int(random.integers(1, 8)) if p is None else p
    scores = random.choice([0.0, 0.25, 0.5, 0.75, 1.0], size=1 << p, p=[0.1, 0.1, 0.15, 0.3, 0.35])
    names = [f"b{j}" for j in range(p)]

    def model(frame: pd.DataFrame) -> np.ndarray:
        return scores[frame[names].to_numpy(dtype=int) @ (1 << np.arange(p))]

    decision = fw.Decision(model, positive="yes", threshold=0.5)
    both = pd.DataFrame([[0] * p, [1] * p], columns=names)
    cases = pd.DataFrame(random.integers(0, 2, (3, p)), columns=names)
    goal = pd.DataFrame(random.integers(0, 2, (1, p)), columns=names)
    references = fw.references.supplied(decision, goal, X=both, on_positive="allow")
    return Setting(decision, references, cases)


def linear(random: np.random.Generator) -> Setting:
    from sklearn.linear_model import LogisticRegression

    return fitted(random, LogisticRegression(C=10.0 ** random.integers(-2, 2)))


def tree_ensemble(random: np.random.Generator) -> Setting:
    from sklearn.ensemble import (
        AdaBoostClassifier,
        ExtraTreesClassifier,
        GradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.tree import DecisionTreeClassifier

    seed = int(random.integers(1 << 30))
    choices = [
        DecisionTreeClassifier(max_depth=4, random_state=seed),
        RandomForestClassifier(5, max_depth=3, random_state=seed),
        RandomForestClassifier(4, random_state=seed),
        ExtraTreesClassifier(5, max_depth=4, random_state=seed),
        GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=seed),
        AdaBoostClassifier(n_estimators=5, random_state=seed),
    ]
    return fitted(random, choices[random.integers(len(choices))], scale=False)


def hist_gradient(random: np.random.Generator) -> Setting:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return fitted(random, HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5), scale=False)


def xgboost(random: np.random.Generator) -> Setting:
    from xgboost import XGBClassifier

    return fitted(random, XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1), scale=False)


def lightgbm(random: np.random.Generator) -> Setting:
    from lightgbm import LGBMClassifier

    estimator = LGBMClassifier(n_estimators=5, num_leaves=7, min_child_samples=5, n_jobs=1, verbose=-1)
    return fitted(random, estimator.set_params(), scale=False)


def network(random: np.random.Generator) -> Setting:
    """A net with random weights: a few steps of fitting only to give it shape."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    layers = ((8,), (6, 5), (5, 4, 3))[random.integers(3)]
    activation = ("relu", "tanh", "logistic")[random.integers(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        setting = fitted(random, MLPClassifier(layers, activation=activation, max_iter=3, random_state=0))
    net = setting.decision.model[-1]
    for weight in (*net.coefs_, *net.intercepts_):
        weight *= 1.0 + 3.0 * random.random()
    return refreshed(setting)


def refreshed(setting: Setting) -> Setting:
    """References scored again after the model's weights were changed."""
    references = fw.references.supplied(
        setting.decision, setting.references.frame, schema=setting.references.schema, on_positive="allow"
    )
    return Setting(setting.decision, references, setting.cases)


def kernel_machine(random: np.random.Generator) -> Setting:
    """Support vectors of every kernel that is read, or a Gaussian process."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.svm import SVC

    machines = [SVC(kernel="rbf", gamma=gamma) for gamma in ("scale", 1.0)]
    machines += [SVC(kernel="poly", degree=2), SVC(kernel="poly", coef0=1.0), SVC(kernel="sigmoid")]
    machines.append(GaussianProcessClassifier(2.0 * RBF(2.0), optimizer=None))
    return fitted(random, machines[random.integers(len(machines))], p=int(random.integers(2, 7)))


def neighbours(random: np.random.Generator) -> Setting:
    """Rows are often equally near where features are levels."""
    from sklearn.neighbors import KNeighborsClassifier

    options = {
        "n_neighbors": int(random.integers(1, 12)),
        "weights": ("uniform", "distance")[random.integers(2)],
        "p": int(random.integers(1, 3)),
        "algorithm": ("brute", "kd_tree")[random.integers(2)],
    }
    return fitted(random, KNeighborsClassifier(**options), p=int(random.integers(2, 7)))


def calibrated(random: np.random.Generator) -> Setting:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression

    return fitted(random, CalibratedClassifierCV(LogisticRegression(), cv=2), p=int(random.integers(2, 6)))


def random_constraints(random: np.random.Generator, schema: fw.Schema) -> fw.Constraints:
    """Up to four constraints of any kind."""
    names = list(schema.names)
    chosen: list[Any] = []
    for _ in range(random.integers(1, 5)):
        one = names[random.integers(len(names))]
        two = list(random.choice(names, 2, replace=False)) if len(names) > 1 else None
        feature = schema.features[schema.index(one)]
        kind = random.integers(7)
        if kind == 0:
            chosen.append(fw.Immutable(one))
        elif kind == 1 and (feature.is_numeric or feature.kind == "boolean"):
            chosen.append(fw.Only(one, "up" if random.random() < 0.5 else "down"))
        elif kind == 2 and feature.is_numeric:
            chosen.append(fw.Range(one, high=float(random.normal())))
        elif kind == 3 and two:
            chosen.append(fw.Linked(*two))
        elif kind == 4 and two:
            chosen.append(fw.Implies(*two))
        elif kind == 5 and two:
            chosen.append(fw.Forbidden(*two))
        else:
            chosen.append(fw.AtMost(int(random.integers(1, 4))))
    return fw.Constraints(*chosen)


def random_explainer(random: np.random.Generator, setting: Setting, **more: Any) -> fw.Explainer:
    """An explainer with or without constraints, weights, and in either direction."""
    schema = setting.references.schema
    options: dict[str, Any] = {"n_jobs": 1, **more}
    if random.random() < 0.5:
        options["constraints"] = random_constraints(random, schema)
    if random.random() < 0.25:
        options["weights"] = {name: float(random.integers(1, 5)) for name in schema.names}
    if random.random() < 0.3 and (setting.references.score < setting.decision.cut).all():
        options["direction"] = "plus"
    return fw.Explainer(setting.decision, setting.references, **options)
