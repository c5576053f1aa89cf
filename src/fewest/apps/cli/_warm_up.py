"""``fewest doctor --warm``: every search is asked something small, so that it is compiled before anybody waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fewest import references
from fewest.apps.cli._doctor import Check
from fewest.credibility import mixture
from fewest.decision import Decision
from fewest.engine.points import ENGINE
from fewest.engine.search import Found, Problem, ensemble, first_answers
from fewest.engine.structure.base import Additive, Ensemble, Network, Opaque, Structure
from fewest.explainer import Explainer

N_ROWS, N_FEATURES = 200, 6


def warm_up() -> Check:
    """Compile every search that can be needed, and say how long that took."""
    began = time.monotonic()
    first_answers.READINESS.loaded.update({Additive, Ensemble, Network})
    for explainer, cases in _questions():
        out = explainer.explain(cases)
        explainer.explain(cases, alternatives=1)
        if isinstance(explainer.references, references.Anyone):
            explainer.least(out)
            out.to_json(enough=True)
    return Check("searches", True, f"compiled, {time.monotonic() - began:.1f} s", needed=False)


def _questions() -> Iterator[tuple[Explainer, pd.DataFrame]]:
    """An explainer for each search: counts, costs, a floor, very large cubes, all values, many rows, votes."""
    from sklearn.ensemble import GradientBoostingClassifier, VotingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures
    from sklearn.tree import DecisionTreeClassifier

    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(N_ROWS, N_FEATURES)).round(2), columns=list("abcdef"))
    y = (X.sum(axis=1) > 0).astype(int).to_numpy()
    network = MLPClassifier((4, 3), max_iter=400, tol=1e-2, random_state=0)
    products = make_pipeline(PolynomialFeatures(2, interaction_only=True, include_bias=False), LogisticRegression())
    trees = GradientBoostingClassifier(n_estimators=8)
    for model in (LogisticRegression(), trees, network, KNeighborsClassifier(), products):
        decision = Decision(model.fit(X, y), positive=1)
        reference = references.single(decision, X, y)
        weights, floor = {"weights": {"a": 2.0}}, {"credibility": mixture(decision, X, y, quantile=0.5)}
        for more in ({}, weights) if model is products else ({}, weights, floor, {**weights, **floor}):
            yield Explainer(decision, reference, n_jobs=1, **more), X
        if isinstance(model, LogisticRegression | GradientBoostingClassifier):
            for others in (references.anyone(decision, X, y), references.accepted(decision, X, y)):
                yield Explainer(decision, others, n_jobs=1), X
        if isinstance(model, GradientBoostingClassifier):
            engine = replace(ENGINE, solve=_impatient)
            yield Explainer(decision, reference, n_jobs=1, engine=engine), X
            strict = Decision(model, positive=1, threshold=0.01)  # nobody gets there: sets of all sizes are tried
            yield Explainer(strict, references.anyone(strict, X, y), n_jobs=1), X.iloc[:2]
    members = [("linear", LogisticRegression()), ("trees", GradientBoostingClassifier(n_estimators=8))]
    votes = Decision(VotingClassifier(members, voting="soft").fit(X, y), positive=1)
    yield Explainer(votes, references.single(votes, X, y), n_jobs=1), X
    tree = Decision(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y), positive=1)
    yield Explainer(tree, references.leaves(tree, X, y), n_jobs=1), X


def _impatient(structure: Structure | Opaque, problem: Problem, own_score: Any, near: float, n_jobs: int = 1) -> Found:
    """The search of tree ensembles that hands over to the integer program at once."""
    if isinstance(structure, Ensemble):
        return ensemble.solve(structure, problem, n_jobs, patience=1)
    return ENGINE.solve(structure, problem, own_score, near, n_jobs)
