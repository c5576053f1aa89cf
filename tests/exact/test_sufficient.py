"""`Explainer.sufficient` against brute force: every set of features, every combination of values of the others."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_models import encoder, labels
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import fewest as fw
from fewest.constraints import AtMost, Immutable
from fewest.engine import sufficient_sets
from fewest.engine.search.domains.any_values import TreeDomains, ValueSums
from fewest.errors import UsageError
from fewest.references import Anyone

MODELS = {
    "trees": [GradientBoostingClassifier(n_estimators=8, random_state=0), RandomForestClassifier(5, max_depth=3)],
    "linear": [LogisticRegression(), LogisticRegression(C=0.05)],
}
SEARCHES: dict[str, Any] = {"trees": TreeDomains, "linear": ValueSums}


def setting(kind: str, seed: int) -> tuple[fw.Decision, pd.DataFrame, Anyone]:
    random = np.random.default_rng(seed)
    n = 80
    X = pd.DataFrame({
        "level": pd.Series(random.choice(["a", "b"], n), dtype="str"), "count": random.integers(0, 5, n),
        "flag": random.random(n) < 0.5, "rate": random.integers(0, 4, n),
    })  # fmt: skip
    y = labels(random, X)
    model = MODELS[kind][seed % 2]
    decision = fw.Decision(make_pipeline(encoder(X, True), model).fit(X, y), threshold=float(random.choice([0.3, 0.5])))
    return decision, X, fw.references.anyone(decision, X, y, within=(0, 1))


def refused_with(decision: fw.Decision, references: Anyone, case: pd.DataFrame) -> np.ndarray:
    """What the model says of every combination of allowed values; the case's own value comes first on each axis."""
    names = references.schema.names
    options = [
        list(pd.concat([case[name], references.domains[j].frame[name]], ignore_index=True).unique())
        for j, name in enumerate(names)
    ]
    rows = pd.DataFrame(list(product(*options)), columns=list(names)).astype(dict(case.dtypes))
    return decision.verdicts(rows).positive.reshape([len(values) for values in options])


def suffices(refused: np.ndarray, held: tuple[int, ...]) -> bool:
    """Whether nothing that the other features may be changes the outcome."""
    return bool(refused[tuple(0 if j in held else slice(None) for j in range(refused.ndim))].all())


def compare(kind: str, seed: int) -> list[str]:
    """What differs from brute force in the refused cases among the first few."""
    decision, X, references = setting(kind, seed)
    cases, p, wrong = X.iloc[:5], len(references.schema), []
    found = fw.Explainer(decision, references, n_jobs=1).sufficient(cases)
    for k, (got, refused) in enumerate(zip(found, decision.verdicts(cases).positive, strict=True)):
        case = cases.iloc[[k]]
        if not refused:
            wrong += [] if got.kind == "accepted" else [f"{k}: {got.kind}"]
            continue
        asked = refused_with(decision, references, case)
        enough = {s for size in range(p + 1) for s in combinations(range(p), size) if suffices(asked, s)}
        held = tuple(references.schema.index(name) for name in got.features)
        needed = tuple(references.schema.names[j] for j in range(p) if all(j in s for s in enough))
        if held not in enough:
            wrong.append(f"{k}: {got.features} does not suffice")
        elif got.kind != "smallest" or len(held) != min(map(len, enough)):
            wrong.append(f"{k}: {got.kind} of {len(held)}, not {min(map(len, enough))}")
        elif got.needed != needed:
            wrong.append(f"{k}: {got.needed} are in every set, not {needed}")
    return wrong


@pytest.mark.parametrize("kind", ["trees", "linear"])
def test_the_smallest_sufficient_sets_are_those_of_brute_force(kind: str) -> None:
    assert {seed: wrong for seed in range(2) if (wrong := compare(kind, seed))} == {}


