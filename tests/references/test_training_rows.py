"""Labels are read in one place, and those that do not fit the model are refused."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest import credibility, references
from fewest.errors import DataError, FewestWarning, UsageError
from fewest.references.training_rows import read_labels
from fewest.results import metrics
from fewest.runs import explain_files

X = pd.DataFrame({"debt": np.arange(40) % 20, "age": 20 + np.arange(40)})
BAD = X["debt"].to_numpy() >= 12
WORDS = np.where(BAD, "bad", "good")
ACCEPTED = int((~BAD).sum())


def _fitted(y: Any) -> LogisticRegression:
    return LogisticRegression(max_iter=1000).fit(X, y)


def _risk(rows: pd.DataFrame) -> np.ndarray:
    return np.asarray(rows["debt"].to_numpy() / 24)


def _leaves(decision: fw.Decision, y: Any) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=2).fit(X, WORDS)
    return references.leaves(fw.Decision(tree, positive="bad"), X, y)


def _leaf_support(decision: fw.Decision, y: Any) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=2).fit(X, WORDS)
    return credibility.leaf_support(fw.Decision(tree, positive="bad"), X, y)


def _single(decision: fw.Decision, y: Any = WORDS) -> Any:
    return references.single(decision, X, y)


FACTORIES: dict[str, Callable[[fw.Decision, Any], Any]] = {
    "single": _single,
    "clusters": lambda decision, y: references.clusters(decision, X, y, n_clusters=2),
    "near_threshold": lambda decision, y: references.near_threshold(decision, X, y, width=0.5),
    "leaves": _leaves,
    "audit": lambda decision, y: _single(decision).audit(X, y),
    "flexible": lambda decision, y: _single(decision).flexible(0.1, X=X, y=y),
    "mixture": lambda decision, y: credibility.mixture(decision, X, y, n_components=1),
    "neighbours": lambda decision, y: credibility.neighbours(decision, X, y, k=2),
    "leaf_support": _leaf_support,
    "supplied": lambda decision, y: credibility.supplied(decision, X, y, lambda rows: -rows["age"].to_numpy()),
}


@pytest.mark.parametrize("factory", FACTORIES)
def test_labels_that_are_not_classes_of_the_model_are_refused(factory: str) -> None:
    decision = fw.Decision(_fitted(WORDS), positive="bad")
    FACTORIES[factory](decision, WORDS)
    with pytest.raises(DataError, match=r"the labels 0, 1 are not classes of the model, which are 'bad', 'good'"):
        FACTORIES[factory](decision, BAD.astype(int))


@pytest.mark.parametrize("factory", sorted(set(FACTORIES) - {"leaves", "leaf_support", "audit", "flexible"}))
def test_a_model_without_classes_asks_which_label_is_the_refusal(factory: str) -> None:
    with pytest.raises(UsageError, match=r"has no classes, so the labels 'good', 'bad'") as refused:
        FACTORIES[factory](fw.Decision(_risk), WORDS)
    assert "positive=" in str(refused.value.do)
    assert "boolean" in str(refused.value.do)


@pytest.mark.parametrize("factory", FACTORIES)
def test_one_label_among_many_that_the_model_does_not_know_is_enough(factory: str) -> None:
    y = WORDS.astype(object)
    y[7] = "unknown"
    with pytest.raises(DataError, match="'unknown'"):
        FACTORIES[factory](fw.Decision(_fitted(WORDS), positive="bad"), y)


def test_a_label_that_is_missing_is_named_by_its_row() -> None:
    y = WORDS.astype(object)
    y[7] = None
    with pytest.raises(DataError, match="row 7 has no label"):
        _single(fw.Decision(_fitted(WORDS), positive="bad"), y)


@pytest.mark.parametrize(
    ("model", "positive", "y"),
    [
        (_fitted(WORDS), "bad", WORDS),
        (_fitted(WORDS), "bad", pd.Series(WORDS, index=X.index + 5).astype("category")),
        (_fitted(WORDS), "bad", ~BAD),
        (_fitted(WORDS), "bad", pd.Series(~BAD).astype("boolean")),
        (_fitted(BAD.astype(int)), None, BAD.astype(float)),
        (_fitted(BAD.astype(int)), None, BAD),  # XGBoost turns booleans into 0 and 1: they are labels, not a mask
        (_fitted(BAD), None, BAD),
        (_fitted(BAD), False, ~BAD),  # False is the refusal, and so labelled
        (_risk, None, ~BAD),
        (_risk, "bad", WORDS),
        (_risk, "bad", ~BAD),
        (_risk, True, BAD),
        (_risk, 1, BAD.astype(int)),
    ],
)
def test_labels_and_masks_name_the_same_accepted_rows(model: Any, positive: Any, y: Any) -> None:
    labels = read_labels(fw.Decision(model, positive=positive), y, X)
    assert labels.accepted.tolist() == (~BAD).tolist()
    assert (labels.refused == ~labels.accepted).all()


def test_a_mask_that_is_the_wrong_way_round_is_refused() -> None:
    for decision in (fw.Decision(_fitted(WORDS), positive="bad"), fw.Decision(_risk)):
        with pytest.raises(DataError, match=r"booleans say which rows were accepted.*100%.*0%") as refused:
            _single(decision, BAD)
        assert "~y" in str(refused.value.do)


def test_a_class_of_a_function_that_no_row_has_is_refused() -> None:
    with pytest.raises(DataError, match=r"no row is labelled 'bad'.*the labels are 0, 1"):
        _single(fw.Decision(_risk, positive="bad"), BAD.astype(int))
    with pytest.raises(DataError, match="no row is labelled 'bad'"):
        references.single(fw.Decision(_risk, positive="bad"), X[~BAD], np.zeros(ACCEPTED))


def test_a_table_of_accepted_rows_only_needs_no_refused_ones() -> None:
    for decision, label in ((fw.Decision(_risk, positive=1), 0), (fw.Decision(_fitted(WORDS), positive="bad"), "good")):
        assert references.single(decision, X[~BAD], [label] * ACCEPTED).support.tolist() == [ACCEPTED]


def test_with_against_the_accepted_rows_are_those_of_that_class() -> None:
    y = np.where(BAD, "bad", np.where(X["age"] > 40, "good", "fair"))
    labels = read_labels(fw.Decision(_fitted(y), positive="bad", against="fair"), y, X)
    assert labels.accepted.tolist() == (y == "fair").tolist()
    assert labels.refused.tolist() == BAD.tolist()


def test_a_comparison_of_models_reads_labels_like_everything_else() -> None:
    from fewest.models.training.comparison import compare

    before, after = _fitted(WORDS), _fitted(WORDS)
    with pytest.raises(DataError, match="not classes of the model"):
        compare(before, after, X, BAD.astype(int), X_train=X, y_train=WORDS, positive="bad")


def test_outcomes_of_a_model_without_classes_are_called_refused_and_accepted(tmp_path: Path) -> None:
    decision = fw.Decision(_risk)
    refs = references.single(decision, X, ~BAD)
    out = fw.Explainer(decision, refs).explain(X)
    assert "would have predicted accepted (refused: " in str(out[int(np.argmax(BAD))])
    X.to_csv(tmp_path / "cases.csv", index=False)
    run = explain_files(fw.Explainer(decision, refs), tmp_path / "cases.csv", tmp_path / "run", n_jobs=1)
    assert "would have predicted accepted (refused: " in str(run.explanation(int(np.argmax(BAD))))
    refs.save(tmp_path / "references.json")
    assert json.loads((tmp_path / "references.json").read_text())["decision"]["positive"] is None
    assert out.to_dict()["decision"]["positive"] == "refused"
    for file in [*(tmp_path / "run").rglob("*.json"), tmp_path / "references.json"]:
        assert "None" not in file.read_text(encoding="utf-8"), file.name
    assert metrics.sparsity(out).n == BAD.sum()


def _tied() -> Any:
    """A tree with a leaf of three refused and three accepted rows."""
    from sklearn.tree import DecisionTreeClassifier

    table = pd.DataFrame({"debt": [1] * 6 + [5] * 6 + [9] * 6, "age": [30, 40] * 9})
    y = np.array(["good"] * 6 + ["bad", "good"] * 3 + ["bad"] * 6)
    return DecisionTreeClassifier(max_leaf_nodes=3).fit(table[["debt"]], y), table[["debt"]], y


TIED_FACTORIES: dict[str, Callable[..., Any]] = {
    "single": references.single,
    "clusters": lambda decision, X, y: references.clusters(decision, X, y, n_clusters=1),
    "leaves": references.leaves,
}


@pytest.mark.parametrize("factory", TIED_FACTORIES)
def test_ties_that_predict_and_the_decision_call_differently_are_counted(factory: str) -> None:
    tree, table, y = _tied()
    with pytest.warns(FewestWarning, match=r"disagree on 6 of 18 training rows: their score is 0\.5, a tie") as caught:
        TIED_FACTORIES[factory](fw.Decision(tree, positive="good"), table, y)
    # What the warning says to do makes both agree.
    assert "threshold=0.500001" in str(caught[0].message)
    agreed = fw.Decision(tree, positive="good", threshold=0.500001)
    assert ((tree.predict(table) == "good") == agreed.verdicts(table).positive).all()


def test_a_threshold_that_was_chosen_and_ties_that_predict_calls_alike_raise_no_warning() -> None:
    tree, table, y = _tied()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        references.single(fw.Decision(tree, positive="bad"), table, y)  # the first class: predict calls a tie so
        references.single(fw.Decision(tree, positive="good", threshold=0.4), table, y, on_positive="allow")
        references.single(fw.Decision(tree, positive="good", kind="label"), table, y)


def test_a_model_whose_predict_goes_by_something_else_than_its_score_is_named() -> None:
    class Shifted(LogisticRegression):  # type: ignore[misc]
        def predict(self, X: Any) -> Any:
            return self.classes_[(self.predict_proba(X)[:, 1] >= 0.2).astype(int)]

    decision = fw.Decision(Shifted(max_iter=1000).fit(X, BAD.astype(int)))
    count = int(((decision.score(X) >= 0.2) & (decision.score(X) < 0.5)).sum())
    with pytest.warns(FewestWarning, match=rf'disagree on {count} of 40 training rows\n  Try: pass kind="label"'):
        references.single(decision, X, BAD.astype(int))
