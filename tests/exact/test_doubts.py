"""What was read of a model is compared with the model on every case and every answer, not on the first few alone."""

from __future__ import annotations

import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from filling_steps import filling
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from slow_cases import mostly_slow

import fewest as fw
from fewest.errors import FewestWarning
from fewest.runs import explain_files, verify

P = 5
NAMES = [f"f{j}" for j in range(P)]
ODD = 3.0  # where f0 is at least this, the model does something that its insides do not show
SOUND = 1_000  # rows before the first odd one


def table(n: int = SOUND + 200) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(np.clip(rng.normal(size=(n, P)), -2.5, 2.5).round(2), columns=NAMES)
    y = (X.sum(axis=1) + rng.normal(scale=0.3, size=n) > 0).to_numpy()
    return X, y


MODELS = {
    "additive": lambda: LogisticRegression(),
    "ensemble": lambda: GradientBoostingClassifier(n_estimators=30, random_state=0),
    "network": lambda: MLPClassifier((8,), solver="lbfgs", max_iter=3000, random_state=0),
}


def odd_from(model: Any, odd: Any) -> Any:
    """The fitted model, whose scores are others where ``odd`` says so of a row."""
    honest = model.predict_proba

    def predict_proba(X: Any) -> np.ndarray:
        scores = honest(X).copy()
        here = odd(np.asarray(X, dtype=float))
        scores[here] = scores[here][:, ::-1]
        return scores

    model.predict_proba = predict_proba
    return model


def smallest(decision: fw.Decision, cases: pd.DataFrame, goal: pd.Series) -> list[int | None]:
    """Size of the smallest set that turns each case, by asking the model about every set."""
    moved = np.array(list(product((False, True), repeat=P)))[1:]
    rows = np.where(moved, goal[NAMES].to_numpy(), cases[NAMES].to_numpy()[:, None])
    asked = decision.verdicts(pd.DataFrame(rows.reshape(-1, P), columns=NAMES))
    sizes = np.where(asked.positive.reshape(len(cases), -1), P + 1, moved.sum(axis=1)).min(axis=1)
    return [int(size) if size <= P else None for size in sizes]


def check(decision: fw.Decision, refs: Any, X: pd.DataFrame, out: fw.Explanations, rows: Any) -> int:
    """Compare answers with the oracle; how many were explained."""
    asked = [int(row) for row in rows if out[int(row)].status != fw.Status.ALREADY_NEGATIVE]
    assert [out[row].sev for row in asked] == smallest(decision, X.iloc[asked], refs.frame.iloc[0])
    return len(asked)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("where", ["case", "answer"])
