"""How much is enough, against every value of the grid asked of the model one by one."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fewest as fw
from fewest.errors import UsageError
from fewest.results import enough


def people(n: int = 200) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    X = pd.DataFrame({
        "debt": random.integers(0, 60, n), "income": np.round(random.normal(30, 8, n), 1),
        "home": pd.Series(random.choice(["own", "rent", "other"], n), dtype="str"),
    })  # fmt: skip
    y = X["debt"] - X["income"] + 8 * (X["home"] == "rent") + random.normal(0, 4, n) > 0
    return X, y.astype(int).to_numpy()


@cache
def explained(number: int) -> tuple[fw.Decision, pd.DataFrame, fw.Explanations]:
    model, (X, y) = MODELS[number], people()
    encode = make_column_transformer((OneHotEncoder(), ["home"]), remainder="passthrough")
    decision = fw.Decision(make_pipeline(encode, model).fit(X, y))
    return decision, X, fw.Explainer(decision, fw.references.single(decision, X, y)).explain(X.iloc[:90])


def wrong_ends(decision: fw.Decision, X: pd.DataFrame, out: fw.Explanations) -> int:
    """Intervals and levels that one-by-one scoring of the whole grid does not give."""
    wrong = 0
    for row in np.flatnonzero(out.answers.moved.any(axis=1)).tolist():
        after = out.turned().iloc[[row]]
        for found in out.enough(row):
            if found.feature == "home":
                values: list[Any] = ["other", "own", "rent"]
            else:
                step = 1 if found.feature == "debt" else 10
                low, high = (round(end * step) for end in (X[found.feature].min(), X[found.feature].max()))
                values = [k / step for k in range(low, high + 1)]
            asked = pd.concat([after] * len(values), ignore_index=True).assign(**{found.feature: values})
            fits = ~decision.verdicts(asked).positive
            if found.feature == "home":
                wrong += found.levels != tuple(np.array(values)[fits])
                continue
            at = int(np.argmin(np.abs(np.array(values) - found.shown)))
            first = last = at
            while first > 0 and fits[first - 1]:
                first -= 1
            while last < len(values) - 1 and fits[last + 1]:
                last += 1
            wrong += (found.low, found.high) != (values[first], values[last])
    return wrong


MODELS = [GradientBoostingClassifier(n_estimators=20, random_state=0), LogisticRegression(max_iter=2000)]


@pytest.mark.parametrize("number", range(len(MODELS)), ids=["trees", "linear"])
@pytest.mark.parametrize("most", [2_000, 5])
def test_the_ends_are_those_of_the_whole_grid(number: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    decision, X, out = explained(number)
    monkeypatch.setattr(enough, "MOST_VALUES", most)
    few = isinstance(MODELS[number], GradientBoostingClassifier) and most < 10
    # Of a grid that is not asked whole, a run may be taken for longer than it is where the model goes to and fro.
    assert few or wrong_ends(decision, X, out) == 0
    parts = [part for answer in out for part in out.enough(answer.row)]
    assert parts
    assert {part.whole for part in parts if part.feature != "home"} == {most > 10}


def test_an_end_that_is_one_step_off_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a broken twin."""
    decision, X, out = explained(1)
    end = enough._to_the_step
    monkeypatch.setattr(enough, "_to_the_step", lambda *given: end(*given) + 1.0)
    assert wrong_ends(decision, X, out) > 0


def asked_row_by_row(out: fw.Explanations) -> tuple[list[int], list[tuple[enough.Enough, ...]]]:
    """The rows with an answer, and what is enough of each, asked of the model."""
    rows = np.flatnonzero(out.answers.moved.any(axis=1)).tolist()
    return rows, [out.enough(row) for row in rows]


