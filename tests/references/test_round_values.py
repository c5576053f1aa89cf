"""References have numbers that people can read, and are accepted with exactly these numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest.errors import PositiveReferenceError
from fewest.models.trees.leaf_boxes import boxes
from fewest.models.trees.tree import encode_feature
from fewest.references import _round_values, base
from fewest.references._round_values import as_frame, finer, holding
from fewest.tables.schema import Schema

RATES = pd.DataFrame({"rate": [0.5, 1.0, 1.5, 2.0], "age": [20, 30, 41, 50]})


def below(line: float) -> fw.Decision:
    return fw.Decision(lambda rows: rows["rate"].to_numpy(dtype=float), threshold=line, positive=1)


@pytest.mark.parametrize(
    ("rates", "line", "shown", "decimals"),
    [
        ([0.7, 1.0, 1.3, 1.9], 1.3, 1.2, 1),  # mean 1.225
        ([0.6, 1.1, 1.5, 1.9], 1.31, 1.3, 1),  # mean 1.275
        ([0.6, 1.1, 1.5, 1.84], 1.265, 1.26, 2),  # mean 1.26, written with two decimals
        ([0.5, 1.1, 1.6, 1.9], 1.28, 1.27, 2),  # mean 1.275, refused as 1.3
    ],
)
def test_a_reference_gets_more_decimals_only_where_rounding_turned_it(
    rates: list[float], line: float, shown: float, decimals: int
) -> None:
    X = RATES.assign(rate=rates)
    refs = fw.references.single(below(line), X, [0] * 4)
    assert refs.frame["rate"].tolist() == [shown]
    assert refs.schema.features[0].decimals == decimals
    assert refs.score[0] < line


def test_a_reference_refused_with_all_decimals_stays_an_error() -> None:
    with pytest.raises(PositiveReferenceError):
        fw.references.single(below(1.0), RATES, [0, 0, 0, 0])


def test_whole_numbers_stay_whole() -> None:
    """The mean age is 35.25, accepted; the reference's age is 35, refused: no digit helps."""
    decision = fw.Decision(lambda rows: -rows["age"].to_numpy(dtype=float), threshold=-35.1, positive=1)
    with pytest.raises(PositiveReferenceError):
        fw.references.single(decision, RATES, [0, 0, 0, 0])


def test_where_positive_references_are_allowed_nothing_is_added() -> None:
    """The paper's tables are made that way."""
    X = RATES.assign(rate=[0.6, 1.1, 1.5, 1.9])
    refs = fw.references.single(below(1.28), X, [0] * 4, on_positive="allow")
    assert refs.frame["rate"].tolist() == [1.3]
    assert refs.schema.features[0].decimals == 1


def test_added_decimals_outlast_flexibility_files_and_audits(tmp_path: Any) -> None:
    X = RATES.assign(rate=[0.6, 1.1, 1.5, 1.9])
    refs = fw.references.single(below(1.28), X, [0] * 4)
    value = refs.frame["rate"].iloc[0]
    twins = refs.flexible(0.0)
    assert twins.frame["rate"].tolist() == [value, value]
    assert (twins.score < 1.28).all()
    refs.save(tmp_path / "refs.json")
    again = fw.references.load(tmp_path / "refs.json", below(1.28))
    assert again.frame["rate"].tolist() == [value]
    assert refs.audit().table["value"].tolist()[0] == value


