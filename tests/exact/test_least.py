"""`Explainer.least` against brute force over every combination of values between the case and the answer."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_models import encoder, labels
from sklearn.pipeline import make_pipeline

import fewest as fw
from fewest.constraints import Constraints, Range
from fewest.engine import least as module
from fewest.engine.search.domains import nearest_values
from fewest.errors import UsageError
from fewest.tables.closeness import feature_distances


def table(random: np.random.Generator, n: int, p: int) -> pd.DataFrame:
    """Numbers with few values, and a level."""
    columns: dict[str, Any] = {"level": pd.Series(random.choice(["a", "b", "c"], n), dtype="str")}
    for j in range(p):
        if j % 2:
            columns[f"number{j}"] = np.round(random.normal(size=n) * 0.7, 1)
        else:
            columns[f"count{j}"] = random.integers(0, 9, n)
    return pd.DataFrame(columns)


def estimator(random: np.random.Generator, kind: str) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    seed = int(random.integers(1 << 30))
    if kind == "linear":
        return LogisticRegression(C=10.0 ** random.integers(-2, 2))
    if kind == "network":
        return MLPClassifier((4,), max_iter=30, random_state=seed)
    return [
        GradientBoostingClassifier(n_estimators=12, max_depth=3, learning_rate=0.3, random_state=seed),
        RandomForestClassifier(6, max_depth=5, random_state=seed),
    ][random.integers(2)]


def ways(schema: Any, case: pd.DataFrame, shown: pd.DataFrame, j: int, constraints: Constraints) -> list[float]:
    """The values a changed number may take, by the definition."""
    feature = schema.features[j]
    own, to = (float(frame[feature.columns[0]].iloc[0]) for frame in (case, shown))
    step = 10 ** (feature.decimals if feature.kind == "number" else 0)
    low, high = (round(end * step) for end in sorted((own, to)))
    grid = {k / step for k in range(low, high + 1)} - {own} | {to}
    bounds = [(item.low, item.high) for item in constraints.of(Range) if item.name == feature.name]
    return sorted(v for v in grid if v == to or all(a <= v <= b for a, b in bounds))


def best(decision: fw.Decision, schema: Any, case: Any, shown: Any, moved: Any, constraints: Constraints) -> Any:
    """The least largest step and the least sum with it, over everything."""
    features = [j for j in np.flatnonzero(moved).tolist() if schema.features[j].is_numeric]
    options = [ways(schema, case, shown, j, constraints) for j in features]
    points = list(product(*options))
    rows = shown.iloc[np.zeros(len(points), dtype=int)].reset_index(drop=True)
    for at, j in enumerate(features):
        column = schema.features[j].columns[0]
        rows[column] = pd.Series([point[at] for point in points]).astype(rows[column].dtype)
    turned = rows[~decision.verdicts(rows).positive]
    start = case.iloc[np.zeros(len(turned), dtype=int)].set_axis(turned.index)
    step = feature_distances(schema, start, turned, np.arange(len(turned)))[:, features]
    keys = np.round(np.column_stack([step.max(axis=1), step.sum(axis=1)]), 9)
    return min(map(tuple, keys.tolist()))


def compare(kind: str, seed: int) -> tuple[list[str], int, int]:
    """What differs from brute force; answers whose numbers moved, and those said to be proved."""
    random = np.random.default_rng(seed)
    X = table(random, 120, int(random.integers(1, 5)))
    y = labels(random, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network that has not converged is a model like any other
        model = make_pipeline(encoder(X, bool(random.integers(2))), estimator(random, kind)).fit(X, y)
    # A low threshold refuses more, so that more features have to change.
    decision = fw.Decision(model, threshold=float(random.choice([0.2, 0.35, 0.5])))
    middle = Range("count0", high=float(X["count0"].median()))
    constraints = Constraints(*[middle][: int(random.integers(3) == 0)])
    references = fw.references.single(decision, X, y, on_positive="allow")
    if kind != "network" and random.integers(2):
        references = fw.references.anyone(decision, X, y)
    explainer = fw.Explainer(decision, references, constraints=constraints, n_jobs=1)
    out = explainer.explain(X.iloc[:12], alternatives=int(random.integers(3)))
    less = explainer.least(out)
    wrong, moving, proved = [], 0, 0
    after = less.turned()
    step = feature_distances(out.schema, out.frame, after, np.arange(len(out)))
    numeric = np.array([feature.is_numeric for feature in out.schema.features])
    for k in np.flatnonzero(out.answers.moved.any(axis=1)).tolist():
        moved = out.answers.moved[k]
        assert (less.answers.moved[k] == moved).all()
        assert not decision.verdicts(after.iloc[[k]]).positive[0]
        assert less[k].sev == out[k].sev
        assert [c.feature for c in less[k].changes] == [c.feature for c in out[k].changes]
        assert ((step[k] > 0) == moved).all(), "the set is kept"
        if not (moved & numeric).any():
            continue
        moving += 1
        is_proved = less[k].proof.strategy.endswith(", least values")
        proved += is_proved
        wanted = best(decision, out.schema, out.frame.iloc[[k]], out.turned().iloc[[k]], moved, constraints)
        got = step[k, moved & numeric]
        key = (round(float(got.max()), 9), round(float(got.sum()), 9))
        assert abs((less[k].l_inf or 0) - got.max()) < 1e-12
        if is_proved and not np.allclose(key, wanted, atol=2e-9):
            wrong.append(f"{seed}/{k}: {key}, not {wanted}")
        if key < tuple(np.array(wanted) - 1e-8):
            wrong.append(f"{seed}/{k}: {key} is not allowed, best {wanted}")
    return wrong, moving, proved


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 80), marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("kind", ["trees", "linear", "network"])
def test_the_least_values_are_those_of_brute_force(kind: str, seeds: range) -> None:
    found = [compare(kind, seed) for seed in seeds]
    assert [line for wrong, _, _ in found for line in wrong] == []
    moving, proved = (sum(part[k] for part in found) for k in (1, 2))
    assert moving >= len(seeds)
    assert proved > (0.9 if kind != "network" else 0.1) * moving


@pytest.mark.parametrize("kind", ["trees", "linear"])
def test_a_search_that_stops_one_step_late_is_caught(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a broken twin of the search."""
    solve = nearest_values.WayValues.solve

    def twin(self: Any, ways: Any, *rest: Any) -> Any:
        out = solve(self, ways, *rest)
        further = np.where(out.place != ways.last, np.sign(ways.last - ways.first), 0)
        return out._replace(place=out.place + np.where(ways.first >= 0, further, 0))

    monkeypatch.setattr(nearest_values.WayValues, "solve", twin)
    assert any(compare(kind, seed)[0] for seed in range(8))


