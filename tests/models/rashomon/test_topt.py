"""TOpt returns the tree of the set whose decisions on the training rows need the fewest features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import fewest as fw
from fewest.datasets import load
from fewest.errors import ModelError, UsageError
from fewest.models.rashomon import TOptClassifier, rashomon_set
from fewest.models.rashomon.topt import choose, front
from fewest.models.trees.reach import Reach


@pytest.mark.slow
@parametrize_with_checks([TOptClassifier()])
def test_scikit_learns_checks_pass(estimator, check):
    assert check(estimator) is None


@pytest.fixture(scope="module")
def german():
    data = load("german")
    return data.X, data.y


@pytest.fixture(scope="module")
def fitted(german):
    return TOptClassifier(regularization=0.012, bound=0.04, max_depth=3).fit(*german)


def mean_sev_t(tree, frame):
    denied = frame[tree.decide(frame)]
    if len(denied) == 0:
        return np.nan
    cost = Reach.build(tree).search(tree.encode(denied))[1]
    return cost.mean() if np.isfinite(cost).all() else np.nan


def test_no_tree_of_the_set_has_a_smaller_mean_sev_t_on_the_training_rows(german, fitted):
    frame, y = fitted.schema_.conform(german[0]), german[1] == 1
    trees = rashomon_set(fitted.columns_, frame, y, regularization=0.012, bound=0.04, max_depth=3)
    rows = []
    for member in trees:
        tree = member.tree
        rows.append((mean_sev_t(tree, frame), -np.mean(tree.decide(frame) == y), member.leaves))
    best = min(row for row in rows if not np.isnan(row[0]))
    chosen = fitted.tree_
    own = mean_sev_t(chosen, frame), -np.mean(chosen.decide(frame) == y), len(chosen.leaves)
    assert own == pytest.approx(best)
    assert fitted.n_trees_ == len(trees) > 100
    assert fitted.leaf_range_ == trees.leaf_range
    assert fitted.objective_ == pytest.approx(1 + own[1] + 0.012 * own[2])
    assert max(row[0] for row in rows if not np.isnan(row[0])) > best[0]


def test_leaves_carry_the_share_and_number_of_training_rows(german, fitted):
    tree, y = fitted.tree_, german[1]
    frame = fitted.schema_.conform(german[0])
    leaf = tree.apply(tree.encode(frame))
    for node in tree.leaves:
        assert tree.counts[node].tolist() == np.bincount(y[leaf == node], minlength=2).tolist()
        assert tree.score[node] == pytest.approx(y[leaf == node].mean())
    assert np.allclose(fitted.predict_proba(german[0])[:, 1], tree.score[leaf])


def test_the_front_lists_every_outcome_once(fitted):
    table = fitted.front_
    assert table["trees"].sum() == fitted.n_trees_
    assert not table.duplicated(["mean_sev_t", "accuracy", "leaves"]).any()
    assert table["chosen"].sum() == 1
    assert table["chosen"].iloc[0]
    assert table["pareto"].iloc[0]
    outcomes = table[["mean_sev_t", "accuracy", "leaves"]].to_numpy() * [1, -1, 1]
    for row, pareto in zip(outcomes, table["pareto"], strict=True):
        beaten = ((outcomes <= row).all(axis=1) & (outcomes < row).any(axis=1)).any()
        assert pareto == (not beaten and not np.isnan(row[0]))


def test_a_tolerance_keeps_trees_that_are_about_as_accurate_as_the_best(german, fitted):
    strict = clone(fitted).set_params(tolerance=0.0).fit(*german)
    scored = strict.front_.dropna()
    assert scored["accuracy"][scored["chosen"]].item() == scored["accuracy"].max()
    assert strict.front_.drop(columns="chosen").equals(fitted.front_.drop(columns="chosen"))
    with pytest.raises(UsageError, match="tolerance"):
        clone(fitted).set_params(tolerance=-1).fit(*german)


def test_ties_go_to_accuracy_then_to_fewer_leaves_then_to_the_first():
    scores = pd.DataFrame({"accuracy": [0.7, 0.8, 0.8, 0.8], "leaves": [2, 4, 3, 3], "mean_sev_t": [1.0] * 4})
    assert choose(scores) == 2
    assert front(scores, 2)["chosen"].tolist() == [True, False, False]


def test_a_tree_that_denies_nobody_is_not_chosen_where_another_denies_somebody():
    scores = pd.DataFrame({"accuracy": [0.9, 0.7], "leaves": [1, 4], "mean_sev_t": [np.nan, 2.5]})
    assert choose(scores) == choose(scores, tolerance=0.01) == 1
    assert choose(scores.iloc[:1]) == 0


def test_without_anything_to_split_on_there_is_one_leaf():
    model = TOptClassifier().fit(pd.DataFrame({"age": [30, 30, 30]}), [0, 1, 0])
    assert (model.n_trees_, model.leaf_range_, model.tree_.n_nodes) == (1, (1, 1), 1)
    assert model.predict(pd.DataFrame({"age": [30]})).tolist() == [0]


def test_what_is_going_on_is_told_where_asked(german, capfd):
    TOptClassifier(regularization=0.05, max_depth=2, verbose=True).fit(*german)
    said = capfd.readouterr()
    assert said.out == ""
    assert "trees" in said.err


def test_a_set_beyond_the_limit_is_refused(german):
    with pytest.raises(ModelError, match="more than max_trees = 5"):
        TOptClassifier(max_trees=5).fit(*german)


def test_the_class_that_is_named_has_the_fewest_reasons(german):
    """The same tree is chosen as where that class is the second one, and it explains and predicts the same."""
    X, y = german
    words = np.array(["good", "bad"])[y]  # in order, "bad" comes first
    settings = {"regularization": 0.02, "bound": 0.04, "max_depth": 3}
    named, second = TOptClassifier(**settings, positive="bad").fit(X, words), TOptClassifier(**settings).fit(X, y)
    assert (named.positive_, second.positive_) == ("bad", 1)
    assert named.classes_.tolist() == ["bad", "good"]
    assert (named.predict(X) == "bad").tolist() == (second.predict(X) == 1).tolist()
    assert np.allclose(named.predict_proba(X)[:, 0], second.predict_proba(X)[:, 1])
    pd.testing.assert_frame_equal(named.front_, second.front_)
    for model, positive in ((named, "bad"), (second, 1)):
        decision = fw.Decision(model, positive=positive)
        out = fw.Explainer(decision, fw.references.leaves(decision, X, words if model is named else y)).explain(X)
        assert out.summary()["mean SEV"] == pytest.approx(
            model.front_.loc[model.front_["chosen"], "mean_sev_t"].iloc[0]
        )
    other = TOptClassifier(**settings).fit(X, words)
    assert other.positive_ == "good"
    assert other.front_["mean_sev_t"].tolist() != named.front_["mean_sev_t"].tolist()


def test_a_class_that_no_row_has_is_refused(german):
    with pytest.raises(UsageError, match="no row is labelled 'worse'"):
        TOptClassifier(positive="worse").fit(german[0][:50], np.array(["good", "bad"])[german[1][:50]])
