"""CART: the neutral tree decides every double as scikit-learn's tree does."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from fewest.models.trees import CARTClassifier, Split
from fewest.models.trees.cart import largest_left
from fewest.models.trees.tree import WideColumns, encode_all


def mixed(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "age": rng.integers(18, 80, rows),
        "income": rng.lognormal(10, 1, rows),
        "rate": rng.uniform(0, 1e-3, rows),
        "job": rng.choice(["none", "clerk", "cook", "smith"], rows),
        "owner": rng.random(rows) < 0.5,
    })  # fmt: skip
    risk = (frame["age"] < 30) + (frame["job"] == "none") + (frame["rate"] > 5e-4) * (frame["income"] < 30_000)
    y = np.where(risk + rng.normal(0, 0.5, rows) > 0.8, "bad", "ok")
    frame.loc[rng.random(rows) < 0.2, "income"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "job"] = None
    return frame, y


def same(ours, theirs):
    """Whether shares of two trees are those of the same leaves; they are rounded in different ways."""
    return np.allclose(ours, theirs, rtol=0, atol=1e-12)


def sklearn_tree(model, frame, y, **settings):
    """scikit-learn's own tree on the same wide table."""
    table = WideColumns.of(model.schema_).spread(encode_all(model.schema_, frame))
    return DecisionTreeClassifier(random_state=0, **settings).fit(table, y)


def wide(model, frame):
    return WideColumns.of(model.schema_).spread(encode_all(model.schema_, frame))


def edges(tree):
    """Doubles at, beside and around each threshold, and those float32 rounds to either side of it."""
    at = tree.threshold[tree.children_left >= 0]
    single = at.astype(np.float32)
    above, below = np.nextafter(single, np.float32(np.inf)), np.nextafter(single, np.float32(-np.inf))
    middles = [(single.astype(float) + other.astype(float)) / 2 for other in (above, below)]
    spots = np.concatenate([at, single, above, below, *middles]).astype(float)
    return np.concatenate([spots, np.nextafter(spots, np.inf), np.nextafter(spots, -np.inf)])


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("depth", [1, 4, None])
def test_predictions_equal_scikit_learns(criterion, depth):
    frame, y = mixed()
    model = CARTClassifier(criterion=criterion, max_depth=depth).fit(frame, y)
    theirs = sklearn_tree(model, frame, y, criterion=criterion, max_depth=depth)
    later, _ = mixed(seed=1)
    for rows in (frame, later):
        assert same(model.predict_proba(rows), theirs.predict_proba(wide(model, rows)))
        sure = model.predict_proba(rows)[:, 0] != 0.5
        assert np.array_equal(model.predict(rows)[sure], theirs.predict(wide(model, rows))[sure])
    assert model.tree_.depth == theirs.get_depth()
    assert len(model.tree_.leaves) == theirs.get_n_leaves()


def test_values_at_the_threshold_are_decided_as_scikit_learn_decides_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1)) * np.where(rng.random((400, 1)) < 0.5, 1e-3, 1e3)
    y = rng.random(400) < 0.5
    model = CARTClassifier(max_depth=6).fit(X, y)
    theirs = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y)
    rows = edges(theirs.tree_)[:, None]
    assert len(rows) > 100
    expected = theirs.predict_proba(rows)
    assert same(model.predict_proba(rows), expected)

    # A tree that takes scikit-learn's thresholds as they are is caught by these rows.
    inner = model.tree_.feature >= 0
    kept = model.tree_.threshold.copy()
    model.tree_.threshold[inner] = theirs.tree_.threshold[inner]
    assert not same(model.predict_proba(rows), expected)
    model.tree_.threshold[:] = kept
    assert same(model.predict_proba(rows), expected)


@given(st.floats(-1e30, 1e30))
def test_the_largest_double_that_goes_left_is_the_largest(threshold):
    number = largest_left(threshold)
    assert np.float64(np.float32(number)) <= threshold
    assert np.float64(np.float32(np.nextafter(number, np.inf))) > threshold


def test_missing_numbers_go_where_scikit_learn_sends_them():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 3))
    y = X[:, 0] > 0
    X[y & (rng.random(500) < 0.6), 0] = np.nan
    X[rng.random(500) < 0.2, 1] = np.nan
    model = CARTClassifier().fit(X, y)
    theirs = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    rows = rng.normal(size=(500, 3))
    rows[rng.random((500, 3)) < 0.4] = np.nan
    assert same(model.predict_proba(rows), theirs.predict_proba(rows))
    model.tree_.missing_left[:] = ~model.tree_.missing_left
    assert not same(model.predict_proba(rows), theirs.predict_proba(rows))


def test_a_one_hot_split_is_a_test_of_one_level():
    frame = pd.DataFrame({"job": ["a", "b", "c", "a", "b", "c"]})
    model = CARTClassifier(max_depth=1).fit(frame, [0, 1, 0, 0, 1, 0])
    root = model.tree_.nested()
    assert isinstance(root, Split)
    assert (root.feature, root.test, root.missing_left, root.unknown_left) == ("job", frozenset(["b"]), False, False)
    assert model.predict(pd.DataFrame({"job": ["b", "never seen", None]})).tolist() == [1, 0, 0]


def test_settings_reach_scikit_learn():
    frame, y = mixed()
    assert CARTClassifier(max_depth=2).fit(frame, y).tree_.depth == 2
    counts = CARTClassifier(max_depth=None, min_samples_leaf=40).fit(frame, y).tree_
    assert counts.counts[counts.leaves].sum(axis=1).min() >= 40
    small = CARTClassifier(max_depth=None, ccp_alpha=0.01).fit(frame, y).tree_
    assert small.n_nodes < CARTClassifier(max_depth=None).fit(frame, y).tree_.n_nodes
