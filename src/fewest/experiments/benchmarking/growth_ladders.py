"""How the cost of a case grows: one thing varied at a time, a power law fitted to what was measured.

`boosted`, `problem` and `table` make the data; features, trees and depth are measured on the search alone, networks,
references and rows end to end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

from fewest import references
from fewest.decision import Decision
from fewest.engine.search import ensemble, first_answers
from fewest.engine.structure.base import Additive, Ensemble, Network
from fewest.experiments.benchmarking.large_tables import table
from fewest.experiments.benchmarking.measure import Row, at_most, cpu
from fewest.experiments.benchmarking.trees import boosted, problem
from fewest.explainer import Explainer

GBDT, LR, MLP = "GBDT", "LR", "MLP 32 + 16"
TRAINED_ON, CASES = 4_000, 500


@dataclass(frozen=True)
class Ladder:
    """One thing that is varied: CPU seconds per case at each of its values, and the exponent that they may show."""

    varied: str
    model: str
    values: tuple[int, ...]
    seconds: Callable[[int], float]
    limit: float
    on_paper: str

    def row(self) -> Row:
        """Measure every rung and fit them, after one that loads what is compiled."""
        first_answers.READINESS.loaded.update((Additive, Ensemble, Network))  # the compiled searches are measured
        self.seconds(self.values[0])
        points = tuple((float(value), self.seconds(value)) for value in self.values)
        exponent, miss = fitted(points)
        rungs = ", ".join(f"{value:g}: {1e6 * seconds:.3g} us" for value, seconds in points)
        detail = f"per case {rungs}; largest distance from the fit x {miss:.2f}; on paper {self.on_paper}"
        name = f"growth with {self.varied}, {self.model}"
        return replace(at_most(name, exponent, self.limit, "exponent", detail), points=points)


def fitted(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Exponent of the power law through (value, cost) by least squares in logarithms, and its largest miss, a factor.

    >>> fitted([(1, 3.0), (2, 12.0), (4, 48.0)])
    (2.0, 1.0)
    """
    value, cost = np.log(np.asarray(points, dtype=np.float64)).T
    exponent, constant = np.polyfit(value, cost, 1)
    miss = np.exp(np.abs(cost - constant - exponent * value).max())
    return round(float(exponent), 4), round(float(miss), 4)


def ladders() -> list[Ladder]:
    """What is varied; everything else stays as it is written here."""
    trees, features = (50, 100, 200, 400, 800), (10, 20, 40, 80, 160)
    counts, rows = (1, 2, 4, 8, 16, 32), (1_000, 4_000, 16_000, 64_000)
    return [
        Ladder("features", LR, features, partial(_wide, LR), 1.2, "p log p: one sort"),
        Ladder("features", GBDT, features, lambda p: _search(p, 200, 4), 1.5, "the number of sets that pass the bound"),
        Ladder("features", MLP, (5, 10, 20, 40), partial(_wide, MLP), 3.0, "the number of sets that pass the bound"),
        Ladder("trees", GBDT, trees, lambda count: _search(30, count, 4), 1.2, "1: each is walked once"),
        Ladder("depth", GBDT, (2, 3, 4, 6, 8), lambda depth: _search(30, 200, depth), 2.5, "2 to the bits on a path"),
        Ladder("references", LR, counts, partial(_many_references, LR), 1.0, "1, less what the best so far rules out"),
        Ladder("references", GBDT, counts, partial(_many_references, GBDT), 1.0, "the same"),
        Ladder("rows", LR, rows, partial(_many_rows, LR), 0.05, "0: a case costs the same among many"),
        Ladder("rows", GBDT, rows, partial(_many_rows, GBDT), 0.05, "0"),
    ]


def growth_ladders() -> Iterator[Row]:
    """One row per ladder."""
    for ladder in ladders():
        yield ladder.row()


def _search(p: int, trees: int, depth: int) -> float:
    """CPU seconds of a search of a boosted ensemble towards the mean of the accepted rows."""
    structure, X = boosted(p, trees, depth)
    task = problem(structure, X, CASES, False, 600)
    ensemble.solve(structure, task, 1)
    return cpu(partial(ensemble.solve, structure, task, 1), repeats=3) / task.n_cubes


def _wide(kind: str, p: int) -> float:
    """CPU seconds of a case end to end, with p numbers of about equal weight."""
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(TRAINED_ON, p)).round(3), columns=[f"number{j}" for j in range(p)])
    signal = X.to_numpy() @ random.uniform(0.5, 1.0, p) / np.sqrt(p)
    y = (signal + 0.3 * random.normal(size=len(X)) > 0).astype(int)
    decision = Decision(_estimator(kind).fit(X, y))
    explainer = Explainer(decision, references.single(decision, X, y), n_jobs=1)
    return _per_case(explainer, X[decision.refuses(X)].iloc[:CASES])


def _many_references(kind: str, count: int) -> float:
    """CPU seconds of a case end to end, the sparsest of many references taken."""
    decision, X, cases = _mixed(kind)
    accepted = X[~decision.refuses(X)].iloc[:count]
    return _per_case(
        Explainer(decision, references.supplied(decision, accepted, X=X, assignment="sparsest"), n_jobs=1),
        cases[decision.refuses(cases)].iloc[:CASES],
    )


def _many_rows(kind: str, rows: int) -> float:
    """CPU seconds of a row end to end, about half of them explained, in one call with all."""
    decision, X, cases = _mixed(kind)
    accepted = X[~decision.refuses(X)].iloc[:1]
    refs = references.supplied(decision, accepted, X=X)
    return _per_case(Explainer(decision, refs, n_jobs=1), cases.iloc[:rows])


def _per_case(explainer: Explainer, cases: pd.DataFrame) -> float:
    """Median CPU seconds of `explain` for each of the cases."""
    explainer.explain(cases)
    return cpu(partial(explainer.explain, cases), repeats=3) / len(cases)


@lru_cache(maxsize=4)
def _mixed(kind: str) -> tuple[Decision, pd.DataFrame, pd.DataFrame]:
    """A model of 15 numbers, 5 integers and 5 text columns, its training rows, and cases that are not among them."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y = table(TRAINED_ON, 1)
    numbers, text = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), text))
    return Decision(make_pipeline(encode, _estimator(kind)).fit(X, y)), X, table(64_000)[0]


def _estimator(kind: str) -> Any:
    """An unfitted model."""
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    return {
        LR: lambda: LogisticRegression(C=0.1, max_iter=500),
        GBDT: lambda: GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0),
        MLP: lambda: MLPClassifier((32, 16), early_stopping=True, tol=1e-3, n_iter_no_change=3, random_state=0),
    }[kind]()
