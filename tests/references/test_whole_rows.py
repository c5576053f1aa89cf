"""`references.accepted` and `references.paired` against all subsets, and what they refuse."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.engine import points
from fewest.errors import DataError, UsageError
from fewest.persistence import load
from fewest.runs.runner import explain_files


def people(n: int = 150, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.integers(0, 8, (n, 4)), columns=["a", "b", "c", "d"])
    y = (X["a"] + X["b"] - X["c"] + random.normal(0, 2, n) > 4).astype(int)
    return X, y.to_numpy()


def smallest(decision: fw.Decision, case: pd.Series, goals: pd.DataFrame) -> tuple[int, float] | None:
    """Least count and then least summed steps over all goals and all subsets of features that differ."""
    scale = [feature.scale for feature in fw.Schema.infer(people()[0]).features]
    for size in range(1, 5):
        rows, far = [], []
        for _, goal in goals.iterrows():
            for chosen in combinations(range(4), size):
                if all(case.iloc[j] != goal.iloc[j] for j in chosen):
                    rows.append([goal.iloc[j] if j in chosen else case.iloc[j] for j in range(4)])
                    far.append(sum(abs(goal.iloc[j] - case.iloc[j]) / scale[j] for j in chosen))
        if rows:
            turned = ~decision.verdicts(pd.DataFrame(rows, columns=list("abcd"))).positive
            if turned.any():
                return size, min(np.array(far)[turned])
    return None


MODELS = [GradientBoostingClassifier(n_estimators=15, random_state=0), LogisticRegression(max_iter=1000)]


@pytest.mark.parametrize("model", MODELS)
def test_a_proposal_is_cut_down_to_its_smallest_part_that_is_enough(model: Any) -> None:
    X, y = people()
    decision = fw.Decision(model.fit(X, y))
    proposals = X.sample(frac=1, random_state=1).set_axis(X.index)
    out = fw.Explainer(decision, fw.references.paired(decision, proposals, X=X)).explain(X)
    for row in np.flatnonzero(decision.verdicts(X).positive)[:40].tolist():
        best = smallest(decision, X.iloc[row], proposals.iloc[[row]])
        assert out[row].sev == (None if best is None else best[0])
    later = fw.Explainer(decision, fw.references.paired(decision, proposals, X=X)).explain(X.iloc[::-1])
    assert later.answers.moved.tolist() == out.answers.moved[::-1].tolist()


@pytest.mark.parametrize("model", MODELS)
def test_the_sparsest_of_all_accepted_rows_is_found_and_the_nearest_of_them(model: Any) -> None:
    X, y = people()
    decision = fw.Decision(model.fit(X, y))
    refs = fw.references.accepted(decision, X, y)
    assert not decision.verdicts(refs.frame).positive.any()
    out = fw.Explainer(decision, refs).explain(X)
    for row in np.flatnonzero(decision.verdicts(X).positive)[:12].tolist():
        best = smallest(decision, X.iloc[row], refs.frame)
        assert best is not None
        shown = sum(
            abs(change.after - change.before) / refs.schema.features[refs.schema.index(change.feature)].scale
            for change in out[row].changes
        )
        assert (out[row].sev, round(shown, 9)) == (best[0], round(best[1], 9))


def test_rows_searched_in_turns_have_the_answers_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = people()
    decision = fw.Decision(MODELS[0].fit(X, y))
    refs = fw.references.accepted(decision, X, y)
    monkeypatch.setattr(points, "TOGETHER", 10_000)
    whole = fw.Explainer(decision, refs).explain(X, alternatives=3)
    monkeypatch.setattr(points, "TOGETHER", 7)
    turns = fw.Explainer(decision, refs).explain(X, alternatives=3)
    assert turns.to_frame().drop(columns="strategy").equals(whole.to_frame().drop(columns="strategy"))


def test_a_comparison_with_the_nearest_row_alone_is_caught() -> None:
    """Negative control: a twin that does not look at all rows."""
    X, y = people()
    decision = fw.Decision(MODELS[0].fit(X, y))
    refs = fw.references.accepted(decision, X, y).with_assignment("features")
    out = fw.Explainer(decision, refs).explain(X)
    rows = np.flatnonzero(decision.verdicts(X).positive)[:12].tolist()
    assert [out[row].sev for row in rows] != [smallest(decision, X.iloc[row], refs.frame)[0] for row in rows]  # type: ignore[index]


def test_cases_without_a_row_two_rows_and_no_rows_are_refused() -> None:
    X, y = people()
    decision = fw.Decision(MODELS[1].fit(X, y))
    with pytest.raises(DataError, match="has no row of its own"):
        fw.Explainer(decision, fw.references.paired(decision, X.iloc[:2], X=X)).explain(X.iloc[2:])
    with pytest.raises(DataError, match="two rows for case 0"):
        fw.references.paired(decision, X.iloc[[0, 0]], X=X)
    with pytest.raises(DataError, match="empty"):
        fw.references.paired(decision, X.iloc[:0], X=X)
    with pytest.raises(DataError, match="refuses every row"):
        fw.references.accepted(fw.Decision(lambda rows: rows["a"] * 0 + 1, positive=1), X, y)


def test_rows_of_people_are_saved_only_where_that_is_allowed(tmp_path: Path) -> None:
    X, y = people()
    decision = fw.Decision(MODELS[1].fit(X, y))
    refs = fw.references.accepted(decision, X, y)
    explainer = fw.Explainer(decision, refs)
    X.to_csv(tmp_path / "cases.csv", index=False)
    for refused in (
        lambda: refs.save(tmp_path / "refs.json"),
        lambda: explainer.save(tmp_path / "one.fewest"),
        lambda: explain_files(explainer, tmp_path / "cases.csv", tmp_path / "run", n_jobs=1),
    ):
        with pytest.raises(UsageError, match="rows of people"):
            refused()
    explainer.save(tmp_path / "one.fewest", training_rows=True)
    again = load(tmp_path / "one.fewest").explain(X)
    assert again.answers.moved.tolist() == explainer.explain(X).answers.moved.tolist()
    with pytest.raises(UsageError, match="labels"):
        fw.Explainer(decision, fw.references.paired(decision, X, X=X)).save(tmp_path / "two.fewest")
