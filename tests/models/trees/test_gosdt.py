"""GOSDT: what it returns is optimal, by exhaustive search; its trees are read into the neutral tree."""

import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from slow_cases import mostly_slow

from fewest.errors import MissingExtraError, ModelError, TimeLimitError, UsageError
from fewest.models.trees import BinaryColumns, CARTClassifier, GOSDTClassifier, Leaf, Split, Tree
from fewest.models.trees.estimator import recount
from fewest.models.trees.gosdt import from_json
from fewest.tables.schema import Schema


def least_objective(bits, positive, price):
    """Least training error + price x leaves of any tree on binary columns, by trying all of them."""
    n = len(positive)

    @cache
    def least(rows):
        hits = sum(bool(positive[i]) for i in rows)
        best = min(hits, len(rows) - hits) / n + price
        for column in range(bits.shape[1]):
            ones = frozenset(i for i in rows if bits[i, column])
            if 0 < len(ones) < len(rows):
                best = min(best, least(ones) + least(rows - ones))
        return best

    return least(frozenset(range(n)))


def objective(model, frame, positive, price):
    return float(np.mean(model.predict(frame) != positive)) + price * len(model.tree_.leaves)


def tiny(seed, columns=4, rows=40):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (rows, columns))
    positive = (bits[:, 0] ^ bits[:, 1]).astype(bool) ^ (rng.random(rows) < 0.15)
    return bits, positive


@pytest.mark.parametrize("seed", mostly_slow(range(6), (0,)))
@pytest.mark.parametrize("price", [0.03, 0.08])
def test_the_tree_is_optimal_on_the_tests_it_was_offered(seed, price):
    pytest.importorskip("gosdt")
    bits, positive = tiny(seed)
    frame = pd.DataFrame(bits, columns=[f"b{j}" for j in range(bits.shape[1])])
    model = GOSDTClassifier(regularization=price, guess_estimators=300).fit(frame, positive)
    offered = model.columns_.transform(frame)
    assert offered.shape[1] >= 1
    assert objective(model, frame, positive, price) == pytest.approx(
        least_objective(offered, positive, price), abs=1e-6
    )


def test_the_comparison_catches_a_greedy_tree():
    bits, positive = tiny(0)
    frame = pd.DataFrame(bits, columns=[f"b{j}" for j in range(bits.shape[1])])
    greedy = CARTClassifier(max_depth=None).fit(frame, positive)
    assert objective(greedy, frame, positive, 0.03) > least_objective(bits, positive, 0.03) + 1e-3


def test_a_largest_depth_holds():
    pytest.importorskip("gosdt")
    bits, positive = tiny(1, rows=200)
    frame = pd.DataFrame(bits, columns=list("abcd"))
    for budget in (0, 1, 2):
        model = GOSDTClassifier(regularization=0.01, max_depth=budget, guess_estimators=300).fit(frame, positive)
        assert model.tree_.depth <= budget


def test_mixed_tables_with_missing_values_are_fitted():
    pytest.importorskip("gosdt")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 300).astype(float), "job": rng.choice(["a", "b", "c"], 300)})
    y = np.where((frame["age"] < 35) | (frame["job"] == "b"), "bad", "ok")
    frame.loc[rng.random(300) < 0.05, "age"] = np.nan
    frame.loc[rng.random(300) < 0.05, "job"] = None
    model = GOSDTClassifier(regularization=0.01).fit(frame, y)
    assert model.score(frame, y) > 0.93
    assert len(model.tree_.leaves) <= 5


def test_nothing_is_printed(capfd):
    pytest.importorskip("gosdt")
    bits, positive = tiny(2)
    # Less than one over the rows: the package warns on the terminal.
    GOSDTClassifier(regularization=1e-4).fit(bits, positive)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    print("heard again")
    assert capfd.readouterr().out == "heard again\n"