def test_a_structure_that_fails_at_row_1001_is_caught_and_the_answers_are_the_models(kind: str, where: str) -> None:
    X, y = table()
    model = MODELS[kind]().fit(X, y)
    decision = fw.Decision(model, positive=True)
    refs = fw.references.supplied(decision, X[~y].iloc[[3]] * 0 - 1, X=X)
    X.iloc[:SOUND] = X.iloc[:SOUND].clip(upper=ODD - 0.1)
    X.loc[SOUND:, "f0"] = ODD + 1
    if where == "case":  # odd rows are decided the other way round
        odd_from(model, lambda rows: rows[:, 0] >= ODD)
    else:  # an odd case is decided as its insides show, but no longer once anything but f0 is changed
        odd_from(model, lambda rows: (rows[:, 0] >= ODD) & (rows[:, 1:] == -1).any(axis=1))
    with pytest.warns(FewestWarning, match="does not reproduce its decisions"):
        out = fw.Explainer(decision, refs).explain(X)
    assert {answer.proof.strategy for answer in out if answer.changes} == {"levelwise"}
    some = np.flatnonzero(out.answers.status[:SOUND] == 0)[:10]
    assert check(decision, refs, X, out, some) == 10
    assert check(decision, refs, X, out, range(SOUND, len(X))) > 4


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_that_is_what_it_looks_like_is_believed(kind: str) -> None:
    X, y = table()
    decision = fw.Decision(MODELS[kind]().fit(X, y), positive=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = fw.Explainer(decision, fw.references.single(decision, X, y)).explain(X)
    assert {answer.proof.strategy for answer in out if answer.changes} == {kind}


@pytest.mark.parametrize("final", [LogisticRegression(), RandomForestClassifier(10, max_depth=5, random_state=0)])
def test_a_column_filled_from_another_is_noticed_in_the_first_row_that_needs_it(final: Any) -> None:
    X, y = table()
    X.loc[SOUND:, "f1"] = np.nan
    pipeline = make_pipeline(FunctionTransformer(filling, feature_names_out="one-to-one"), StandardScaler(), final)
    decision = fw.Decision(pipeline.fit(X, y), positive=True)
    refs = fw.references.single(decision, X, y)
    with pytest.warns(FewestWarning, match="do not belong to single features"):
        out = fw.Explainer(decision, refs).explain(X)
    with pytest.warns(FewestWarning, match="do not belong to single features"):
        back = fw.Explainer(decision, refs).explain(X.iloc[::-1])
    assert out.answers.moved.tolist() == back.answers.moved[::-1].tolist()
    assert check(decision, refs, X, out, range(SOUND, len(X))) > 10


def test_cases_that_come_one_by_one_are_compared_as_well() -> None:
    X, y = table(400)
    model = odd_from(LogisticRegression().fit(X, y), lambda rows: rows[:, 0] >= ODD)
    decision = fw.Decision(model, positive=True)
    refs = fw.references.supplied(decision, X.iloc[[0]] * 0 - 1, X=X)
    explainer = fw.Explainer(decision, refs)
    for row in range(20):
        explainer.explain(X.iloc[[row]])
    assert explainer.doubt is None
    strange = X.iloc[[0]].assign(f0=9.0)
    with pytest.warns(FewestWarning, match="its own scores are searched"):
        explainer.explain(strange)
    assert explainer.doubt is not None


@pytest.mark.parametrize("jobs", mostly_slow((1, 2), (1,)))
def test_a_run_folder_holds_no_part_that_rests_on_a_reading_given_up_later(tmp_path: Path, jobs: int) -> None:
    X, y = table(900)
    X.loc[850:, "f1"] = np.nan
    steps = FunctionTransformer(filling, feature_names_out="one-to-one"), StandardScaler(), LogisticRegression()
    decision = fw.Decision(make_pipeline(*steps).fit(X, y), positive=True)
    refs = fw.references.single(decision, X, y)
    X.to_csv(tmp_path / "cases.csv", index=False)
    with pytest.warns(FewestWarning, match="all rows are searched by its own scores"):
        run = explain_files(
            fw.Explainer(decision, refs), tmp_path / "cases.csv", tmp_path / "run", n_jobs=jobs, part_rows=200
        )
    assert set(run.table()["strategy"]) == {"none", "levelwise"}
    assert verify(run.path, tmp_path / "cases.csv", decision).ok


WINE = [0.05, 0.2, 0.5, -0.3, 0.0]


@pytest.mark.parametrize("threshold", mostly_slow(WINE, (0.2, -0.3)))
@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (LogisticRegression(max_iter=5000), "proba"),
        (LogisticRegression(max_iter=5000), "decision"),
        (RandomForestClassifier(20, max_depth=4, random_state=0), "proba"),
        (GradientBoostingClassifier(n_estimators=8, random_state=0), "proba"),
        (GradientBoostingClassifier(n_estimators=8, random_state=0), "decision"),
        (MLPClassifier((6,), solver="lbfgs", alpha=0.1, max_iter=3000, random_state=0), "proba"),
    ],
    ids=["linear", "linear decision", "forest", "boosted", "boosted decision", "net"],
)
def test_against_a_class_is_read_with_its_threshold(model: Any, kind: str, threshold: float) -> None:
    """Positive where the difference of two classes reaches the threshold, not where it reaches zero."""
    from sklearn.datasets import load_wine

    wine = load_wine(as_frame=True)
    X, y = wine.data.iloc[:, :P].set_axis(NAMES, axis=1), wine.target.to_numpy()
    X = (X - X.mean()) / X.std()
    decision = fw.Decision(model.fit(X, y), positive=0, against=1, threshold=threshold, kind=kind)
    refs = fw.references.single(decision, X, y, on_positive="allow")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = fw.Explainer(decision, refs).explain(X)
    assert check(decision, refs, X, out, range(40)) > 5
    plain = kind == "decision" or isinstance(model, RandomForestClassifier)
    searched = {answer.proof.strategy for answer in out if answer.changes}
    assert ("levelwise" in searched) == (not plain and threshold != 0)