def test_values_of_an_opaque_model_are_confirmed_and_one_number_alone_is_proved() -> None:
    decision = fw.Decision(lambda rows: (rows["a"] + 2 * rows["b"]).to_numpy() / 100, positive="no")
    X = pd.DataFrame({"a": np.arange(0, 80), "b": np.arange(0, 80)[::-1]})
    explainer = fw.Explainer(decision, fw.references.supplied(decision, {"a": [0], "b": [0]}, X=X))
    less = explainer.least(explainer.explain({"a": [40, 60, 10], "b": [9, 70, 10]}))
    assert str(less[0].changes[0]) == "b had been 4 instead of 9"
    assert less[0].proof.strategy.endswith(module.PROVED)
    assert less[1].changes[0].after > 0
    assert not decision.verdicts(less.turned()).positive.any()
    assert less[2].status == fw.Status.ALREADY_NEGATIVE


def test_answers_without_numbers_and_other_directions() -> None:
    decision = fw.Decision(lambda rows: (rows["home"] == "rent").to_numpy(dtype=float), positive="no")
    X = pd.DataFrame({"home": ["own", "rent"], "age": [20, 30]})
    refs = fw.references.supplied(decision, {"home": ["own"], "age": [20]}, X=X)
    explainer = fw.Explainer(decision, refs)
    less = explainer.least(explainer.explain(X))
    assert less[1].changes[0].after == "own"
    assert less[1].proof.strategy.endswith(module.PROVED)
    plus = explainer.with_(direction="plus")
    with pytest.raises(UsageError, match="SEV"):
        plus.least(plus.explain(X))
