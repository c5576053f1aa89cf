"""Random models over small domains, and what `references.anyone` says of them against brute force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from all_values import best_of_all

import fewest as fw
from fewest.constraints import AtMost, Constraints, Forbidden, Immutable, OneOf, Only, Range
from fewest.results.explanation import Status
from fewest.tables.closeness import feature_distances

Setting = tuple[fw.Decision, pd.DataFrame, np.ndarray]


def setting(random: np.random.Generator, estimator: Any, scale: bool, widest: int) -> Setting:
    """The estimator on up to ``widest`` features; above five, each has few values, so that all can be tried."""
    from random_models import encoder, labels, table
    from sklearn.pipeline import make_pipeline

    p = int(random.integers(2, widest + 1))
    X = table(random, 80, p, *((2, 6) if p <= 5 else (1, 3)))
    y = labels(random, X)
    return fw.Decision(make_pipeline(encoder(X, scale), estimator).fit(X, y), positive=int(random.integers(2))), X, y


def trees(random: np.random.Generator, widest: int = 5) -> Setting:
    from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    seed = int(random.integers(1 << 30))
    kinds = [
        GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=seed),
        GradientBoostingClassifier(n_estimators=20, max_depth=2, learning_rate=0.3, random_state=seed),
        RandomForestClassifier(4, random_state=seed),
        RandomForestClassifier(7, max_depth=3, random_state=seed),
        AdaBoostClassifier(n_estimators=5, random_state=seed),
        DecisionTreeClassifier(max_depth=4, random_state=seed),
    ]
    return setting(random, kinds[random.integers(len(kinds))], bool(random.integers(2)), widest)


def bare(random: np.random.Generator, widest: int = 6) -> Setting:
    """Ensembles on whole numbers and flags, without a pipeline: cheap to ask about every row."""
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from xgboost import XGBClassifier

    seed, p = int(random.integers(1 << 30)), int(random.integers(3, widest + 1))
    X = pd.DataFrame({f"count{j}": random.integers(0, int(random.integers(2, 6)), 80) for j in range(p)})
    y = (X @ random.normal(size=p) + X["count0"] * X["count1"] + random.normal(size=80) > 3).to_numpy().astype(int)
    y[:2] = 0, 1
    kinds = [
        GradientBoostingClassifier(n_estimators=int(random.integers(3, 25)), max_depth=int(random.integers(1, 4))),
        RandomForestClassifier(int(random.integers(2, 9)), max_depth=int(random.integers(2, 6)), random_state=seed),
        XGBClassifier(n_estimators=int(random.integers(2, 15)), max_depth=int(random.integers(2, 6)), n_jobs=1),
    ]
    model = kinds[random.integers(len(kinds))].fit(X, y)
    return fw.Decision(model, positive=1, threshold=float(random.choice([0.5, 0.3, 0.1]))), X, y


def strict(random: np.random.Generator, widest: int = 6) -> Setting:
    """Boosted trees that accept few: often three features or more have to change, the case's own values amid."""
    from random_models import encoder, table
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.pipeline import make_pipeline

    X = table(random, 200, int(random.integers(5, widest + 1)), 1, 4)
    codes = np.column_stack([pd.factorize(X[c], sort=True)[0] for c in X]).astype(float)
    y = ((codes - codes.mean(axis=0)) @ random.choice([-1.0, 1.0], X.shape[1]) > 0).astype(int)
    model = make_pipeline(encoder(X, False), GradientBoostingClassifier(n_estimators=40, random_state=0)).fit(X, y)
    return fw.Decision(model, positive=1, threshold=0.03), X, y


def linear(random: np.random.Generator, widest: int = 5) -> Setting:
    from sklearn.linear_model import LogisticRegression

    return setting(random, LogisticRegression(C=10.0 ** random.integers(-2, 2)), True, widest)


def strict_linear(random: np.random.Generator, widest: int = 5) -> Setting:
    """A linear model with weights of its own that accepts few: mostly three features or more have to change."""
    from sklearn.linear_model import LogisticRegression

    p = int(random.integers(4, widest + 1))
    spread = random.integers(4, 11 if p < 6 else 5, p)
    X = pd.DataFrame({f"count{j}": random.integers(0, spread[j], 80) for j in range(p)})
    y = np.arange(80) % 2
    model = LogisticRegression().fit(X, y)
    model.coef_ = random.uniform(0.3, 2.0, (1, p)) * random.choice([-1, 1], p)
    falls = np.sort(np.abs(model.coef_[0]) * (spread - 1))[::-1]
    highest = np.where(model.coef_[0] > 0, model.coef_[0] * (spread - 1), 0).sum()
    model.intercept_ = np.array([falls[:2].sum() + random.random() * falls[2] - highest])
    return fw.Decision(model, positive=1), X, y


