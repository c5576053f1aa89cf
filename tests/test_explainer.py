"""Explaining: odd tables, odd references, budgets, directions, determinism."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest import checks
from fewest.errors import DataError, PositiveReferenceError, UsageError
from fewest.results.explanations import FRAME_COLUMNS

RANDOM = np.random.default_rng(1)
X = pd.DataFrame(RANDOM.normal(size=(300, 5)).round(2), columns=list("abcde"))
Y = (X["a"] + X["b"] - X["c"] * X["d"] + 0.3 * RANDOM.normal(size=300) > 0.3).astype(int)


def ready(model: Any = None, **options: Any) -> fw.Explainer:
    decision = fw.Decision(model or LogisticRegression().fit(X, Y))
    refs = fw.references.single(decision, X, Y, on_positive="allow")
    return fw.Explainer(decision, refs, **{"n_jobs": 1, **options})


def test_the_table_has_the_promised_columns() -> None:
    frame = ready().explain(X).to_frame()
    assert tuple(frame.columns) == FRAME_COLUMNS
    explained = frame["status"] == "EXPLAINED"
    assert frame["sev"].isna().equals(~explained)
    assert (frame.loc[explained, "score_after"] < 0.5).all()
    assert (frame.loc[explained, "margin"] > 0).all()
    assert frame.loc[explained, "proved"].all()


def test_json_is_versioned_and_strict(tmp_path: Any) -> None:
    out = ready().explain(X.iloc[:30], alternatives=5)
    content = json.loads(out.to_json(tmp_path / "out.json"))
    assert content["format"] == 2
    assert len(content["answers"]) == 30
    assert json.loads((tmp_path / "out.json").read_text()) == content


def test_summary_and_repr_speak_of_the_counts() -> None:
    out = ready().explain(X)
    assert out.summary()["explained"] == (out.to_frame()["status"] == "EXPLAINED").sum()
    assert "explained" in repr(out)
    assert "<table>" in out._repr_html_()
    assert str(out[int(np.flatnonzero(out.answers.status == 0)[0])]).startswith("If ")


def test_a_positive_reference_is_refused_with_its_score() -> None:
    decision = fw.Decision(LogisticRegression().fit(X, Y), threshold=0.05)
    with pytest.raises(PositiveReferenceError, match=r"score 0\.\d+ >= 0.05") as error:
        fw.references.single(decision, X, Y)
    assert "median" in str(error.value)
    refs = fw.references.single(decision, X, Y, on_positive="allow")
    out = fw.Explainer(decision, refs).explain(X)
    assert checks.check_turns(out) > 0
    with pytest.raises(UsageError, match=r"SEV\+"):
        fw.Explainer(decision, refs, direction="plus")


def test_a_model_that_is_always_positive_is_proved_unreachable() -> None:
    tree = DecisionTreeClassifier(max_depth=1).fit(X, Y)
    decision = fw.Decision(tree, threshold=0.0)
    refs = fw.references.single(decision, X, Y, on_positive="allow")
    out = fw.Explainer(decision, refs).explain(X.iloc[:20])
    assert out.counts()["UNREACHABLE"] == 20
    assert np.isinf(out.answers.lower).all()


def test_a_model_that_is_always_negative_has_nothing_to_explain() -> None:
    decision = fw.Decision(lambda frame: np.zeros(len(frame)), positive=1)
    out = fw.Explainer(decision, fw.references.single(decision, X, Y)).explain(X)
    assert out.counts()["ALREADY_NEGATIVE"] == len(X)


def test_a_case_equal_to_its_reference_is_unreachable() -> None:
    decision = fw.Decision(LogisticRegression().fit(X, Y))
    positive = X[decision.verdicts(X).positive].iloc[[0]]
    refs = fw.references.supplied(decision, positive, X=X, on_positive="allow")
    out = fw.Explainer(decision, refs).explain(positive)
    assert out[0].status == fw.Status.UNREACHABLE
    assert "Not possible" in str(out[0])


def test_no_allowed_feature_is_unreachable() -> None:
    out = ready(constraints=fw.Constraints(*(fw.Immutable(name) for name in X))).explain(X)
    assert out.counts()["EXPLAINED"] == 0
    assert out.counts()["UNREACHABLE"] > 0


@pytest.mark.parametrize("rows", [1, 2])
def test_few_rows(rows: int) -> None:
    assert len(ready().explain(X.iloc[:rows]).to_frame()) == rows


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(DataError, match="empty"):
        ready().explain(X.iloc[:0])


def test_one_feature() -> None:
    one = X[["a"]]
    decision = fw.Decision(LogisticRegression().fit(one, Y))
    explainer = fw.Explainer(decision, fw.references.single(decision, one, Y))
    assert checks.run(explainer, one)["turned"] > 0


WIDE = [pytest.param(LogisticRegression(), marks=pytest.mark.slow), DecisionTreeClassifier(max_depth=6, random_state=0)]


@pytest.mark.parametrize("estimator", WIDE)
def test_a_thousand_features(estimator: Any) -> None:
    random = np.random.default_rng(2)
    wide = pd.DataFrame(random.normal(size=(200, 1000)).round(2), columns=[f"f{j}" for j in range(1000)])
    y = (wide.iloc[:, :20].sum(axis=1) > 0).astype(int)
    decision = fw.Decision(estimator.fit(wide, y))
    out = fw.Explainer(decision, fw.references.single(decision, wide, y, on_positive="allow")).explain(wide.iloc[:12])
    assert checks.check_turns(out) > 0
    assert out.counts()["BUDGET"] == 0


def test_numpy_sparse_and_polars_tables_give_the_answers_of_pandas() -> None:
    polars = pytest.importorskip("polars")
    wanted = ready().explain(X).to_frame().reset_index(drop=True).astype(str)
    for table in (X.to_numpy(), sparse.csr_matrix(X.to_numpy()), polars.DataFrame(X.to_dict("list"))):
        assert ready().explain(table).to_frame().reset_index(drop=True).astype(str).equals(wanted)


def test_a_float32_model_is_explained() -> None:
    small = X.astype(np.float32)
    decision = fw.Decision(LogisticRegression().fit(small, Y))
    explainer = fw.Explainer(decision, fw.references.single(decision, small, Y))
    assert checks.run(explainer, small.iloc[:60])["turned"] > 0


def test_nan_is_a_legal_value_where_the_model_accepts_it() -> None:
    holed = X.mask(RANDOM.random(X.shape) < 0.15)
    decision = fw.Decision(HistGradientBoostingClassifier(max_iter=20).fit(holed, Y))
    explainer = fw.Explainer(decision, fw.references.single(decision, holed, Y, on_positive="allow"))
    result = checks.run(explainer, holed.iloc[:80])
    assert result["held against brute force"] > 10


def test_nan_where_the_model_refuses_it_is_named() -> None:
    holed = X.copy()
    holed.loc[7, "c"] = np.nan
    with pytest.raises(DataError, match=r'row 7, column "c"'):
        ready().explain(holed)


def test_all_kinds_of_columns_are_explained() -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    table = pd.DataFrame(
        {
            "text": pd.Series(RANDOM.choice(["p", "q"], 300), dtype="str"),
            "level": pd.Categorical(RANDOM.choice(["lo", "hi"], 300), categories=["lo", "hi"], ordered=True),
            "whole": pd.array(RANDOM.integers(0, 9, 300), dtype="Int64"),
            "flag": RANDOM.random(300) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(RANDOM.integers(0, 900, 300), unit="D"),
        }
    )
    y = (table["whole"].to_numpy(dtype=float) + 3 * table["flag"] + (table["text"] == "p") > 5.5).astype(int)

    def days(frame: pd.DataFrame) -> np.ndarray:
        return ((frame - pd.Timestamp("2020-01-01")) / pd.Timedelta(days=900)).to_numpy(dtype=float)

    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(), ["text", "level"]),
            (FunctionTransformer(days), ["since"]),
            ("passthrough", ["whole", "flag"]),
        ),
        LogisticRegression(),
    ).fit(table, y)
    decision = fw.Decision(model)
    refs = fw.references.single(decision, table, y)
    explainer = fw.Explainer(decision, refs, constraints=fw.Constraints(fw.Only("level", "up")))
    assert checks.run(explainer, table.iloc[:80])["held against brute force"] > 5
    assert refs.frame.dtypes.equals(table.dtypes)


def test_multi_class_both_ways() -> None:
    y = np.select([X["a"] > 0.5, X["b"] > 0.5], ["x", "y"], "z")
    for against in (None, "z"):
        for model in (
            LogisticRegression().fit(X, y),
            RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, y),
        ):
            decision = fw.Decision(model, positive="x", against=against)
            refs = fw.references.single(decision, X, y, on_positive="allow")
            result = checks.run(fw.Explainer(decision, refs), X.iloc[:60])
            assert result["turned"] > 0


def test_a_torch_net_is_read() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).eval()
    decision = fw.Decision(net, positive="bad", threshold=0.5)
    refs = fw.references.supplied(decision, X.iloc[[int(np.argmin(decision.score(X)))]], X=X)
    explainer = fw.Explainer(decision, refs)
    assert checks.run(explainer, X.iloc[:60])["held against brute force"] > 10
    assert explainer.explain(X).strategies[1] == "network"


def test_a_time_limit_leaves_the_rest_as_budget() -> None:
    out = ready(RandomForestClassifier(20, random_state=0).fit(X, Y)).explain(X, time_limit=0.0)
    assert out.counts()["BUDGET"] > 0
    assert out.counts()["EXPLAINED"] == 0
    assert (out.answers.lower[out.answers.status == 4] >= 1).all()


def test_a_small_budget_is_honest() -> None:
    model = RandomForestClassifier(30, random_state=0).fit(X, Y)
    full = ready(model, structure="opaque").explain(X)
    small = ready(model, structure="opaque", max_nodes=3).explain(X)
    assert small.counts()["BUDGET"] > 0
    assert checks.check_turns(small) > 0
    explained = full.answers.status == 0
    assert (small.answers.lower[explained] <= full.answers.cost[explained]).all()


def test_sparsest_is_never_worse_than_nearest_nor_than_fewer_references() -> None:
    decision = fw.Decision(RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, Y))
    accepted = X[~decision.verdicts(X).positive].iloc[:6]
    sizes = []
    for k, assignment in ((1, "sparsest"), (3, "sparsest"), (6, "sparsest"), (6, "nearest")):
        refs = fw.references.supplied(decision, accepted.iloc[:k], X=X, assignment=assignment)
        out = fw.Explainer(decision, refs, n_jobs=1).explain(X.iloc[:100])
        assert checks.check_turns(out) > 0
        sizes.append(np.where(out.answers.status == 0, out.answers.cost, 99.0))
    assert (sizes[1] <= sizes[0]).all()
    assert (sizes[2] <= sizes[1]).all()
    assert (sizes[2] <= sizes[3]).all()


@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(15, max_depth=5, random_state=0)])
def test_threads_batches_and_orders_do_not_change_a_byte(estimator: Any) -> None:
    model = estimator.fit(X, Y)
    one, two = (ready(model, n_jobs=n_jobs).explain(X, alternatives=5).to_json() for n_jobs in (1, 2))
    assert one == two
    checks.check_batches(ready(model), X.iloc[:60])


def test_with_replaces_one_choice_and_refuses_unknown_ones() -> None:
    explainer = ready()
    assert explainer.with_(direction="plus").direction == "plus"
    with pytest.raises(UsageError, match="with_ has no"):
        explainer.with_(magic=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"direction": "sideways"}, "unknown"),
        ({"weights": {"a": 0.0}}, "positive number"),
        ({"weights": {"nope": 1.0}}, "no feature"),
        ({"constraints": fw.Constraints(fw.Immutable("nope"))}, "no feature"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ready(**options)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fw.Only("a", "sideways"),
        lambda: fw.Range("a", 3, 1),
        lambda: fw.Linked("a"),
        lambda: fw.Forbidden(),
        lambda: fw.AtMost(0),
        lambda: fw.Constraints("a"),
    ],
)
def test_bad_constraints_are_refused(make: Any) -> None:
    with pytest.raises(UsageError):
        make()
