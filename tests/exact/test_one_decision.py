"""An explainer has one decision: what is searched, shown, counted and verified is decided by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest import checks
from fewest.errors import FewestError, PositiveReferenceError
from fewest.runs import explain_files, verify


def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)).round(2), columns=list("abcd"))
    return X, (X.sum(axis=1) + rng.normal(size=300) > 0).to_numpy()


def test_a_new_threshold_is_the_one_that_is_shown_and_measured_from() -> None:
    X, y = table()
    model = LogisticRegression().fit(X, y)
    old = fw.Decision(model, positive=True)
    explainer = fw.Explainer(old, fw.references.single(old, X, y))
    new = fw.Decision(model, positive=True, threshold=0.7)
    out = explainer.with_(decision=new).explain(X)
    answer = next(answer for answer in out if answer.changes)
    assert answer.threshold == 0.7
    assert answer.margin == pytest.approx(0.7 - answer.score_after)
    assert out.to_dict()["decision"]["threshold"] == 0.7
    assert out.references.decision is new


def test_another_model_and_class_name_the_outcomes_and_are_asked_by_the_checks() -> None:
    X, y = table()
    old = fw.Decision(LogisticRegression().fit(X, np.where(y, "bad", "good")), positive="bad")
    refs = fw.references.single(old, X, np.where(y, "bad", "good"))
    new = fw.Decision(LogisticRegression(C=0.01).fit(X, np.where(y, "refuse", "grant")), positive="refuse")
    explainer = fw.Explainer(old, refs).with_(decision=new)
    out = explainer.explain(X)
    assert any("predicted grant (refuse:" in str(answer) for answer in out)
    checks.check_turns(out)


def test_a_run_with_another_decision_is_verified_with_it(tmp_path: Path) -> None:
    X, y = table()
    X.to_csv(tmp_path / "cases.csv", index=False)
    model = LogisticRegression().fit(X, y)
    old = fw.Decision(model, positive=True)
    new = fw.Decision(model, positive=True, threshold=0.6)
    explainer = fw.Explainer(old, fw.references.single(old, X, y)).with_(decision=new)
    run = explain_files(explainer, tmp_path / "cases.csv", tmp_path / "run", n_jobs=1)
    assert json.loads((run.path / "manifest.json").read_text())["settings"]["threshold"] == 0.6
    assert verify(run.path, tmp_path / "cases.csv", new).ok


def test_references_that_the_new_decision_refuses_are_refused() -> None:
    X, y = table()
    model = LogisticRegression().fit(X, y)
    old = fw.Decision(model, positive=True)
    refs = fw.references.single(old, X, y)
    strict = fw.Decision(model, positive=True, threshold=float(refs.score[0]) / 2)
    with pytest.raises(PositiveReferenceError, match="made for another decision"):
        fw.Explainer(old, refs).with_(decision=strict)


@pytest.mark.parametrize("change", [{"threshold": 0.9}, {"positive": False}])
def test_leaves_of_another_decision_are_refused(change: dict[str, Any]) -> None:
    X, y = table()
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    old = fw.Decision(model, positive=True)
    leaves = fw.references.leaves(old, X, y)
    fw.Explainer(fw.Decision(model, positive=True), leaves).explain(X.iloc[:5])
    with pytest.raises(FewestError, match="another decision"):
        fw.Explainer(fw.Decision(model, **{"positive": True, **change}), leaves)


def test_a_tree_that_was_read_is_compared_with_the_model_on_every_case() -> None:
    X, y = table()
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    decision = fw.Decision(model, positive=True)
    leaves = fw.references.leaves(decision, X, y)
    honest = model.predict_proba
    model.predict_proba = lambda rows: np.where(np.asarray(rows)[:, :1] > 50, [[0.0, 1.0]], honest(rows))
    far = X.assign(a=np.where(np.arange(len(X)) == 250, 99.0, X["a"]), b=-9.0, c=-9.0, d=-9.0)
    with pytest.raises(FewestError, match="decides case 250 otherwise"):
        fw.Explainer(decision, leaves).explain(far)