@pytest.mark.parametrize("kind", ["trees", "linear"])
def test_a_search_that_overlooks_a_feature_is_caught(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a broken twin."""
    solve = SEARCHES[kind].solve

    def twin(self: Any, asked: Any, *rest: Any) -> Any:
        return solve(self, asked._replace(may=asked.may & (np.arange(asked.may.shape[1]) != 1)), *rest)

    monkeypatch.setattr(SEARCHES[kind], "solve", twin)
    assert any(compare(kind, seed) for seed in range(3))


def test_a_search_that_is_stopped_claims_no_more_than_it_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    decision, X, references = setting("trees", 0)
    refused = X[decision.verdicts(X).positive].iloc[:1]
    monkeypatch.setattr("fewest.engine.sufficient_sets.ROUNDS", 0)
    (got,) = fw.Explainer(decision, references, n_jobs=1).sufficient(refused)
    assert got.kind == "irreducible"
    held = tuple(references.schema.index(name) for name in got.features)
    asked = refused_with(decision, references, refused)
    assert suffices(asked, held)
    assert not any(suffices(asked, tuple(set(held) - {j})) for j in held)
    assert str(got).endswith("none of them can be left out.")


def test_it_needs_all_values_and_no_limits_on_sets() -> None:
    decision, X, references = setting("linear", 0)
    with pytest.raises(UsageError, match="over all values"):
        fw.Explainer(decision, references, constraints=AtMost(2)).sufficient(X)
    single = fw.references.supplied(decision, X.iloc[:1], on_positive="allow")
    with pytest.raises(UsageError, match="over all values"):
        fw.Explainer(decision, single).sufficient(X)
    held = fw.Explainer(decision, references, constraints=Immutable(*X.columns)).sufficient(X.iloc[:5])
    assert {one.features for one in held} == {()}


def in_box(references: Anyone, case: pd.DataFrame, got: Any) -> pd.DataFrame:
    """Every row with the values held, the numbers widened in their ranges, and all else as it may be."""
    ranges = {name: (low, high) for name, low, high in got.ranges}
    options = []
    for j, name in enumerate(references.schema.names):
        everything = pd.concat([references.domains[j].frame[name], case[name]], ignore_index=True).unique().tolist()
        if name in ranges:
            low, high = ranges[name]
            everything = [value for value in everything if low <= value <= high]
        elif name in got.features:
            everything = [case[name].iloc[0]]
        options.append(everything)
    return pd.DataFrame(list(product(*options)), columns=list(references.schema.names)).astype(dict(case.dtypes))


def compare_more(kind: str, seed: int) -> tuple[list[str], int]:
    """What differs from brute force in ranges and in features of no set; and how many numbers were widened."""
    decision, X, references = setting(kind, seed)
    cases, schema, wrong, widened = X[decision.verdicts(X).positive].iloc[:2], references.schema, [], 0
    for k, got in enumerate(fw.Explainer(decision, references, n_jobs=1).sufficient(cases, widen=True, every=True)):
        case = cases.iloc[[k]]
        widened += len(got.ranges)
        if not decision.verdicts(in_box(references, case, got)).positive.all():
            wrong.append(f"{k}: {got.ranges} do not force it")
        for at, (name, low, high) in enumerate(got.ranges):
            number = references.domains[schema.index(name)].number
            for wider in [*number[number < low][-1:], *number[number > high][:1]]:
                # The other numbers that were widened before it, and those after it at the case's own value.
                other = [*got.ranges[:at], (name, min(low, wider), max(high, wider))]
                twin = replace(got, ranges=tuple(other))
                if decision.verdicts(in_box(references, case, twin)).positive.all():
                    wrong.append(f"{k}: {name} could reach {wider}")
        p, asked = len(schema), refused_with(decision, references, case)
        enough = [set(s) for size in range(p + 1) for s in combinations(range(p), size) if suffices(asked, s)]
        least = [s for s in enough if not any(other < s for other in enough)]
        never = tuple(schema.names[j] for j in range(p) if not any(j in s for s in least))
        if got.never != never:
            wrong.append(f"{k}: {got.never} are in no set, not {never}")
    return wrong, widened


@pytest.mark.parametrize("kind", ["trees", "linear"])
def test_ranges_and_features_of_no_set_are_those_of_brute_force(kind: str) -> None:
    wrong, widened = compare_more(kind, 0)
    assert wrong == []
    assert widened > 0


def test_ranges_that_are_not_proved_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a twin that widens every number to its whole domain."""
    monkeypatch.setattr(sufficient_sets, "_furthest", lambda ends, own, holds: float(ends[-1]) if len(ends) else own)
    assert any(compare_more(kind, seed)[0] for kind in MODELS for seed in range(2))


def test_a_set_that_is_not_looked_at_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a twin that takes the first sufficient set for all of them."""
    following = sufficient_sets._next

    def twin(changes: Any, enough: Any, *rest: Any) -> Any:
        return None if enough else following(changes, enough, *rest)

    monkeypatch.setattr(sufficient_sets, "_next", twin)
    assert any(compare_more(kind, seed)[0] for kind in MODELS for seed in range(4))


def test_where_sets_are_not_all_looked_at_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    decision, X, references = setting("trees", 0)
    refused = X[decision.verdicts(X).positive].iloc[:1]
    explainer = fw.Explainer(decision, references, n_jobs=1)
    assert explainer.sufficient(refused)[0].never is None
    for name in ("ROUNDS", "BRANCHES"):
        with monkeypatch.context() as patch:
            patch.setattr(sufficient_sets, name, 0)
            assert explainer.sufficient(refused, every=True)[0].never is None


def test_numbers_that_constraints_are_about_are_not_widened() -> None:
    decision, X, references = setting("linear", 0)
    refused, numbers = X[decision.verdicts(X).positive].iloc[:2], ("count", "rate")
    for rule in (fw.Only("count", "up"), fw.Range("count", 2, 3)):
        found = fw.Explainer(decision, references, constraints=rule).sufficient(refused, widen=True)
        assert all("count" not in [name for name, _, _ in one.ranges] for one in found)
    plain = fw.Explainer(decision, references).sufficient(refused, widen=True)
    assert {name for one in plain for name, _, _ in one.ranges} <= set(numbers)
    shown = next(one for one in plain if one.ranges)
    assert " to " in str(shown)
    accepted = X[~decision.verdicts(X).positive].iloc[:1]
    assert fw.Explainer(decision, references).sufficient(accepted, widen=True, every=True)[0].kind == "accepted"


def test_a_floor_of_credibility_forces_nothing() -> None:
    """What is forced is so whatever the other features are, credible or not."""
    decision, X, references = setting("trees", 0)
    refused = X[decision.verdicts(X).positive].iloc[:2]
    floor = fw.credibility.mixture(decision, X, references.decision.verdicts(X).positive, quantile=0.9)
    plain = fw.Explainer(decision, references).sufficient(refused)
    assert fw.Explainer(decision, references, credibility=floor).sufficient(refused) == plain