def histogram(random: np.random.Generator, widest: int = 5) -> Setting:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return setting(random, HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5), False, widest)


def boosters(random: np.random.Generator, widest: int = 5) -> Setting:
    """XGBoost and LightGBM."""
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    seed, rounds = int(random.integers(1 << 30)), int(random.integers(2, 15))
    kinds = [
        XGBClassifier(n_estimators=rounds, max_depth=3, n_jobs=1, random_state=seed),
        XGBClassifier(n_estimators=rounds, max_depth=5, subsample=0.7, n_jobs=1, random_state=seed),
        LGBMClassifier(n_estimators=rounds, num_leaves=7, min_child_samples=5, n_jobs=1, verbose=-1, random_state=seed),
    ]
    return setting(random, kinds[random.integers(len(kinds))], bool(random.integers(2)), widest)


def networks(random: np.random.Generator, widest: int = 4) -> Setting:
    from sklearn.neural_network import MLPClassifier

    net = MLPClassifier((4,), max_iter=60, random_state=int(random.integers(1 << 30)))
    return setting(random, net, True, widest)


def functions(random: np.random.Generator, widest: int = 4) -> Setting:
    """A model of which nothing can be read; every other accepts few."""
    decision, X, _ = trees(random, widest) if random.integers(2) else strict(random, widest + 1)
    inside, cut = decision.model.predict_proba, decision.cut
    return fw.Decision(lambda rows: inside(rows)[:, 1], positive=1, threshold=cut), X, inside(X)[:, 1] >= cut


def some_constraints(random: np.random.Generator, X: pd.DataFrame) -> Constraints:
    items: list[Any] = []
    for name in X:
        kind = random.integers(6)
        if kind == 0:
            items.append(Immutable(name))
        elif kind == 1 and not name.startswith("level"):
            items.append(Only(name, "up" if random.integers(2) else "down"))
        elif kind == 2 and name.startswith(("number", "count")):
            items.append(Range(name, low=float(X[name].median())))
        elif kind == 2 and name.startswith("level"):
            items.append(OneOf(name, ["a", "b"]))
    if random.integers(3) == 0:
        items.append(Forbidden(X.columns[0], X.columns[-1]))
    if random.integers(3) == 0:
        items.append(AtMost(2))
    return Constraints(*items)


def compare(make: Callable[..., Setting], seed: int, plain: bool = False, **options: int) -> list[str]:
    """What differs from brute force in four cases of a random model."""
    random = np.random.default_rng(seed)
    decision, X, y = make(random, **options)
    references = fw.references.anyone(decision, X, y, within=(0.1, 0.9))
    constraints = Constraints() if plain or random.integers(2) else some_constraints(random, X)
    weights = {} if plain or random.integers(2) else {name: float(random.choice([0.5, 1, 2, 3.7])) for name in X}
    cases = X.sample(4, random_state=int(random.integers(1 << 30)))
    # A model that is asked itself gets as many rows as there are: what a budget leaves out is no wrong answer.
    rows = 2_000_000 if make is networks else None
    explainer = fw.Explainer(decision, references, constraints=constraints, weights=weights, n_jobs=1, max_nodes=rows)
    out = explainer.explain(cases)
    refused, after = decision.verdicts(cases).positive, decision.verdicts(out.turned()).positive
    step = feature_distances(references.schema, cases, out.turned(), np.arange(4))
    wrong = []
    for k in range(4):
        got, status = out[k], out[k].status
        if not refused[k]:
            wrong += [] if status == Status.ALREADY_NEGATIVE else [f"{k}: {status}"]
            continue
        best = best_of_all(decision, references, cases.iloc[[k]], constraints, weights)
        if best is None:
            wrong += [] if status == Status.UNREACHABLE else [f"{k}: {status}, nothing turns it"]
        elif status != Status.EXPLAINED or abs((got.cost or 0) - best[0]) > 1e-9:
            wrong.append(f"{k}: {status} at {got.cost}, not {best[0]}")
        elif after[k] or (step[k] > 0).sum() != got.sev:
            wrong.append(f"{k}: the model does not confirm it")
        elif abs(step[k].sum() - best[1]) > 1e-9:
            wrong.append(f"{k}: {step[k].sum()} away, not {best[1]}")
    return wrong
