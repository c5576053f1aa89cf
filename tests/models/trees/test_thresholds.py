"""Guessed thresholds: tests that lie between training values, read off boosted stumps."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier

from fewest.errors import DataError
from fewest.models.trees import BinaryColumns, Leaf, Split, Tree, guess_thresholds
from fewest.models.trees.thresholds import _backselect, simple_between
from fewest.tables.schema import Schema

SETTINGS = {"n_estimators": 50, "max_depth": 1, "learning_rate": 0.1, "random_state": 0}


def mixed(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "age": rng.integers(18, 80, rows),
        "income": np.round(rng.lognormal(10, 1, rows), 2),
        "job": rng.choice(["none", "clerk", "cook"], rows),
        "owner": rng.random(rows) < 0.5,
        "sex": pd.Series(rng.choice(["f", "m"], rows)),
    })  # fmt: skip
    risk = (frame["age"] < 30).astype(int) + (frame["job"] == "none") + frame["owner"] * (frame["income"] < 30_000)
    frame.loc[rng.random(rows) < 0.1, "income"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "job"] = None
    return frame, (risk + rng.normal(0, 0.3, rows)).to_numpy() > 0.8


def decimals(number):
    return max(-int(Decimal(repr(number)).normalize().as_tuple().exponent), 0)


@pytest.mark.parametrize(
    ("low", "high", "number"),
    [
        (30, 31, 30.5),
        (20, 40, 30),
        (-5, 5, 0),
        (0.3141, 0.3149, 0.3145),
        (99.5, 101, 100),
        (1e300, 3e300, 2e300),
        (-np.inf, 3.0, -np.inf),
        (3.0, np.inf, 3.0),
        (1.0, np.nextafter(1.0, 2), 1.0),
    ],
)
def test_the_simplest_number_between_two(low, high, number):
    assert simple_between(low, high) == number


@given(st.integers(-10_000, 10_000), st.integers(1, 10_000), st.integers(0, 6))
@example(0, 7, 0)
def test_no_number_with_fewer_decimals_lies_between(start, width, places):
    low, high = start / 10**places, (start + width) / 10**places
    number = simple_between(low, high)
    assert low < number < high
    if decimals(number) > 0:
        step = Fraction(1, 10 ** (decimals(number) - 1))
        next_coarser = (Fraction(repr(low)) // step + 1) * step
        assert next_coarser >= Fraction(repr(high))


def test_columns_are_read_off_rows_and_missing_is_nought():
    frame = pd.DataFrame({"age": [20, np.nan, 40], "job": ["clerk", None, "cook"]})
    columns = BinaryColumns(Schema.infer(frame), np.array([0, 1], np.int32), np.array([30.0, np.nan]), (None, "clerk"))
    assert columns.names == ("age <= 30", "job is clerk")
    assert columns.transform(frame).tolist() == [[1, 1], [0, 0], [0, 0]]
    assert columns.transform(frame).dtype == np.uint8
    assert columns.test(0) == ("age", 30.0)
    assert columns.test(1) == ("job", frozenset(["clerk"]))
    assert columns.transform(pd.DataFrame({"age": [30], "job": ["never seen"]})).tolist() == [[1, 0]]


def test_a_split_on_a_column_decides_as_the_column():
    frame, y = mixed()
    schema = Schema.infer(frame)
    columns = guess_thresholds(schema, frame, y, backselect=False)
    assert {"number", "category", "boolean", "integer"} == {schema.features[j].kind for j in columns.feature}
    bits = columns.transform(frame)
    for column in range(len(columns)):
        tree = Tree.build(schema, Split(*columns.test(column), Leaf(True), Leaf(False)))
        assert np.array_equal(tree.decide(frame), bits[:, column] == 1)


def test_thresholds_lie_strictly_between_neighbouring_values():
    frame, y = mixed()
    columns = guess_thresholds(Schema.infer(frame), frame, y, backselect=False)
    numbers = np.flatnonzero(~np.isnan(columns.threshold))
    assert len(numbers) > 3
    for column in numbers:
        values = frame.iloc[:, columns.feature[column]].dropna().to_numpy(dtype=float)
        assert values.min() < columns.threshold[column] < values.max()
        assert not (values == columns.threshold[column]).any()


def test_two_levels_need_one_column():
    frame, y = mixed()
    for name, level in (("sex", "m"), ("owner", True)):
        labels = np.where(np.arange(len(y)) % 5 == 0, y, frame[name] == level)
        names = guess_thresholds(Schema.infer(frame), frame, labels, backselect=False).names
        assert [test for test in names if test.startswith(name)] == [f"{name} is {level}"]


def test_the_package_gosdt_guesses_the_same_splits():
    gosdt = pytest.importorskip("gosdt")
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(300, 6)), 1)
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(0, 0.5, 300)) > 1
    theirs = gosdt.ThresholdGuessBinarizer(n_estimators=50, max_depth=1, column_elimination=False).fit(X, y)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    ours = guess_thresholds(Schema.infer(frame), frame, y, backselect=False)
    assert len(ours) > 5
    expected = np.column_stack([X[:, j] <= at for j, at in theirs.thresholds_])
    assert np.array_equal(ours.transform(frame), expected)


def accuracy(bits, y):
    return GradientBoostingClassifier(**SETTINGS).fit(bits, y).score(bits, y)


def test_backselection_keeps_accuracy_and_drops_what_is_not_needed():
    frame, y = mixed()
    schema = Schema.infer(frame)
    every = guess_thresholds(schema, frame, y, backselect=False).transform(frame)
    noise = np.random.default_rng(1).random((len(y), 3)) < 0.02
    bits = np.column_stack([every, noise]).astype(np.uint8)
    kept = _backselect(bits, y, SETTINGS)
    assert 1 <= len(kept) < bits.shape[1]
    assert accuracy(bits[:, kept], y) >= accuracy(bits, y)
    # The rule stops where it must: most columns that are left cannot go.
    lost = [accuracy(np.delete(bits[:, kept], c, axis=1), y) < accuracy(bits, y) for c in range(len(kept))]
    assert any(lost)


def test_missing_numbers_and_values_beyond_single_precision_are_no_obstacle():
    frame = pd.DataFrame({"big": [1e100, 2e100, np.nan, 5e100], "near": 1 + np.arange(4) * 1e-12})
    columns = guess_thresholds(Schema.infer(frame), frame, [0, 0, 1, 1], backselect=False)
    assert len(columns) >= 1
    assert columns.transform(frame)[:, -1].tolist() == [1, 1, 0, 0]


def test_nothing_splits_constant_rows():
    frame = pd.DataFrame({"same": [1, 1, 1], "lost": [np.nan] * 3, "one": ["a"] * 3})
    columns = guess_thresholds(Schema.infer(frame), frame, [0, 1, 1])
    assert len(columns) == 0
    assert columns.transform(frame).shape == (3, 0)


@pytest.mark.parametrize(
    ("rows", "labels", "said"),
    [(0, [], "no rows"), (3, [1, 1, 1], "two classes"), (3, [0, 1], "labels of shape"), (3, [0, 1, 2], "have 3")],
)
def test_what_cannot_be_guessed_from_is_refused_with_a_remedy(rows, labels, said):
    frame = pd.DataFrame({"age": [20, 30, 40]})
    with pytest.raises(DataError, match=said) as caught:
        guess_thresholds(Schema.infer(frame), frame.iloc[:rows], labels)
    assert caught.value.do


def test_a_date_is_refused_with_a_remedy():
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    with pytest.raises(DataError, match="datetime") as caught:
        guess_thresholds(Schema.infer(frame), frame, [0, 1])
    assert "numbers" in caught.value.do
