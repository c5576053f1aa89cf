"""Numbers of a case are printed with as many decimals as matter: what is read back has the same outcome."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import parsed_back
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest.results import decimals
from fewest.results.explanations import Explanations
from fewest.tables.wording import Shortened, show

LONG = "0.10490011715303971"


def linear(direction: str = "minus", dtype: str = "float64") -> Explanations:
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(300, 4)), columns=list("abcd")).astype(dtype)
    X["kind"] = random.choice(["x", "y"], 300)
    X.loc[::9, "d"] = np.nan

    def score(rows: pd.DataFrame) -> Any:
        return 1 / (1 + np.exp(-rows[list("abc")].to_numpy(dtype=float).sum(axis=1) - rows["d"].fillna(0).to_numpy()))

    decision = fw.Decision(score)
    refs = fw.references.single(decision, X, score(X) < 0.5)
    return fw.Explainer(decision, refs, n_jobs=1, direction=direction).explain(X, alternatives=5)


def trees() -> Explanations:
    """A tree that cuts between close values, so that rounding crosses the line."""
    random = np.random.default_rng(1)
    X = pd.DataFrame(0.5 + random.normal(scale=[1.0, 1e-4], size=(400, 2)) * random.choice([1, 1e-4], (400, 1)),
                     columns=["a", "b"])  # fmt: skip
    model = DecisionTreeClassifier(random_state=0).fit(X, X["a"] + X["b"] > 1.0)
    decision = fw.Decision(model, positive=True)
    refs = fw.references.single(decision, X, X["a"] + X["b"] > 1.0, centre="medoid")
    return fw.Explainer(decision, refs, n_jobs=1).explain(X)


def wrong(out: Explanations) -> int:
    """Answers that have another outcome when they are read back from sentence or card."""
    schema, decision, lost = out.schema, out.references.decision, 0
    asked: list[tuple[dict[str, Any], bool]] = []
    for row, answer in enumerate(out):
        if not answer.changes:
            continue
        case = {column: out.frame[column].iloc[row] for column in out.frame.columns}
        named = parsed_back.of_sentence(str(answer), schema)
        lost += any(after == before for _, after, before in named)
        asked.append((parsed_back.turned_row(case, named, schema), False))
        asked.append((parsed_back.turned_row(case, [(name, old, None) for name, _, old in named], schema), True))
        for column, refused in ((1, True), (3, False)):
            table = parsed_back.of_table(answer._repr_html_(), schema, column)
            asked.append(
                ({c: v for f in schema.features for c, v in parsed_back.cells_of(f, table[f.name]).items()}, refused)
            )
    rows = parsed_back.as_frame([row for row, _ in asked], schema)
    return lost + int((decision.verdicts(rows).positive != [refused for _, refused in asked]).sum())


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64"])
def test_numbers_are_short_and_read_back_to_the_same_outcomes(dtype: str) -> None:
    out = linear(dtype=dtype)
    assert wrong(out) == 0
    assert (out.answers.decimals >= 0).all()
    assert (out.answers.decimals == 0).mean() > 0.9
    shown = [show(fact.case) for answer in out[out.answers.decimals == 0] for fact in answer.facts if fact.name in "ab"]
    assert max(map(len, shown)) <= len("-1.2345")


def test_a_case_close_to_the_line_gets_more_decimals() -> None:
    out = trees()
    assert wrong(out) == 0
    assert {0, 1} < set(out.answers.decimals.tolist())


def test_rounding_without_asking_the_model_is_caught() -> None:
    """Negative control: the decimals of the features for every case."""
    out = trees()
    out.answers.decimals[:] = 0
    assert wrong(out) > 0


def test_the_values_of_answers_stay_what_they_were(tmp_path: Path) -> None:
    out = linear()
    row = next(k for k, answer in enumerate(out) if answer.changes and answer.changes[0].feature == "a")
    exact, change = float(out.frame["a"].iloc[row]), out[row].changes[0]
    assert change.before == exact
    assert show(change.before) != repr(exact)
    assert out.to_frame()["from"].iloc[row][0] == exact
    assert repr(exact) in out.to_csv()
    assert json.loads(out.to_json())["answers"][row]["changes"][0]["from"] == exact
    assert pickle.loads(pickle.dumps(change)) == change
    assert str(pickle.loads(pickle.dumps(change))) == str(change)


def test_run_folders_say_what_the_answers_in_memory_say(tmp_path: Path) -> None:
    from fewest.runs import explain_files

    out = linear()
    explainer = fw.Explainer(out.references.decision, out.references, n_jobs=1)
    out.frame.to_csv(tmp_path / "cases.csv", index=False)
    run = explain_files(explainer, tmp_path / "cases.csv", tmp_path / "run", n_jobs=1, alternatives=5)
    for row in range(0, 300, 7):
        assert str(run.explanation(row)) == str(out[row])
        assert run.explanation(row)._repr_html_() == out[row]._repr_html_()


def test_the_verifier_finds_decimals_that_do_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fewest.runs import explain_files, verify

    out = trees()
    explainer = fw.Explainer(out.references.decision, out.references, n_jobs=1)
    out.frame.to_csv(tmp_path / "cases.csv", index=False)

    def found(name: str) -> str:
        run = explain_files(explainer, tmp_path / "cases.csv", tmp_path / name, n_jobs=1)
        return str(verify(run.path, tmp_path / "cases.csv", explainer.decision))

    what = "its numbers, as they are shown, lead to another outcome"
    assert what not in found("honest")
    monkeypatch.setattr(decimals, "_enough", lambda out: 0)
    assert what in found("forged")


def test_sev_plus_is_read_back_too() -> None:
    out = linear("plus")
    answer = next(answer for answer in out if answer.changes)
    assert len(str(answer)) < 160
    assert (out.answers.decimals >= 0).all()


def test_tables_of_short_numbers_ask_the_model_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X = pd.DataFrame({"debt": [0.5, 1.5, 8.5, 9.5], "age": [30, 50, 30, 50]})
    decision = fw.Decision(LogisticRegression().fit(X, [0, 0, 1, 1]))
    refs = fw.references.single(decision, X, [0, 0, 1, 1])
    monkeypatch.setattr(decimals, "_enough", None)
    out = fw.Explainer(decision, refs).explain(X)
    assert out.answers.decimals.tolist() == [decimals.NOT_ASKED] * 4
    assert len(out.sentences) == 4
    assert out.answers.decimals.tolist() == [0, 0, 0, 0]


def test_a_shortened_number_is_the_number_it_was() -> None:
    value = Shortened(float(LONG), 3)
    assert show(value) == "0.105"
    assert repr(value) == LONG
    assert json.dumps(value) == LONG
    assert value == float(LONG)
    assert show(Shortened(12.0001, 2)) == "12"