def counting(decision: fw.Decision, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the tables that the model is asked about from now on."""
    sizes, ask = [], type(decision).refuses

    def asked(self: fw.Decision, table: pd.DataFrame) -> Any:
        sizes.append(len(table))
        return ask(self, table)

    monkeypatch.setattr(type(decision), "refuses", asked)
    return sizes


@pytest.mark.parametrize("number", range(len(MODELS)), ids=["trees", "linear"])
def test_runs_that_are_read_are_those_that_asking_finds(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    decision, _, out = explained(number)
    rows, asked = asked_row_by_row(out)
    monkeypatch.setattr(enough, "FEW", 1)
    out._enough(rows)  # lays the model out over the values, and tries it on some
    sizes = counting(decision, monkeypatch)
    assert out._enough(rows) == asked
    levels = sum(part.feature == "home" for parts in asked for part in parts)
    assert 0 < sum(sizes) <= 4 * sum(len(parts) for parts in asked) + 3 * levels


@pytest.mark.parametrize("number", range(len(MODELS)), ids=["trees", "linear"])
def test_runs_that_were_read_wrongly_are_asked_for(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read one value too far, or not far enough, is not what the model says at the ends."""
    _, _, out = explained(number)
    rows, asked = asked_row_by_row(out)
    monkeypatch.setattr(enough, "FEW", 1)
    profiles, met = out.profiles, set()
    assert profiles is not None
    for way in (-1, 1):

        def shifted(*given: Any, way: int = way) -> Any:
            read = {j: np.roll(fits, way, axis=1) for j, fits in profiles(*given).items()}
            met.update(read)
            return read

        wrong = replace(out, profiles=shifted)
        assert wrong._enough(rows) == asked
        monkeypatch.setattr(enough, "_asked", believing(enough._asked))
        assert wrong._enough(rows) != asked  # the twin that takes the model's yes for granted
        monkeypatch.undo()
        monkeypatch.setattr(enough, "FEW", 1)
    assert len(met) == 2


def believing(ask: Any) -> Any:
    """Asks nothing where several things would be asked at once: ends change the outcome, what is outside does not."""

    def asked(decision: fw.Decision, turned: pd.DataFrame, cells: Any) -> Any:
        if len(cells) == 1:
            return ask(decision, turned, cells)
        return [np.full(len(rows), k % 4 > 1) for k, (_, rows, _) in enumerate(cells)]

    return asked


def test_other_values_are_laid_out_anew() -> None:
    _, _, out = explained(1)
    moved = np.zeros((len(out), 3), dtype=bool)
    moved[:, 0] = True
    assert out.profiles is not None
    low, high = (out.profiles(out.turned(), moved, {0: grid})[0] for grid in (np.arange(5.0), np.arange(55.0, 60.0)))
    assert low.mean() > high.mean()


def test_nothing_is_read_of_a_model_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enough, "FEW", 1)
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    refs = fw.references.supplied(decision, {"debt": [20]}, X={"debt": [0, 20, 100]})
    out = fw.Explainer(decision, refs).explain({"debt": [90, 80]})
    assert out.profiles is not None
    assert out.profiles(out.turned(), out.answers.moved, {0: np.arange(100.0)}) == {}
    assert [str(part) for (part,) in out._enough([0, 1])] == ["debt 49 or less"] * 2


def test_the_value_just_outside_does_not_change_the_outcome_and_both_ends_do() -> None:
    for number in range(len(MODELS)):
        decision, X, out = explained(number)
        for answer in out:
            for part in out.enough(answer.row):
                if part.low is None:
                    continue
                step = 1 if part.feature == "debt" else 10
                values = [part.low, part.high, (part.low * step - 1) / step, (part.high * step + 1) / step]
                rows = pd.concat([out.turned().iloc[[answer.row]]] * 4, ignore_index=True)
                changes = ~decision.verdicts(rows.assign(**{part.feature: values})).positive
                assert changes[:2].all()
                seen = (X[part.feature].min() <= values[2], values[3] <= X[part.feature].max())
                assert not (changes[2:] & seen).any()


def test_a_sentence_and_json_say_how_much_is_enough() -> None:
    _, X, out = explained(1)
    answers = [out[k] for k in np.flatnonzero(out.answers.moved.any(axis=1)).tolist()]
    alone = next(answer for answer in answers if answer.sev == 1 and answer.changes[0].feature == "debt")
    (part,) = out.enough(alone.row)
    assert alone.how_much.startswith(f"If debt had been {part.high} or less instead of {alone.changes[0].before}, ")
    written = json.loads(out.to_json(enough=True))["answers"][alone.row]["enough"]
    assert written == [
        {"feature": "debt", "shown": part.shown, "low": int(X["debt"].min()), "high": part.high, "whole": True}
    ]
    assert "enough" not in json.loads(out.to_json())["answers"][alone.row]
    accepted = next(answer for answer in out if answer.status == fw.Status.ALREADY_NEGATIVE)
    assert out[accepted.row].how_much == str(accepted)
    several = [answer for answer in answers if (answer.sev or 0) > 1]
    assert all("Each range holds with the other changes as shown." in answer.how_much for answer in several)


def test_values_outside_are_never_claimed_and_nothing_is_said_of_sev_plus() -> None:
    decision, X, out = explained(0)
    for answer in out:
        parts = out.enough(answer.row)
        assert [part.feature for part in parts] == [change.feature for change in answer.changes]
        assert all(part.low <= part.shown <= part.high for part in parts if part.low is not None)
    refs = fw.references.single(decision, *people())
    with pytest.raises(UsageError, match="SEV"):
        fw.Explainer(decision, refs, direction="plus").explain(X).enough(0)