def test_dropping_the_added_decimals_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: without the step, the reference is refused."""
    monkeypatch.setattr(base, "finer", lambda decision, schema, rows, frame, refused: (schema, frame))
    with pytest.raises(PositiveReferenceError):
        fw.references.single(below(1.28), RATES.assign(rate=[0.6, 1.1, 1.5, 1.9]), [0] * 4)


def test_a_cluster_centre_is_not_left_out_because_of_its_last_digit() -> None:
    """The mean is 1.2666..., refused as 1.3; the rows themselves are all accepted."""
    X = pd.DataFrame({"rate": [0.6, 1.1, 1.5, 1.9, 1.2, 1.3]})
    known = X["rate"].to_numpy()

    def score(rows: pd.DataFrame) -> Any:
        rate = rows["rate"].to_numpy(dtype=float)
        return np.where(np.isin(rate, known[known != 1.3]), 0.0, rate)

    decision = fw.Decision(score, threshold=1.29, positive=1)
    refs = fw.references.clusters(decision, X.iloc[:5], [0] * 5, n_clusters=1, centre="mean")
    assert refs.frame["rate"].tolist() == [1.26]
    assert refs.score[0] < 1.29


@given(st.floats(0.1, 5.0), st.floats(1e-12, 0.2))
@settings(max_examples=100, deadline=None)
def test_what_is_accepted_with_all_decimals_is_accepted_as_shown(value: float, room: float) -> None:
    schema = Schema.infer(RATES)
    decision = below(value + room)
    rows = [{"rate": value, "age": 30.4}]
    frame = as_frame(schema, rows)
    refused = np.flatnonzero(decision.verdicts(frame).positive).tolist()
    more, shown = finer(decision, schema, rows, frame, refused)
    assert shown["rate"].iloc[0] < value + room
    assert as_frame(more, shown.to_dict("records")).equals(shown)
    assert shown["age"].tolist() == [30]
    if more.features[0].decimals > schema.features[0].decimals:  # as few as it takes
        fewer = round(value, more.features[0].decimals - 1)
        assert fewer >= value + room


@pytest.mark.parametrize("value", ["nearest", "median", "mean"])
@pytest.mark.parametrize("seed", range(5))
def test_the_typical_case_of_a_narrow_leaf_is_inside_it(seed: int, value: Any) -> None:
    random = np.random.default_rng(seed)
    X = pd.DataFrame({name: np.round(random.uniform(0, 1, 400), 1) for name in "abc"})
    X.loc[::2, "a"] += 0.003  # splits between 0.1 and 0.103 need three decimals, most values have one
    y = ((X["a"] * 1000 % 100 > 1) ^ (X["b"] > 0.5)).astype(int)
    decision = fw.Decision(DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y), positive=1)
    coarse = Schema.infer(X).with_("a", decimals=1)
    refs = fw.references.leaves(decision, X, y, schema=coarse, value=value)
    spaces = dict(boxes(refs.tree))
    own = {name: node for node, name in zip(refs.tree.leaves, [f"leaf {k + 1}" for k in range(99)], strict=False)}
    codes = np.column_stack([encode_feature(feature, refs.frame) for feature in refs.tree.schema.features])
    assert refs.tree.apply(codes).tolist() == [own[name] for name in refs.names]
    assert all(own[name] in spaces for name in refs.names)


def test_the_schema_holds_what_the_rows_are_written_with() -> None:
    schema = holding(Schema.infer(RATES), [{"rate": 0.125, "age": 30}, {"rate": np.nan, "age": 31}])
    assert [feature.decimals for feature in schema.features] == [3, 0]
    assert _round_values._decimals(1e-7) == 7
    assert _round_values._decimals(1e22) == 0


def test_narrow_floats_have_the_decimals_they_were_written_with() -> None:
    wide = pd.DataFrame({"rate": [0.1, 0.25, 3.5]})
    narrow = wide.astype(np.float32)
    assert Schema.infer(narrow).features[0].decimals == Schema.infer(wide).features[0].decimals == 2


@pytest.mark.parametrize("size", [1e-12, 1e-7, 1e-3, 1.0, 1e6])
def test_a_reference_of_any_size_is_not_rounded_away(size: float) -> None:
    X = pd.DataFrame({"rate": np.array([1.37, 2.51, 3.63, 4.89]) * size})
    refs = fw.references.single(below(100 * size), X, [0] * 4)
    assert refs.frame["rate"].iloc[0] == pytest.approx(X["rate"].mean(), rel=2e-3)
