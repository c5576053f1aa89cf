"""`references.anyone`: what its domains hold, what its answers promise, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest.errors import DataError, UsageError
from fewest.runs import verify
from fewest.runs.runner import explain_files


def people(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame({
        "debt": random.integers(0, 40, n), "income": np.round(random.normal(30, 8, n), 1),
        "age": random.integers(18, 80, n), "noise": random.integers(0, 9, n),
    })  # fmt: skip
    y = (X["debt"] - X["income"] + 0.1 * (X["age"] - 40) + random.normal(0, 3, n) > -5).astype(int)
    return X, y.to_numpy()


def boosted(columns: Any = ("debt", "income", "age")) -> tuple[fw.Decision, pd.DataFrame, np.ndarray]:
    X, y = people()
    return fw.Decision(GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X[list(columns)], y)), X, y


def test_numbers_stay_in_the_band_on_their_grid_and_levels_are_those_of_accepted_cases() -> None:
    X, y = people()
    X["home"] = np.where(y == 1, np.where(X["age"] > 40, "castle", "rent"), np.where(X["age"] > 50, "own", "rent"))
    refs = fw.references.anyone(fw.Decision(lambda rows: rows["debt"] / 40, positive=1), X, y, within=(0.1, 0.9))
    debt, income, home = (refs.domains[refs.schema.index(name)] for name in ("debt", "income", "home"))
    low, high = np.quantile(X["debt"][y == 0], [0.1, 0.9])
    assert debt.number.tolist() == list(range(int(np.ceil(low)), int(np.floor(high)) + 1))
    assert (np.diff(income.number) > 0.09).all()
    assert (np.round(income.number, 1) == income.number).all()
    assert home.frame["home"].tolist() == ["own", "rent"]


def test_a_band_of_one_value_and_a_feature_without_values_are_domains() -> None:
    X, y = people()
    decision = fw.Decision(LogisticRegression(max_iter=1000).fit(X, y))
    refs = fw.references.anyone(decision, X, y, within=(0.5, 0.5))
    assert [len(domain) for domain in refs.domains] == [1, 1, 1, 1]
    empty = X.assign(age=np.where(y == 1, X["age"], np.nan))
    function = fw.Decision(lambda rows: rows["debt"] / 40, positive=1)
    assert len(fw.references.anyone(function, empty, y).domains[2]) == 0
    with pytest.raises(DataError, match="no value in any feature"):
        fw.references.anyone(function, empty[["age"]].assign(debt=np.nan)[["age", "debt"]], y)


@pytest.mark.parametrize("within", [(0.9, 0.1), (-0.1, 0.5), (0.5,), 0.5, (np.nan, 1), "all"])
def test_a_band_that_is_none_is_refused(within: Any) -> None:
    X, y = people()
    with pytest.raises(UsageError, match="within is"):
        fw.references.anyone(fw.Decision(lambda rows: rows["debt"] / 40, positive=1), X, y, within=within)


def test_constraints_that_leave_nothing_make_every_case_not_possible() -> None:
    decision, X, y = boosted()
    refs = fw.references.anyone(decision, X[["debt", "income", "age"]], y)
    held = fw.Explainer(decision, refs, constraints=fw.Immutable("debt", "income", "age")).explain(X)
    assert held.counts()["UNREACHABLE"] > 0 == held.counts()["EXPLAINED"]
    assert str(held[int(np.argmax(held.answers.proved))]).startswith("Not possible")
    both = [fw.Only("debt", "up"), fw.Only("debt", "down"), fw.Immutable("income", "age")]
    assert fw.Explainer(decision, refs, constraints=both).explain(X).counts()["EXPLAINED"] == 0
    outside = [fw.Range("debt", 1000, 2000), fw.Immutable("income", "age")]
    assert fw.Explainer(decision, refs, constraints=outside).explain(X).counts()["EXPLAINED"] == 0


def test_a_level_that_no_accepted_case_has_is_not_offered() -> None:
    X, y = people()
    X["home"] = pd.Series(np.where(y == 1, "castle", "rent"), dtype="str")
    model = fw.Decision(lambda rows: (rows["home"] == "castle") * 0.9, positive=1)
    assert fw.references.anyone(model, X, y).domains[4].frame["home"].tolist() == ["rent"]


def test_a_feature_the_model_ignores_never_changes() -> None:
    decision, X, y = boosted()
    out = fw.Explainer(decision, fw.references.anyone(decision, X, y)).explain(X)
    assert out.counts()["EXPLAINED"] > 0
    assert not out.answers.moved[:, 3].any()


def test_missing_values_are_left_behind_and_never_taken() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y = people()
    X["debt"] = X["debt"].where(np.arange(len(X)) % 7 > 0)
    decision = fw.Decision(HistGradientBoostingClassifier(max_iter=10).fit(X, y))
    out = fw.Explainer(decision, fw.references.anyone(decision, X, y)).explain(X)
    assert not out.turned()[out.answers.moved[:, 0]]["debt"].isna().any()
    done = out.answers.status == 0
    assert not decision.verdicts(out.turned()[done]).positive.any()
    up = fw.Explainer(decision, fw.references.anyone(decision, X, y), constraints=fw.Only("debt", "up")).explain(X)
    assert not up.answers.moved[X["debt"].isna().to_numpy(), 0].any()


@pytest.mark.parametrize("seed", range(3))
def test_the_single_tree_has_the_numbers_of_the_leaves(seed: int) -> None:
    X, y = people(300, seed)
    decision = fw.Decision(DecisionTreeClassifier(max_depth=4, random_state=seed).fit(X, y), threshold=0.5001)
    accepted = np.zeros(len(X), dtype=int)  # every value that occurs
    anyone = fw.Explainer(decision, fw.references.anyone(decision, X, accepted, within=(0, 1))).explain(X)
    leaves = fw.Explainer(decision, fw.references.leaves(decision, X, y)).explain(X)
    assert anyone.answers.status.tolist() == leaves.answers.status.tolist()
    assert anyone.sev.dropna().tolist() == leaves.sev.dropna().tolist()


@pytest.mark.parametrize("kind", ["tree", "linear"])
def test_anyone_never_needs_more_features_than_references_with_values_in_its_domains(kind: str) -> None:
    X, y = people(300)
    model: Any = GradientBoostingClassifier(n_estimators=30, random_state=0)
    decision = fw.Decision((model if kind == "tree" else LogisticRegression(max_iter=1000)).fit(X, y))
    anyone = fw.Explainer(decision, fw.references.anyone(decision, X, y, within=(0, 1))).explain(X)
    for refs in (
        fw.references.single(decision, X, y, centre="median", on_positive="allow"),
        fw.references.clusters(decision, X, y, n_clusters=3, random_state=0),
        fw.references.accepted(decision, X, y),
    ):
        out = fw.Explainer(decision, refs.with_assignment("sparsest")).explain(X)
        done = np.flatnonzero(out.answers.status == 0)
        assert (anyone.answers.status[done] == 0).all()
        assert (anyone.answers.cost[done] <= out.answers.cost[done]).all()


def test_answers_are_tables_json_and_sentences(tmp_path: Path) -> None:
    decision, X, y = boosted()
    out = fw.Explainer(decision, fw.references.anyone(decision, X, y)).explain(X, alternatives=3)
    table, content = out.to_frame(), json.loads(out.to_json(tmp_path / "out.json"))
    row = int(np.flatnonzero(out.answers.status == 0)[0])
    first = content["answers"][row]
    assert first["reference"] == table["reference"].iloc[row] == "any accepted values"
    assert [change["to"] for change in first["changes"]] == table["to"].iloc[row]
    assert first["alternatives"][0] == first["changes"]
    for answer in out:
        for changes in answer.alternatives:
            changed = X.iloc[[answer.row]].assign(**{change.feature: change.after for change in changes})
            assert not decision.verdicts(changed).positive[0]
    assert fw.reporting.html(out).startswith("<!doctype html>")


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    decision, X, y = boosted()
    with pytest.raises(UsageError, match="values of its own"):
        fw.references.anyone(decision, X, y).save(tmp_path / "refs.json")


def test_run_folders_hold_the_answers_with_their_values_however_they_are_cut(tmp_path: Path) -> None:
    decision, X, y = boosted()
    explainer = fw.Explainer(decision, fw.references.anyone(decision, X, y), n_jobs=1)
    X.to_csv(tmp_path / "cases.csv", index=False)
    out = explainer.explain(X, alternatives=2)
    for chunk in (None, 7):
        run = explain_files(
            explainer, tmp_path / "cases.csv", tmp_path / f"run{chunk}", n_jobs=1, part_rows=60, chunk_rows=chunk,
            alternatives=2,
        )  # fmt: skip
        table = run.table()
        assert table["status"].tolist() == out.to_frame()["status"].tolist()
        assert table["to"].tolist() == [[change.after for change in answer.changes] for answer in out]
        report = verify(run.path, tmp_path / "cases.csv", decision, sample=len(X))
        assert report.ok, str(report)
        assert report.share > 0.9
    files = [{file.name: file.read_bytes() for file in (tmp_path / f"run{chunk}").iterdir()} for chunk in (None, 7)]
    assert files[0] == files[1]


@pytest.mark.parametrize("choice", [
    {"direction": "plus"}, {"constraints": fw.Linked("debt", "age")}, {"constraints": fw.Implies("debt", "age")},
])  # fmt: skip
def test_choices_that_need_a_reference_point_are_refused(choice: dict[str, Any]) -> None:
    decision, X, y = boosted()
    with pytest.raises(UsageError):
        fw.Explainer(decision, fw.references.anyone(decision, X, y), **choice).explain(X)


def test_few_nodes_and_no_time_stop_early_with_a_bound() -> None:
    decision, X, y = boosted()
    refs = fw.references.anyone(decision, X, y)
    whole = fw.Explainer(decision, refs).explain(X)
    for out in (
        fw.Explainer(decision, refs, max_nodes=3).explain(X),
        fw.Explainer(decision, refs).explain(X, time_limit=0),
    ):
        assert out.counts()["BUDGET"] > 0
        cut = out.answers.status == 4
        assert (out.answers.lower[cut] >= 1).all()
        assert (out.answers.lower[cut] <= whole.answers.cost[cut]).all()
