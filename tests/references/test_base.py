"""References: centres, files, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fewest as fw
from fewest.errors import DataError, UsageError

X = pd.DataFrame({"debt": [1, 2, 3, 8, 9, 9], "rate": [0.5, 1.5, 1.0, 2.0, 2.5, 3.0]})
Y = np.array([0, 0, 0, 1, 1, 1])
DECISION = fw.Decision(LogisticRegression().fit(X, Y))


def test_mean_median_and_medoid() -> None:
    assert fw.references.single(DECISION, X, Y).frame.iloc[0].tolist() == [2, 1.0]
    assert fw.references.single(DECISION, X, Y, centre="median").frame.iloc[0].tolist() == [2, 1.0]
    medoid = fw.references.single(DECISION, X, Y, centre="medoid").frame.iloc[0].tolist()
    assert medoid in X[Y == 0].to_numpy().tolist()


def test_the_most_frequent_level_is_taken_and_ties_go_to_the_first() -> None:
    table = pd.DataFrame({"job": pd.Series(["b", "b", "a", "a", "c", "c"], dtype="str")})
    decision = fw.Decision(make_pipeline(OneHotEncoder(), LogisticRegression()).fit(table, Y), threshold=0.6)
    refs = fw.references.single(decision, table, [0, 0, 0, 0, 1, 1], on_positive="allow")
    assert refs.frame["job"].tolist() == ["a"]


def test_saved_references_come_back(tmp_path: Path) -> None:
    refs = fw.references.supplied(DECISION, X.iloc[:2], X=X, names=["p", "q"], assignment="sparsest")
    refs.save(tmp_path / "refs.json")
    again = fw.references.supplied(DECISION, tmp_path / "refs.json", X=X)
    assert again.frame.equals(refs.frame)
    assert again.names == ("p", "q")
    assert again.assignment == "sparsest"


def test_text_codes_in_a_file_stay_text(tmp_path: Path) -> None:
    table = pd.DataFrame({"code": pd.Series(["007", "1", "007", "1", "1", "1"], dtype="str")})
    decision = fw.Decision(make_pipeline(OneHotEncoder(), LogisticRegression()).fit(table, Y))
    (tmp_path / "refs.csv").write_text("code\n007\n")
    assert fw.references.supplied(decision, tmp_path / "refs.csv", X=table).frame["code"].tolist() == ["007"]


@pytest.mark.parametrize("content", ["", "[1, 2]", "{}", '{"format": 1}', '{"format": 1, "references": [{}]}', "no"])
def test_broken_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "refs.json").write_text(content)
    with pytest.raises(DataError):
        fw.references.supplied(DECISION, tmp_path / "refs.json", X=X)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (X.iloc[:0], "empty"),
        (X[["debt"]], "lacks 1 of 2"),
        (X.assign(rate=np.inf).iloc[:1], "infinite"),
        ("nowhere.csv", "no file"),
        (X.iloc[3:], "decided positive"),
    ],
)
def test_bad_tables_are_refused(table: object, words: str) -> None:
    with pytest.raises(fw.FewestError, match=words):
        fw.references.supplied(DECISION, table, X=X)


def test_bad_labels_are_refused() -> None:
    with pytest.raises(DataError, match="no row is labelled"):
        fw.references.single(DECISION, X, np.ones(6, dtype=int))
    with pytest.raises(DataError, match="labels of shape"):
        fw.references.single(DECISION, X, Y[:3])
    with pytest.raises(UsageError, match="unknown"):
        fw.references.single(DECISION, X, Y, centre="mode")  # type: ignore[arg-type]


def test_nothing_in_a_saved_file_is_a_training_row(tmp_path: Path) -> None:
    fw.references.single(DECISION, X, Y).save(tmp_path / "refs.json")
    content = json.loads((tmp_path / "refs.json").read_text())
    assert [entry["values"] for entry in content["references"]] == [{"debt": 2, "rate": 1.0}]


def test_linked_features_with_several_references_are_proved() -> None:
    random = np.random.default_rng(5)
    table = pd.DataFrame(random.normal(size=(200, 5)).round(1), columns=list("abcde"))
    y = (table.sum(axis=1) > 0).astype(int)
    decision = fw.Decision(LogisticRegression().fit(table, y))
    accepted = table[~decision.verdicts(table).positive].iloc[:4]
    refs = fw.references.supplied(decision, accepted, X=table, assignment="sparsest")
    out = fw.Explainer(decision, refs, constraints=fw.Constraints(fw.Linked("a", "b"))).explain(table)
    assert out.counts()["BUDGET"] == 0


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_dates_of_any_zone_have_a_middle(zone: str | None) -> None:
    X = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=60, tz=zone), "debt": np.arange(60)})
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 60, positive=1)
    refs = fw.references.single(decision, X, (X["debt"] >= 30).astype(int))
    assert refs.frame["day"].dtype == X["day"].dtype
    answer = fw.Explainer(decision, refs).explain(X)[59]
    assert answer.sev == 1
