"""What people read, read back into a row, turns the model: sentence, tables, CSV and letter."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import parsed_back
import pytest
from paper_data import paper_data as paper_data

import fewest as fw
from fewest.experiments.benchmarking import subjects
from fewest.experiments.paper import data_folder
from fewest.reporting import Code, Codes, letter
from fewest.results.explanation import Status
from fewest.results.explanations import Explanations
from fewest.tables.schema import Schema

ASKED = 2000
Rows = dict[str, list[dict[str, Any]]]


@lru_cache(maxsize=16)
def explained(name: str, kind: str, most: int) -> Explanations:
    """Explanations of a model on a dataset, with all smallest sets, towards references that are signed."""
    if name != "german" and data_folder() is None:
        pytest.skip("the paper's data are not here (FEWEST_DATA)")
    subject = subjects.subject(name, "l2lr" if kind == "tree" else kind)
    decision, refs, cases = subject.decision, subject.references, subject.cases
    if kind == "tree":
        from sklearn.pipeline import make_pipeline
        from sklearn.tree import DecisionTreeClassifier

        X_train, X_test, y_train, _ = subjects.load(name)
        tree = DecisionTreeClassifier(max_depth=6, min_samples_leaf=5, random_state=0)
        model = make_pipeline(decision.model[0], tree).fit(X_train, y_train)
        decision = fw.Decision(model, positive=1)
        refs = fw.references.leaves(decision, X_train, y_train)
        frame = refs.schema.conform(X_test, unseen="allow")
        cases = frame[decision.verdicts(frame).positive]
    explainer = fw.Explainer(decision, refs.sign_off("Test"), n_jobs=1, unseen="allow")
    return explainer.explain(cases.iloc[: most + most // 4], alternatives=ASKED)


def explained_rows(out: Explanations, most: int) -> list[int]:
    return [int(row) for row in np.flatnonzero(out.to_frame()["status"] == Status.EXPLAINED)[:most]]


def case_of(out: Explanations, row: int) -> dict[str, Any]:
    return {column: out.frame[column].iloc[row] for column in out.frame.columns}


def read_back(out: Explanations, most: int) -> Rows:
    """For each surface the rows that reading it gives."""
    schema, rows = out.schema, {}
    codes = Codes.of(Code(name, "any", f"R{j:02}", f"Reason {j}") for j, name in enumerate(schema.names))
    table, lines = out.to_frame(), parsed_back.of_csv(out.to_csv(), schema)
    chosen = explained_rows(out, most)

    def collect(surface: str, read: Callable[[int], dict[str, Any]]) -> None:
        rows[surface] = [read(row) for row in chosen]

    def turned(row: int, changes: Any) -> dict[str, Any]:
        return parsed_back.turned_row(case_of(out, row), changes, schema)

    answers = {row: out[row] for row in chosen}
    letters = {row: letter(answers[row], codes, out.references) for row in chosen}

    def listed(row: int) -> list[parsed_back.Change]:
        names, values = table["features"].iloc[row], table["to"].iloc[row]
        return [(name, after, None) for name, after in zip(names, values, strict=True)]

    def facts(row: int) -> dict[str, Any]:
        return dict(zip(schema.names, (fact.after for fact in answers[row].facts), strict=True))

    collect("sentence", lambda row: turned(row, parsed_back.of_sentence(str(answers[row]), schema)))
    collect("html", lambda row: whole(schema, parsed_back.of_table(answers[row]._repr_html_(), schema)))
    collect("facts", lambda row: whole(schema, facts(row)))
    collect("frame", lambda row: turned(row, listed(row)))
    collect("csv", lambda row: turned(row, lines[row]))
    collect("letter", lambda row: turned(row, parsed_back.of_letter(letters[row].text, schema)))
    collect("html letter", lambda row: turned(row, parsed_back.of_html_letter(letters[row].html, schema)))
    return rows


def whole(schema: Schema, values: dict[str, Any]) -> dict[str, Any]:
    assert set(values) == set(schema.names)
    return {c: cell for f in schema.features for c, cell in parsed_back.cells_of(f, values[f.name]).items()}


def not_turned(out: Explanations, rows: Rows) -> dict[str, int]:
    """How many rows of each surface the model still decides against."""
    decision = out.references.decision
    return {
        surface: int(decision.verdicts(parsed_back.as_frame(read, out.schema)).positive.sum())
        for surface, read in rows.items()
    }


def check(out: Explanations, most: int) -> int:
    rows = read_back(out, most)
    counts = {len(read) for read in rows.values()}
    assert len(counts) == 1
    assert not any(not_turned(out, rows).values())
    truth = out.turned()
    expected = truth.iloc[explained_rows(out, most)].reset_index(drop=True)
    for read in rows.values():
        pd.testing.assert_frame_equal(parsed_back.as_frame(read, out.schema), expected, check_dtype=False)
    return counts.pop()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("german", "l2lr"),
        ("german", "gbdt"),
        pytest.param("german", "mlp", marks=pytest.mark.slow),
        ("german", "tree"),
        pytest.param("compas", "l2lr", marks=pytest.mark.slow),
        ("compas", "tree"),
    ],
)
def test_every_surface_read_back_turns_the_model(name: str, kind: str) -> None:
    assert check(explained(name, kind, 25), 25) == 25


@pytest.mark.slow
def test_every_surface_of_two_thousand_answers_read_back_turns_the_model() -> None:
    counts = {
        (name, kind): check(explained(name, kind, 400), 400)
        for name in ("german", "compas", "adult")
        for kind in ("l2lr", "gbdt", "mlp", "tree")
    }
    print(counts)
    assert sum(counts.values()) >= 2000


def two_digits(show: Callable[..., str]) -> Callable[..., str]:
    """A printer that rounds numbers to two digits after the search, as is often done."""

    def rounded(value: Any, *unit: Any) -> str:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return show(float(f"{value:.2g}") if number else value, *unit)

    return rounded


def rates(**named: dict[str, str]) -> Explanations:
    """Refusals by rates that are known to four decimals; the reference is close to the line."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({name: np.round(random.uniform(0, 1, 300), 4) for name in ("rate", "use", "share")})
    decision = fw.Decision(lambda rows: rows.to_numpy(dtype=float).mean(axis=1), positive="bad")
    goal = {name: [0.4996] for name in X}
    schema = Schema.infer(X)
    for name, words in named.items():
        schema = schema.with_(name, **words)
    refs = fw.references.supplied(decision, goal, X=X, schema=schema).sign_off("Test")
    return fw.Explainer(decision, refs, n_jobs=1).explain(X, alternatives=ASKED)


def test_numbers_close_to_the_line_read_back_turn_the_model() -> None:
    assert check(rates(), 60) == 60


def test_labels_and_units_read_back_turn_the_model() -> None:
    out = rates(rate={"label": "Rate of use", "unit": "%"}, use={"unit": "DM per month"}, share={"label": "a had been"})
    assert check(out, 60) == 60


def test_rounding_numbers_when_they_are_printed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of all the above: every surface that prints text loses answers then."""
    import fewest.reporting._letter
    import fewest.results.explanation

    out = rates()
    assert not any(not_turned(out, read_back(out, 60)).values())
    for module, name in (
        (fewest.results.explanation, "show_measured"),
        (fewest.results.explanation, "cell"),
        (fewest.reporting._letter, "show_measured"),
    ):
        monkeypatch.setattr(module, name, two_digits(getattr(module, name)))
    lost = not_turned(out, read_back(out, 60))
    assert {surface for surface, count in lost.items() if count} == {"sentence", "html", "letter", "html letter"}
    with pytest.raises(AssertionError):
        check(out, 60)
