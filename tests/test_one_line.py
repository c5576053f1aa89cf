"""`fw.explain`: what the long form answers, in one line; and outcomes in the user's words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest.errors import UsageError

NAMES = {0: "approved", 1: "refused"}


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, Any, Any]:
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(80, 3)).round(2), columns=["debt", "age", "income"])
    y = (X["debt"] - X["income"] > 0.2).astype(int)
    return X, y, LogisticRegression().fit(X, y)


def test_it_answers_as_the_long_form_does(table: tuple[pd.DataFrame, Any, Any]) -> None:
    X, y, model = table
    decision = fw.Decision(model, positive=1)
    long = fw.Explainer(decision, fw.references.single(decision, X, y), constraints=fw.Immutable("age")).explain(X)
    short = fw.explain(model, X, train=(X, y), positive=1, constraints=fw.Immutable("age"))
    assert short.to_json() == long.to_json()
    assert fw.explain(decision, X, train=(X, y), constraints=[fw.Immutable("age")]).to_json() == long.to_json()


def test_references_are_a_word_or_an_object(table: tuple[pd.DataFrame, Any, Any]) -> None:
    X, y, model = table
    decision = fw.Decision(model, positive=1)
    groups = fw.references.clusters(decision, X, y)
    word = fw.explain(model, X, train=(X, y), positive=1, references="clusters")
    assert word.to_json() == fw.explain(model, X, train=(X, y), positive=1, references=groups).to_json()


def test_another_centre_is_taken_where_the_mean_is_refused() -> None:
    X = pd.DataFrame({"debt": [0.0, 0.0, 0.0, 100.0, 10.0, 11.0, 12.0, 13.0]})
    y = [0, 0, 0, 0, 1, 1, 1, 1]
    model = DecisionTreeClassifier(max_depth=1).fit(X, y)
    assert model.predict(pd.DataFrame({"debt": [25.0]})) == [1]
    out = fw.explain(model, X, train=(X, y), positive=1)
    assert out.references.names == ("median",)


def test_what_is_explained_is_never_guessed_in_silence(table: tuple[pd.DataFrame, Any, Any]) -> None:
    X, y, model = table
    with pytest.warns(fw.FewestWarning, match="explaining class 1, the second one"):
        fw.explain(model, X, train=(X, y))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"train": "X"}, "train is not a pair"),
        ({"centre": "median"}, "centre"),
        ({"names": {2: "other"}}, "2 is not a class"),
        ({"names": ["approved", "refused"]}, "names is"),
        ({"names": {0: "refused", 1: "refused"}}, "names no outcome alone"),
        ({"names": {0: ""}}, "names no outcome alone"),
        ({"references": "everybody"}, "everybody"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    table: tuple[pd.DataFrame, Any, Any], wrong: dict[str, Any], message: str
) -> None:
    X, y, model = table
    with pytest.raises(UsageError, match=message):
        fw.explain(model, X, **{"train": (X, y), "positive": 1, **wrong})
    with pytest.raises(UsageError, match="its own positive"):
        fw.explain(fw.Decision(model), X, train=(X, y), positive=1)


def test_outcomes_have_the_names_they_were_given(table: tuple[pd.DataFrame, Any, Any], tmp_path: Any) -> None:
    X, y, model = table
    out = fw.explain(model, X, train=(X, y), positive=1, names=NAMES)
    row = int(np.flatnonzero(y == 1)[0])
    assert "would have predicted approved (refused: " in str(out[row])
    assert out.to_dict()["decision"]["positive"] == "refused"
    path = tmp_path / "credit.fewest"
    decision = fw.Decision(model, positive=1, names=NAMES)
    fw.Explainer(decision, fw.references.single(decision, X, y)).save(path)
    again = fw.load(path)
    assert again.decision.names == NAMES
    assert str(again.explain(X)[row]) == str(out[row])
    turned = fw.Decision(model, positive=0, names={1: "refused"})
    assert (turned.positive_name, turned.negative_name) == ("0", "refused")
    scored = fw.Decision(lambda rows: rows["debt"].to_numpy(), names=NAMES)
    assert (scored.positive_name, scored.negative_name) == ("refused", "approved")


def test_a_run_folder_keeps_the_names(table: tuple[pd.DataFrame, Any, Any], tmp_path: Any) -> None:
    pytest.importorskip("pyarrow")
    from fewest.apps.cli._sources import decision_of

    X, y, model = table
    X.to_csv(tmp_path / "cases.csv", index=False)
    decision = fw.Decision(model, positive=1, names=NAMES)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    run = fw.runs.explain_files(explainer, tmp_path / "cases.csv", tmp_path / "run")
    assert (run.about.positive, run.about.outcome) == ("refused", "approved")
    assert decision_of(model, run.manifest["settings"]).names == NAMES