def test_a_time_out_says_what_to_turn():
    pytest.importorskip("gosdt")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 30)), rng.random(800) < 0.5
    with pytest.raises(TimeLimitError, match=r"time_limit=1 .*regularization=0.001") as caught:
        GOSDTClassifier(regularization=1e-3, time_limit=1).fit(X, y)
    assert "max_depth" in caught.value.do


@pytest.mark.parametrize(
    ("status", "said"), [("TIMEOUT", "time_limit"), ("NON_CONVERGENCE", "NON_CONVERGENCE"), (None, "found no tree")]
)
def test_a_search_that_ends_without_proof_is_an_error(monkeypatch, status, said):
    def fit(X, y):
        if status is None:
            raise RuntimeError("no model was found")

    search = SimpleNamespace(fit=fit, result_=SimpleNamespace(status=SimpleNamespace(name=status)))
    monkeypatch.setattr(GOSDTClassifier, "_search", lambda self: search)
    with pytest.raises(TimeLimitError if status == "TIMEOUT" else ModelError, match=said):
        GOSDTClassifier().fit(*tiny(0))


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gosdt", None)
    with pytest.raises(MissingExtraError, match=r"needs gosdt\n.*fewest\[trees\]"):
        GOSDTClassifier().fit(*tiny(0))


@pytest.mark.parametrize("settings", [{"regularization": 0}, {"max_depth": -1}])
def test_senseless_settings_are_refused_with_a_remedy(settings):
    with pytest.raises(UsageError, match=next(iter(settings))) as caught:
        GOSDTClassifier(**settings).fit(*tiny(0))
    assert caught.value.do


def test_a_table_nothing_splits_gives_one_leaf():
    pytest.importorskip("gosdt")
    model = GOSDTClassifier().fit(pd.DataFrame({"same": [1, 1, 1, 1]}), [0, 0, 0, 1])
    assert model.tree_.nested() == Leaf(False, 0.25, 3, 1)


# -- reading trees ---------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame({"age": [20, 40, 60], "job": ["none", "clerk", "clerk"]})
COLUMNS = BinaryColumns(Schema.infer(FRAME), np.array([0, 1], np.int32), np.array([30.5, np.nan]), (None, "clerk"))


def test_both_libraries_json_is_read():
    read = Split("job", frozenset(["clerk"]), Split("age", 30.5, Leaf(True), Leaf(False)), Leaf(True))
    gosdt = {
        "feature": 1,
        "true": {
            "feature": 0,
            "true": {"prediction": 1, "loss": 0.0, "complexity": 0.02},
            "false": {"prediction": 0, "loss": 0.1, "complexity": 0.02},
        },
        "false": {"prediction": 1, "loss": 0.0, "complexity": 0.02},
    }
    farms = {
        "feature": 1,
        "relation": "==",
        "reference": "true",
        "true": {
            "feature": 0,
            "relation": "==",
            "reference": "true",
            "true": {"prediction": 1, "name": "Prediction"},
            "false": {"prediction": 0, "name": "Prediction"},
        },
        "false": {"prediction": 1, "name": "Prediction"},
    }
    assert from_json(COLUMNS, gosdt) == read
    assert from_json(COLUMNS, farms) == read


def test_a_tree_over_other_columns_is_refused():
    leaf = {"prediction": 0}
    with pytest.raises(ModelError, match=">= 3"):
        from_json(COLUMNS, {"feature": 0, "relation": ">=", "reference": 3, "true": leaf, "false": leaf})


def test_recounting_fills_leaves_and_keeps_empty_ones():
    root = Split("age", 50, Split("job", frozenset(["none"]), Leaf(False), Leaf(False)), Leaf(True, 0.7))
    tree = recount(Tree.build(COLUMNS.schema, root), FRAME.iloc[[0, 0, 1]], np.array([True, False, False]))
    left = tree.nested().left
    assert left.left == Leaf(True, 0.5, 1, 1)
    assert left.right == Leaf(False, 0.0, 1, 0)
    assert tree.nested().right == Leaf(True, 0.7, 0, 0)
