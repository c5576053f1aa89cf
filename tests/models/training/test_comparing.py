"""Two models side by side: figures of hand-made models, and of trained ones."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.errors import DataError, UsageError
from fewest.models.training import Comparison, compare
from fewest.results.metrics import likelihood, sparsity

X = pd.DataFrame({"a": [1, 1, 0, 0, 1, 1], "b": [1, 0, 1, 0, 1, 1], "c": [0, 1, 0, 1, 1, 0]}, index=list("uvwxyz"))
Y = np.array([1, 1, 0, 0, 1, 0])


def either(rows: pd.DataFrame) -> np.ndarray:
    """Positive where a or b is 1: both have to go."""
    return np.where((rows["a"] + rows["b"]) >= 1, 0.9, 0.1)


def both(rows: pd.DataFrame) -> np.ndarray:
    """Positive where a and b are 1: one is enough."""
    return np.where((rows["a"] + rows["b"]) >= 2, 0.8, 0.2)


def decision_and_references(function) -> tuple[fw.Decision, fw.References]:
    decision = fw.Decision(function, positive=1)
    return decision, fw.references.supplied(decision, {"a": [0], "b": [0], "c": [0]}, X=X)


@pytest.fixture
def compared() -> Comparison:
    before, refs_before = decision_and_references(either)
    after, refs_after = decision_and_references(both)
    return compare(before, after, X, Y, refs_before, refs_after)


def test_figures_are_those_of_each_models_own_positives(compared: Comparison) -> None:
    table = compared.table
    assert list(table.columns) == ["before", "after", "difference"]
    # before: u, v, w, y, z are positive and need 2, 1, 1, 2, 2; after: u, y, z, and each needs 1.
    assert table.loc["positives"].tolist() == [5, 3, -2]
    assert table.loc["mean_sev"].tolist() == [8 / 5, 1, pytest.approx(-3 / 5)]
    assert table.loc["share_one"].tolist() == [2 / 5, 1, 3 / 5]
    assert table.loc["accuracy", ["before", "after"]].tolist() == [4 / 6, 4 / 6]
    assert table.loc["roc_auc", ["before", "after"]].tolist() == pytest.approx([2 / 3, 2 / 3])
    assert table.loc["unreachable"].tolist() == [0, 0, 0]
    assert table.loc["l_inf", "after"] == pytest.approx(1 / X["b"].std(ddof=0), rel=0.2)
    assert table.loc["log_likelihood"].isna().all()


def test_measuring_one_model_on_the_others_positives_is_caught() -> None:
    """Negative control: the authors measure some models on the rows that another decides positive."""
    before, _ = decision_and_references(either)
    after, refs = decision_and_references(both)
    rows = X[before.verdicts(X).positive]
    swapped = fw.Explainer(after, refs).explain(rows)
    counted_in = [answer.sev or 1 for answer in swapped]
    assert len(counted_in) != 3
    base = fw.Explainer(*decision_and_references(either)).explain(rows)
    assert sparsity(base).mean_sev != 1.0


def test_changed_decisions_are_listed_with_scores_and_sev(compared: Comparison) -> None:
    changed = compared.changed
    assert changed.index.tolist() == ["v", "w"]
    assert changed["before"].tolist() == ["1", "1"]
    assert changed["after"].tolist() == ["not 1", "not 1"]
    assert changed["score_before"].tolist() == [0.9, 0.9]
    assert changed["score_after"].tolist() == [0.2, 0.2]
    assert changed["sev_before"].tolist() == [1, 1]
    assert changed["sev_after"].isna().all()
    assert str(changed["sev_before"].dtype) == "Int64"


def test_the_text_is_short_and_the_dictionary_plain(compared: Comparison) -> None:
    lines = str(compared).splitlines()
    assert lines[0].split() == ["before", "after", "change"]
    assert lines[4].split() == ["mean", "SEV", "1.6", "1", "-0.6"]
    assert lines[-1] == "2 of 6 decisions changed (33.3%)"
    assert not any("likelihood" in line for line in lines)
    told = json.loads(json.dumps(compared.to_dict(), allow_nan=False))
    assert told["rows"] == 6
    assert told["figures"]["mean_sev"]["after"] == 1.0
    assert told["figures"]["log_likelihood"] == {"before": None, "after": None, "difference": None}
    assert told["changed"][0] == {"row": "v", "before": "1", "after": "not 1", "score_before": 0.9,
                                  "score_after": 0.2, "sev_before": 1, "sev_after": None}  # fmt: skip


def test_a_model_against_itself_differs_in_nothing() -> None:
    decision, refs = decision_and_references(either)
    same = compare(decision, decision, X, Y, refs, refs)
    assert (same.table["difference"].dropna() == 0).all()
    assert len(same.changed) == 0


def test_a_model_that_decides_against_nobody_has_no_sev() -> None:
    before, refs = decision_and_references(either)
    after, others = decision_and_references(lambda rows: np.full(len(rows), 0.2))
    out = compare(before, after, X, Y, refs, others)
    assert np.isnan(out.table.loc["mean_sev", "after"])
    assert out.table.loc["positives", "after"] == 0
    assert out.to_dict()["figures"]["mean_sev"]["after"] is None
    assert "-" in str(out).splitlines()[4].split()


def test_rows_that_cannot_be_turned_are_counted_and_not_averaged() -> None:
    before, refs = decision_and_references(either)
    stubborn = fw.Decision(lambda rows: np.where(rows["c"] >= 0, 0.9, 0.1), positive=1)
    others = fw.references.supplied(stubborn, {"a": [0], "b": [0], "c": [0]}, X=X, on_positive="allow")
    out = compare(before, stubborn, X, Y, refs, others)
    assert out.table.loc["unreachable", "after"] == 6
    assert np.isnan(out.table.loc["mean_sev", "after"])


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"debt": random.normal(size=300).round(2), "age": random.normal(size=300).round(2)})
    return frame, np.where(frame["debt"] - frame["age"] + random.normal(size=300) > 0.5, "bad", "good")


def test_with_training_rows_references_and_density_are_made_of_them(rows) -> None:
    frame, y = rows
    before, after = (LogisticRegression(C=c).fit(frame[:200], y[:200]) for c in (0.01, 10.0))
    out = compare(before, after, frame[200:], y[200:], X_train=frame[:200], y_train=y[:200], positive="bad")
    for name, model in (("before", before), ("after", after)):
        decision = fw.Decision(model, positive="bad")
        refs = fw.references.single(decision, frame[:200], y[:200])
        told = fw.Explainer(decision, refs).explain(frame[200:])
        density = fw.credibility.mixture(decision, frame[:200], y[:200])
        assert out.table.loc["mean_sev", name] == sparsity(told).mean_sev
        assert out.table.loc["accuracy", name] == model.score(frame[200:], y[200:])
        assert out.table.loc["log_likelihood", name] == pytest.approx(likelihood(told, density).mean)
        assert out.table.loc["l_inf", name] == pytest.approx(told.summary()["median largest change (SD)"])


def test_trained_models_bring_their_class_and_references(rows) -> None:
    pytest.importorskip("torch")
    from fewest.models.training import AllOptClassifier, Architecture

    frame, y = rows
    curves = Architecture(knots=4)
    short = {"warmup_epochs": 10, "epochs": 3, "positive": "bad", "architecture": curves, "device": "cpu"}
    plain, sparse = (AllOptClassifier(c1=c1, **short).fit(frame[:200], y[:200]) for c1 in (0.0, 5.0))
    out = compare(plain, sparse, frame[200:], y[200:])
    decision = fw.Decision(sparse, positive="bad")
    wanted = sparsity(fw.Explainer(decision, sparse.references_).explain(frame[200:]))
    assert out.table.loc["mean_sev", "after"] == wanted.mean_sev
    assert out.changed["before"].isin(["bad", "good"]).all()
    other = AllOptClassifier(c1=0.0, **{**short, "positive": "good"}).fit(frame[:200], y[:200])
    with pytest.raises(UsageError, match="not about the same class"):
        compare(other, sparse, frame[200:], y[200:])


def test_what_cannot_be_compared_is_refused(rows) -> None:
    frame, y = rows
    model = LogisticRegression().fit(frame, y)
    with pytest.raises(UsageError, match="references_before"):
        compare(model, model, frame, y)
    with pytest.raises(UsageError, match="come together"):
        compare(model, model, frame, y, X_train=frame)
    with pytest.raises(DataError, match="one label per row"):
        compare(model, model, frame, y[:3], X_train=frame, y_train=y)
    with pytest.raises(DataError, match="no rows"):
        compare(model, model, frame[:0], y[:0], X_train=frame, y_train=y)
    with pytest.raises(UsageError, match="not about the same class"):
        compare(fw.Decision(model, positive="bad"), model, frame, y, X_train=frame, y_train=y, positive="good")
    with pytest.raises(UsageError, match="is not known"):
        compare(fw.Decision(either), fw.Decision(both), X, Y, *([decision_and_references(both)[1]] * 2))
