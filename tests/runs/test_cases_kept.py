"""The cases stand beside the answers: a reader of the folder gets every explanation back, equal in all fields."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest.datasets import load
from fewest.errors import DataError
from fewest.models.trees import read_plain
from fewest.results.explanation import Explanation, Status
from fewest.runs import Run, explain_files, verify
from fewest.runs.parts import read_cases, write_cases
from fewest.runs.run_files import MANIFEST, canonical, sealed
from fewest.runs.storage import digest

CASES = 60
MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(C=0.1, max_iter=1000),
    "boosted": lambda: GradientBoostingClassifier(n_estimators=20, random_state=0),
    "network": lambda: MLPClassifier((8,), alpha=1.0, max_iter=2000, random_state=0),
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
}


@lru_cache
def german(model: str) -> tuple[fw.Decision, pd.DataFrame, np.ndarray]:
    from fewest.apps.cli._demo import pipeline

    data = load("german")
    fitted = pipeline(data, "logistic")
    fitted = Pipeline([fitted.steps[0], ("decide", MODELS[model]())])
    decision = fw.Decision(fitted.fit(data.X, data.labels), positive="bad")
    return decision, data.X, data.labels


def single(model: str, **choices: Any) -> fw.Explainer:
    decision, X, y = german(model)
    return fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1, **choices)


def leaves(**choices: Any) -> fw.Explainer:
    return fw.Explainer(german("tree")[0], tree_leaves(), n_jobs=1, **choices)


@lru_cache
def tree_leaves() -> fw.references.Leaves:
    return fw.references.leaves(*german("tree"))


def flexible() -> fw.Explainer:
    decision, X, y = german("boosted")
    some = X.iloc[np.flatnonzero((y == "good") & ~decision.verdicts(X).positive)[:3]]
    refs = fw.references.supplied(decision, some, X=X, assignment="sparsest").flexible(0.05, X=X, y=y)
    return fw.Explainer(decision, refs, n_jobs=1)


def credible(floor: float) -> fw.Explainer:
    decision, X, y = german("logistic")
    density = fw.credibility.neighbours(decision, X, y, quantile=floor)
    refs = fw.references.single(decision, X, y)
    return fw.Explainer(decision, refs, n_jobs=1, credibility=density, constraints=fw.Constraints(fw.AtMost(2)))


KINDS: dict[str, Callable[[], fw.Explainer]] = {
    "logistic": lambda: single("logistic"),
    "boosted": lambda: single("boosted"),
    "network": lambda: single("network"),
    "tree": lambda: single("tree"),
    "leaves": leaves,
    "leaves and weights": lambda: leaves(weights={"age": 2.5}),
    "plus": lambda: single("logistic", direction="plus"),
    "weights": lambda: single("boosted", weights={"age": 3, "duration_months": 0.25}),
    "hardly anything may change": lambda: single(
        "boosted", constraints=fw.Constraints(fw.AtMost(1), fw.Immutable("checking_status"))
    ),
    "stopped early": lambda: single("network", max_nodes=3, structure="opaque"),
    "flexible": flexible,
    "a floor": lambda: credible(0.5),
}


LONG = ("weights", "leaves and weights")  # each compiles a search of its own


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in LONG else []) for kind in KINDS]
)
def test_every_explanation_comes_back_equal_in_all_fields(kind: str, tmp_path: Path) -> None:
    seen.update(compare(KINDS[kind](), load("german").X.iloc[:CASES], tmp_path))


seen: Counter[Status] = Counter()


def test_all_statuses_came_back_above() -> None:
    if not seen:
        pytest.skip("the test above did not run")
    assert {status for status, count in seen.items() if count} == set(Status)


def compare(explainer: fw.Explainer, X: pd.DataFrame, folder: Path) -> Counter[Status]:
    X.to_parquet(folder / "cases.parquet")
    run = explain_files(explainer, folder / "cases.parquet", folder / "run", n_jobs=1, part_rows=50, alternatives=3)
    out = explainer.explain(X.reset_index(drop=True), alternatives=3)
    opened = Run.open(run.path)
    for row in range(len(out)):
        assert same(opened.explanation(row), out[row]), (opened.explanation(row), out[row])
    return Counter(answer.status for answer in out)


def same(told: Explanation, known: Explanation) -> bool:
    # The text of the fields shows types as well: 18 and 18.0 are equal, but not the same.
    one, other = ([repr(getattr(it, part.name)) for part in fields(it) if part.compare] for it in (told, known))
    return told == known and str(told) == str(known) and one == other


def test_a_difference_in_one_value_is_noticed() -> None:
    """Negative control of the comparison above."""
    out = single("logistic").explain(load("german").X.iloc[:20])
    answer = next(answer for answer in out if answer.changes)
    first = answer.changes[0]
    for broken in (
        replace(answer, changes=(replace(first, before="another"), *answer.changes[1:])),
        replace(answer, facts=answer.facts[:-1]),
        replace(answer, score=answer.score + 1e-12),
        replace(answer, row=float(answer.row)),  # type: ignore[arg-type]
    ):
        assert not same(broken, answer)
    assert same(answer, answer)


@pytest.mark.parametrize("direction", ["minus", "plus"])
def test_features_of_all_kinds_come_back(everything: Any, direction: Any, tmp_path: Path) -> None:
    explainer, X = everything
    compare(explainer.with_(direction=direction), X, tmp_path)


def test_narrow_numbers_come_back_as_people_wrote_them(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.normal(size=60).round(1), "b": random.normal(size=60).round(2)}, dtype="float32")
    decision = fw.Decision(lambda rows: rows["a"].to_numpy(dtype=float) + rows["b"].to_numpy(dtype=float), threshold=0)
    compare(fw.Explainer(decision, fw.references.supplied(decision, X.iloc[[3]] * 0 - 1, X=X)), X, tmp_path)


def test_kept_cases_are_the_cases(everything: Any, tmp_path: Path) -> None:
    explainer, X = everything
    frame = explainer.schema.conform(X)
    ending, data = write_cases(explainer.schema, frame)
    (tmp_path / ending).write_bytes(data)
    pd.testing.assert_frame_equal(read_cases(tmp_path / ending, explainer.schema), frame)
    one = read_cases(tmp_path / ending, explainer.schema, ["job"])
    pd.testing.assert_series_equal(one["job"], frame["job"])


def test_levels_of_several_types_are_kept_as_lines(tmp_path: Path) -> None:
    X = pd.DataFrame({"{a} \u2028": [1, "one", None, 2.5]}, dtype=object)
    schema = fw.Schema.infer(X)
    ending, data = write_cases(schema, X)
    assert ending == "cases.jsonl"
    (tmp_path / ending).write_bytes(data)
    back = read_cases(tmp_path / ending, schema)
    assert [None if pd.isna(cell) else cell for cell in back.iloc[:, 0]] == [1, "one", None, 2.5]


@pytest.fixture(scope="module")
def held(subject: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("held") / "run"
    return explain_files(subject.explainer, subject.parquet, folder, n_jobs=1, part_rows=300, title="A title").path


def test_without_cases_the_changed_values_are_still_told(subject: Any, held: Path, tmp_path: Path) -> None:
    run = explain_files(subject.explainer, subject.parquet, tmp_path / "run", n_jobs=1, part_rows=300, keep_cases=False)
    assert not list(run.path.glob("*.cases.*"))
    assert not run.keeps_cases
    full = Run.open(held)
    assert full.keeps_cases
    for row in range(0, 700, 23):
        short, whole = run.explanation(row), full.explanation(row)
        assert str(short) == str(whole)
        assert short.changes == whole.changes
        assert short.facts == tuple(fact for fact in whole.facts if fact.changed)


def test_a_rotten_file_of_cases_is_written_again(subject: Any, held: Path, fingerprint: Any, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(*_: Any) -> None:
        raise StopError

    choices = {"n_jobs": 1, "part_rows": 300, "title": "A title"}
    with pytest.raises(StopError):
        explain_files(subject.explainer, subject.parquet, tmp_path / "run", progress=stop, **choices)
    (tmp_path / "run" / "part-00000.cases.parquet").write_bytes(b"rotten")
    explain_files(subject.explainer, subject.parquet, tmp_path / "run", **choices)
    assert fingerprint(tmp_path / "run") == fingerprint(held)


def reseal(folder: Path, name: str) -> None:
    """What somebody does who changes a file and covers it up."""
    manifest = json.loads((folder / MANIFEST).read_text())
    for part in manifest["parts"]:
        data = (folder / part[name]["name"]).read_bytes()
        part[name].update(bytes=len(data), sha256=digest(data))
    manifest.pop("seal")
    (folder / MANIFEST).write_bytes(canonical(sealed(manifest)))


def test_verify_sees_a_case_that_was_changed_even_where_the_folder_was_sealed_again(
    subject: Any, held: Path, tmp_path: Path
) -> None:
    assert verify(held, subject.parquet, subject.decision).ok
    folder = tmp_path / "run"
    shutil.copytree(held, folder)
    path = folder / "part-00001.cases.parquet"
    frame = pd.read_parquet(path)
    frame.loc[7, "debt"] += 1
    frame.to_parquet(path)
    assert any("was changed after" in text for text in verify(folder, subject.parquet, subject.decision).problems)
    reseal(folder, "cases")
    report = verify(folder, subject.parquet, subject.decision)
    assert len(report.problems) == 1
    assert "row 307" in report.problems[0]
    assert "not the case that was explained" in report.problems[0]


def test_verify_misses_no_file_of_cases_and_no_tree(subject: Any, held: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(held, folder)
    (folder / "part-00001.cases.parquet").unlink()
    assert "part-00001.cases.parquet is missing" in verify(folder, subject.parquet, subject.decision).problems
    path = tmp_path / "cases.csv"
    X = load("german").X.iloc[:30]
    X.to_csv(path, index=False)
    explainer = single("tree")
    run = explain_files(explainer, path, tmp_path / "tree", n_jobs=1)
    assert verify(run.path, path, explainer.decision).ok
    (run.path / "tree.json").write_text("{}")
    assert "tree.json was changed after it was written" in verify(run.path, path, explainer.decision).problems


def test_a_tree_that_decides_stands_beside_and_no_other_model_does(subject: Any, held: Path, tmp_path: Path) -> None:
    from fewest.models.trees.file import load_tree

    X = load("german").X.iloc[:30]
    X.to_csv(tmp_path / "cases.csv", index=False)
    explainer = single("tree")
    run = explain_files(explainer, tmp_path / "cases.csv", tmp_path / "tree", n_jobs=1)
    tree = load_tree(run.path / "tree.json")
    frame = explainer.schema.conform(X)
    leaf = tree.apply(tree.encode(frame))
    assert (tree.positive[leaf] == explainer.decision.verdicts(frame).positive).all()
    assert not (held / "tree.json").exists()


def test_verify_checks_cases_that_enter_leaves(tmp_path: Path) -> None:
    data, folder = tmp_path / "cases.csv", tmp_path / "run"
    load("german").X.iloc[:CASES].to_csv(data, index=False)
    explainer = leaves(weights={"age": 2.5})
    run = explain_files(explainer, data, folder, n_jobs=1, alternatives=3)
    report = verify(folder, data, explainer.decision)
    assert report.problems == []
    assert report.unproved > 10
    report = verify(folder, data, explainer.decision, read_tree=read_plain)
    assert report.problems == []
    assert (report.unproved, report.reproved > 10) == (0, True)
    table = run.table()
    row = int(table.loc[table["features"].map(lambda names: "duration_months" in names), "row"].iloc[0])
    spoil(folder, row, "to", "duration_months", 72)
    told = verify(folder, data, explainer.decision).problems
    assert any(f"row {row}: its answer does not change the outcome" in text for text in told)


def spoil(folder: Path, row: int, column: str, feature: str, value: Any) -> None:
    """Change one value of an answer, and cover it up."""
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / "part-00000.parquet"
    table = parquet.read_table(path)
    cells = table.column(column).to_pylist()
    cells[row][table.column("features").to_pylist()[row].index(feature)] = json.dumps(value)
    place = table.column_names.index(column)
    parquet.write_table(table.set_column(place, column, pa.array(cells, pa.list_(pa.string()))), path)
    reseal(folder, "table")


def test_names_and_titles_are_in_the_manifest(held: Path) -> None:
    about = Run.open(held).manifest["about"]
    assert about == {
        "title": "A title", "model": "LogisticRegression", "positive": "bad", "outcome": "good", "percent": True,
        "plus": False, "weighted": False,
    }  # fmt: skip


def test_rows_and_names_outside_the_folder_are_refused(held: Path) -> None:
    run = Run.open(held)
    for row in (-1, 700):
        with pytest.raises(IndexError):
            run.explanation(row)
    for name in ("../references.json", "/etc/passwd", "", ".."):
        with pytest.raises(DataError, match="not the name of a file"):
            run.file(name)
