"""C4.5 against Quinlan's own worked examples and a slow chooser written from the definitions."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from fewest.errors import UsageError
from fewest.models.trees import C45Classifier, Leaf, Split
from fewest.models.trees.c45 import Node, choose, information, level_tests, prune, threshold_test, upper_error

# Quinlan (1993), Table 2.1.
GOLF = pd.DataFrame(
    [
        ("sunny", 75, 70, True, "play"), ("sunny", 80, 90, True, "don't"), ("sunny", 85, 85, False, "don't"),
        ("sunny", 72, 95, False, "don't"), ("sunny", 69, 70, False, "play"), ("overcast", 72, 90, True, "play"),
        ("overcast", 83, 78, False, "play"), ("overcast", 64, 65, True, "play"), ("overcast", 81, 75, False, "play"),
        ("rain", 71, 80, True, "don't"), ("rain", 65, 70, True, "don't"), ("rain", 75, 80, False, "play"),
        ("rain", 68, 80, False, "play"), ("rain", 70, 96, False, "play"),
    ],
    columns=["outlook", "temperature", "humidity", "windy", "class"],
)  # fmt: skip
PLAY = (GOLF["class"] == "play").to_numpy()
OUTLOOK = GOLF["outlook"].map({"overcast": 0, "rain": 1, "sunny": 2}).to_numpy(dtype=float)
WINDY = GOLF["windy"].to_numpy(dtype=float)


def test_gains_and_ratios_of_the_book():
    (outlook,) = level_tests(0, OUTLOOK, PLAY, 3, 2, multiway=True)
    (windy,) = level_tests(3, WINDY, PLAY, 2, 2, multiway=True)
    assert outlook.gain == pytest.approx(0.246, abs=1e-3)
    assert outlook.split_info == pytest.approx(1.577, abs=1e-3)
    assert outlook.ratio == pytest.approx(0.156, abs=1e-3)
    assert windy.gain == pytest.approx(0.048, abs=1e-3)
    assert information([9, 5]) / 14 == pytest.approx(0.940, abs=1e-3)


def test_a_missing_value_scales_gain_and_counts_as_an_outcome_as_in_the_book():
    outlook = OUTLOOK.copy()
    outlook[5] = np.nan  # Section 3.2: overcast, 72, 90, true
    (test,) = level_tests(0, outlook, PLAY, 3, 2, multiway=True)
    assert test.gain == pytest.approx(0.199, abs=1e-3)
    assert test.split_info == pytest.approx(1.809, abs=1e-3)
    assert test.ratio == pytest.approx(0.110, abs=1e-3)


def test_the_tree_of_the_book():
    model = C45Classifier(multiway=True).fit(GOLF.drop(columns="class"), GOLF["class"])
    tree = model.tree_
    # The rows of outlook are chained, the heaviest last; 75 is a value of the whole table, between 70 and 85.
    assert model.classes_.tolist() == ["don't", "play"]
    root = tree.nested()
    assert (root.feature, root.test) == ("outlook", frozenset(["overcast"]))
    assert root.left == Leaf(True, 1.0, 0, 4)
    chained = root.right
    assert chained.feature == "outlook"
    sunny, rain = (chained.left, chained.right) if chained.test == {"sunny"} else (chained.right, chained.left)
    assert (sunny.feature, sunny.test) == ("humidity", 75.0)
    assert (sunny.left.positives, sunny.right.negatives) == (2, 3)
    assert (rain.feature, rain.test) == ("windy", frozenset([True]))
    assert (rain.left.negatives, rain.right.positives) == (2, 3)
    assert np.array_equal(model.predict(GOLF.drop(columns="class")), GOLF["class"])


def test_the_upper_limit_of_the_book():
    for errors, rows, limit in ((0, 6, 0.206), (0, 9, 0.143), (0, 1, 0.750)):
        assert upper_error(errors, rows, 0.25) == pytest.approx(limit, abs=1e-3)
    # Quinlan's program approximates where there are errors; the exact limit is next to his.
    assert upper_error(1, 16, 0.25) == pytest.approx(0.157, abs=3e-3)


def test_at_the_upper_limit_so_few_errors_have_the_given_probability():
    for rows in (1, 2, 7, 40, 1000):
        for errors in {0, rows // 3, rows // 2, rows - 1}:
            for confidence in (0.05, 0.25, 0.6):
                limit = float(upper_error(errors, rows, confidence))
                assert binom.cdf(errors, rows, limit) == pytest.approx(confidence, rel=1e-6)
        assert upper_error(rows, rows, 0.25) == 1.0


def some_test():
    (test,) = level_tests(0, np.array([0.0, 1.0, 2.0] * 4), np.array([True, False] * 6), 3, 1, multiway=True)
    return test


def test_the_subtree_of_the_book_is_pruned():
    # Section 4.2: 6, 9 and 1 cases without an error, expected errors 3.273, against 2.512 of a leaf (15, 1).
    leaves = (Node(6, 0), Node(9, 0), Node(0, 1))
    pruned = prune(Node(15, 1, some_test(), leaves), 0.25)
    assert pruned == Node(15, 1)


def test_a_subtree_that_pays_is_kept():
    leaves = (Node(60, 0), Node(0, 40))
    grown = Node(60, 40, some_test(), leaves)
    assert prune(grown, 0.25) == grown
    # The same subtree goes when the limit is drawn with more caution.
    close = Node(20, 3, some_test(), (Node(19, 1), Node(1, 2)))
    assert prune(close, 0.25) == close
    assert prune(close, 0.05) == Node(20, 3)


# -- a slow chooser, from the definitions ---------------------------------------------------------------------------


def entropy(labels):
    shares = [np.mean([label == kind for label in labels]) for kind in set(labels)]
    return -sum(share * math.log2(share) for share in shares)


def slow_tests(table, labels, kinds, min_leaf, multiway):
    """(feature, what is tested, gain, split info) of every test that C4.5 considers."""
    found = []
    n = len(labels)
    for j, levels in enumerate(kinds):
        known = [i for i in range(n) if not math.isnan(table[i][j])]
        if levels is None:
            values = sorted({table[i][j] for i in known})
            least = max(min_leaf, min(25, 0.1 * len(known) / 2))
            options = [(at, [int(table[i][j] > at) for i in known]) for at in values[:-1]]
            options = [(at, o) for at, o in options if min(o.count(0), o.count(1)) >= least]
        elif multiway:
            options = [("all", [int(table[i][j]) for i in known])]
            options = [(w, o) for w, o in options if sum(o.count(level) >= min_leaf for level in range(levels)) >= 2]
        else:
            options = [(code, [int(table[i][j] == code) for i in known]) for code in range(levels)]
            options = options[1:] if levels == 2 else options
            options = [(w, o) for w, o in options if min(o.count(0), o.count(1)) >= min_leaf]
        tests = []
        for what, outcome in options:
            after = 0.0
            for branch in set(outcome):
                inside = [labels[i] for i, o in zip(known, outcome, strict=True) if o == branch]
                after += len(inside) / len(known) * entropy(inside)
            gain = len(known) / n * (entropy([labels[i] for i in known]) - after)
            with_missing = [*outcome, *["?"] * (n - len(known))]
            tests.append((j, what, gain, entropy(with_missing)))
        if levels is None and tests:
            best = max(tests, key=lambda test: test[2])
            price = math.log2(len(tests)) / n
            tests = [(j, best[1], best[2] - price, best[3])] if best[2] - price > 1e-10 else []
        found += tests
    return found


def slow_choice(tests, worth):
    if not tests:
        return None
    average = sum(test[2] for test in tests) / len(tests)
    able = [test for test in tests if test[2] >= average - 1e-10 and test[2] > 1e-10]
    return max(able, key=worth) if able else None


def gain_ratio(test):
    return test[2] / test[3]


def plain_gain(test):
    return test[2]


def random_table(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 60))
    table = np.column_stack([
        rng.integers(0, 12, n), rng.normal(size=n), rng.integers(0, 4, n), rng.integers(0, 2, n), rng.integers(0, 7, n)
    ]).astype(float)  # fmt: skip
    labels = (table[:, 0] > 5) ^ (table[:, 2] == 1) ^ (rng.random(n) < 0.2)
    table[rng.random(table.shape) < 0.1] = np.nan
    return table, labels, [None, None, 4, 2, 7]


def fast_choice(table, labels, kinds, min_leaf, multiway):
    tests = []
    for j, levels in enumerate(kinds):
        if levels is None:
            test = threshold_test(j, table[:, j], labels, min_leaf)
            tests += [] if test is None else [test]
        else:
            tests += level_tests(j, table[:, j], labels, levels, min_leaf, multiway)
    return choose(tests)


def disagreements(worth, multiway):
    wrong = 0
    for seed in range(150):
        table, labels, kinds = random_table(seed)
        fast = fast_choice(table, labels, kinds, 2, multiway)
        slow = slow_choice(slow_tests(table.tolist(), labels.tolist(), kinds, 2, multiway), worth)
        if fast is None or slow is None:
            wrong += (fast is None) != (slow is None)
            continue
        wrong += abs(fast.ratio - slow[2] / slow[3]) > 1e-9
    return wrong


@pytest.mark.parametrize("multiway", [False, True])
def test_the_chosen_test_is_the_slow_choosers(multiway):
    assert disagreements(gain_ratio, multiway) == 0


@pytest.mark.parametrize("multiway", [False, True])
def test_the_comparison_tells_gain_ratio_from_plain_gain(multiway):
    assert disagreements(plain_gain, multiway) > 10


def test_the_price_of_a_threshold_is_charged():
    # Five cuts leave two rows on either side; the one in the middle tells the classes apart: 1 bit.
    test = threshold_test(0, np.arange(8.0), np.arange(8) >= 4, 2)
    assert (test.low, test.high) == (3.0, 4.0)
    assert test.gain == pytest.approx(1 - math.log2(5) / 8)
    assert test.split_info == pytest.approx(1)
    # What looks like a gain on noise does not pay for the choice among 57 cuts.
    rng = np.random.default_rng(0)
    assert threshold_test(0, rng.normal(size=60), rng.random(60) < 0.5, 2) is None


# -- whole trees ----------------------------------------------------------------------------------------------------


def mixed(rows=500, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "age": rng.integers(18, 80, rows),
        "income": rng.lognormal(10, 1, rows),
        "job": rng.choice(["none", "clerk", "cook", "smith"], rows),
        "owner": rng.random(rows) < 0.5,
    })  # fmt: skip
    risk = (frame["age"] < 30).astype(int) + (frame["job"] == "none") + frame["owner"] * (frame["income"] < 20_000)
    frame.loc[rng.random(rows) < 0.15, "income"] = np.nan
    frame.loc[rng.random(rows) < 0.15, "job"] = None
    return frame, (risk + rng.normal(0, 0.3, rows)).to_numpy() > 0.8


@pytest.mark.parametrize("multiway", [False, True])
def test_leaves_hold_the_rows_they_were_grown_from(multiway):
    frame, y = mixed()
    model = C45Classifier(multiway=multiway, pruning=False).fit(frame, y)
    tree = model.tree_
    assert tree.counts[tree.leaves].sum() == len(y)
    assert model.score(frame, y) > 0.85
    # `fit` counted anew through the neutral tree: the growth sent every row, missing ones too, to the same leaf.
    grown = model._grow(model.schema_.conform(frame), y)
    held = tree.counts[tree.leaves].sum(axis=1) > 0
    assert np.array_equal(grown.counts[grown.leaves][held], tree.counts[tree.leaves][held])


def test_limits_hold():
    frame, y = mixed()
    tree = C45Classifier(max_depth=3, min_samples_leaf=20, pruning=False).fit(frame, y).tree_
    assert tree.depth == 3
    assert tree.counts[tree.leaves].sum(axis=1).min() >= 20


def test_pruning_shrinks_and_less_confidence_shrinks_more():
    frame, y = mixed()
    flipped = y ^ (np.random.default_rng(1).random(len(y)) < 0.15)
    sizes = [
        C45Classifier(pruning=False).fit(frame, flipped).tree_.n_nodes,
        C45Classifier(confidence=0.25).fit(frame, flipped).tree_.n_nodes,
        C45Classifier(confidence=1e-9).fit(frame, flipped).tree_.n_nodes,
    ]
    assert sizes[0] > sizes[1] > sizes[2]


def test_thresholds_are_values_of_the_training_table():
    frame, y = mixed()
    tree = C45Classifier(pruning=False).fit(frame, y).tree_
    numbers = np.flatnonzero((tree.feature >= 0) & (tree.level_set < 0))
    assert len(numbers) > 3
    for node in numbers:
        assert tree.threshold[node] in set(frame.iloc[:, tree.feature[node]].dropna())


def test_a_multiway_test_sends_missing_and_unknown_levels_to_the_heaviest_branch():
    frame = pd.DataFrame({"job": ["a"] * 5 + ["b"] * 9 + ["c"] * 4})
    y = np.repeat([0, 1, 0], [5, 9, 4])
    model = C45Classifier(multiway=True, pruning=False).fit(frame, y)
    asked = pd.DataFrame({"job": ["a", "b", "c", None, "never seen"]})
    assert model.predict(asked).tolist() == [0, 1, 0, 1, 1]
    assert [split.feature for split in (model.tree_.nested(), model.tree_.nested().right)] == ["job", "job"]


def test_a_level_without_rows_at_a_node_is_decided_as_the_node():
    job = pd.Categorical(["a"] * 4 + ["b"] * 8 + ["c"] * 12, categories=["a", "b", "c", "d"])
    y = np.repeat([0, 1, 0], [4, 8, 12])
    model = C45Classifier(multiway=True, pruning=False).fit(pd.DataFrame({"job": job}), y)
    shares = model.predict_proba(pd.DataFrame({"job": ["a", "b", "c", "d"]}))[:, 1]
    assert shares.tolist() == [0.0, 1.0, 0.0, 8 / 24]


def test_a_binary_split_sends_missing_to_the_heavier_side():
    x = np.array([1.0] * 12 + [2.0] * 5 + [np.nan] * 3)
    y = np.array([0] * 12 + [1] * 5 + [0] * 3)
    root = C45Classifier(pruning=False).fit(x[:, None], y).tree_.nested()
    assert isinstance(root, Split)
    assert root.missing_left
    turned = C45Classifier(pruning=False).fit(-x[:, None], y).tree_.nested()
    assert not turned.missing_left


@pytest.mark.parametrize(
    "settings", [{"confidence": 0}, {"confidence": 1.5}, {"min_samples_leaf": 0}, {"max_depth": -1}]
)
def test_senseless_settings_are_refused_with_a_remedy(settings):
    frame, y = mixed(40)
    with pytest.raises(UsageError, match=next(iter(settings))) as caught:
        C45Classifier(**settings).fit(frame, y)
    assert caught.value.do
