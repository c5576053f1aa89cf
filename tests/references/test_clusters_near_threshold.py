"""Just-accepted references: who is in the band, and what is said when nobody is."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.errors import DataError, PositiveReferenceError, UsageError
from fewest.references import differences
from fewest.references.clusters import clusters, near_threshold

X = pd.DataFrame({"debt": np.arange(100), "age": np.tile([25, 65], 50)})
Y = (X["debt"] >= 50).to_numpy(dtype=int)
RISK = fw.Decision(lambda frame: frame["debt"].to_numpy(dtype=float) / 100, positive=1)


def test_the_reference_is_the_middle_of_the_band() -> None:
    refs = near_threshold(RISK, X, Y, width=0.1)
    assert refs.frame["debt"].tolist() == [44]  # the median of 40 to 49, to the even whole number
    assert refs.support.tolist() == [10]
    assert refs.provenance["width"] == 0.1


def test_the_band_is_closed_below_and_open_at_the_threshold() -> None:
    table = pd.DataFrame({"debt": [10, 40, 45, 50, 50]})
    refs = near_threshold(RISK, table, width=0.1, centre="mean")
    assert refs.support.tolist() == [2]


def test_it_is_closer_to_the_refused_than_the_single_reference() -> None:
    decision = fw.Decision(LogisticRegression(max_iter=1000).fit(X, Y))
    refused = X[decision.verdicts(X).positive]
    near, typical = near_threshold(decision, X, Y, width=0.3), fw.references.single(decision, X, Y)
    steps = [fw.Explainer(decision, refs, n_jobs=1).explain(refused).answers.l_inf for refs in (near, typical)]
    assert (steps[0] < steps[1]).all()


def test_it_can_be_clustered() -> None:
    refs = near_threshold(RISK, X, Y, width=0.2, n_clusters=2, embedding="identity")
    assert sorted(refs.frame["age"]) == [25, 65]


def test_labels_leave_out_rows_that_went_wrong_after_all() -> None:
    wrong = np.where(np.isin(X["debt"], [40, 41, 42, 43, 44]), 1, Y)
    assert near_threshold(RISK, X, wrong, width=0.1).frame["debt"].tolist() == [47]
    assert near_threshold(RISK, X, width=0.1).support.tolist() == [10]


@pytest.mark.parametrize(
    ("table", "width", "words"),
    [
        (pd.DataFrame({"debt": [10, 20, 21, 22, 80]}), 0.1, r"nearest below are 0.22, 0.21, 0.2$"),
        (pd.DataFrame({"debt": [60, 80]}), 0.1, "none is below"),
    ],
)
def test_an_empty_band_is_refused_with_the_nearest_scores(table: pd.DataFrame, width: float, words: str) -> None:
    with pytest.raises(DataError) as caught:
        near_threshold(RISK, table, width=width)
    assert re.search(words, caught.value.message)


@pytest.mark.parametrize("width", [0, -1, float("nan")])
def test_a_senseless_width_is_refused(width: float) -> None:
    with pytest.raises(UsageError, match="width"):
        near_threshold(RISK, X, Y, width=width)


def test_references_near_the_threshold_are_named_so_and_not_taken_for_clusters() -> None:
    near = near_threshold(RISK, X, Y, width=0.1)
    assert near.names == ("near threshold",)
    assert near_threshold(RISK, X, Y, width=0.2, n_clusters=2).names == ("near threshold 1", "near threshold 2")
    others = clusters(RISK, X, Y, n_clusters=1, embedding="identity")
    found = differences(near.saved(), others.saved())
    assert [(one.reference, one.before is None, one.after is None) for one in found if one.feature is None] == [
        ("near threshold", False, True),
        ("cluster 1", True, False),
    ]


def test_where_the_middle_of_the_just_accepted_is_refused_the_remedy_is_one_that_works() -> None:
    # Low income or high debt alone is just accepted, half of both is not: the middle of the two kinds is refused.
    X = pd.DataFrame({"debt": [0, 0, 0, 10, 10, 10, 5], "income": [0, 1, 0, 10, 9, 10, 5]})
    decision = fw.Decision(
        lambda rows: np.where((rows["debt"] - rows["income"]).abs() + (rows["debt"] % 10) < 4, 0.45, 0.9)
    )
    with pytest.raises(PositiveReferenceError) as caught:
        near_threshold(decision, X, centre="median")
    named = re.findall(r'centre="(\w+)"', caught.value.do or "")
    assert named == ["medoid"]
    assert (near_threshold(decision, X, centre=named[0]).score < decision.cut).all()
