"""A table of yours in the place of the paper's: what is refused, how it is cut, and that every page is made of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fewest.apps.cli import main
from fewest.datasets import load
from fewest.errors import DataError, MissingExtraError, UsageError
from fewest.experiments import paper
from fewest.experiments.paper import OwnData, Store, as_markdown, figures, load_split, run_table, summarise
from fewest.experiments.paper.base import fingerprint
from fewest.experiments.paper.data import checksum, load_whole
from fewest.experiments.paper.points import SevClusterTable


def loans(rows: int = 240) -> pd.DataFrame:
    """Text columns, truth values, whole numbers and missing values."""
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "income": random.normal(3000, 900, rows).round(2),
            "age": random.integers(18, 80, rows),
            "job": random.choice(["clerk", "smith", "cook"], rows),
            "owner": random.choice([True, False], rows),
        }
    )
    better = (table["income"] - 3000) / 900 + (table["job"] == "smith") + random.normal(0, 0.5, rows)
    table["y"] = np.where(better < 0, "bad", "good")
    table.loc[random.random(rows) < 0.05, "income"] = np.nan
    table.loc[random.random(rows) < 0.1, "job"] = None
    return table


@pytest.fixture(scope="module")
def own() -> OwnData:
    table = loans()
    return OwnData.read(table.drop(columns="y"), table["y"], "bad", name="loans", n_clusters=2)


def test_missing_numbers_leave_and_missing_levels_stay(own: OwnData) -> None:
    table = loans()
    assert own.left_out == table["income"].isna().sum() > 0
    assert not own.X.isna().any(axis=None)
    assert {"missing", "clerk", "smith", "cook"} == set(own.X["job"])
    assert set(own.X["owner"]) == {"True", "False"}
    assert own.y.tolist() == (table["y"] == "bad")[table["income"].notna()].astype(int).tolist()


def test_seeds_cut_it_as_the_papers_tables_are_cut() -> None:
    german = load("german")
    own = OwnData.read(german.X, german.y, 1, name="german")
    assert own.name == "my-german", "the printed figures of German Credit are not those of a table of that name"
    theirs, mine = load_split("german", 3), load_split("my-german", 3, own)
    pd.testing.assert_frame_equal(mine.X_test, theirs.X_test)
    assert mine.y_train.tolist() == theirs.y_train.tolist()


def test_splits_of_yours_are_positions_in_the_table_given(own: OwnData) -> None:
    rows = np.arange(len(own.kept))
    cut = own.with_splits([(rows[:180], rows[180:]), (rows[60:], rows[:60])])
    assert cut.splits is not None
    for split, test in enumerate((rows[180:], rows[:60])):
        income = loans().loc[test, "income"].dropna()
        assert load_split("loans", split, cut).X_test["income"].tolist() == income.tolist()
    assert cut.checksum != own.checksum
    with pytest.raises(UsageError, match="there are 2 splits, and no split 2"):
        load_split("loans", 2, cut)


@pytest.mark.parametrize(
    ("splits", "said"),
    [
        ([], "splits is empty"),
        ([([0, 1], [1, 2])], "split 0 has a row in both parts"),
        ([([0, 1], [500])], "names a row that is not there"),
        ([([0.5], [1])], "is not two lists of row positions"),
        ([([], [1])], "is not two lists of row positions"),
    ],
)
def test_a_split_that_is_none_is_refused(own: OwnData, splits: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        own.with_splits(splits)


def test_a_split_with_one_class_is_refused(own: OwnData) -> None:
    bad = np.flatnonzero((loans()["y"] == "bad") & loans()["income"].notna())
    with pytest.raises(DataError, match="split 0: a part has rows of one class only"):
        own.with_splits([(bad[:20], bad[20:])])


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"labels": ["bad"] * 40}, DataError, "there is one class"),
        ({"labels": ["bad", None] * 20}, DataError, r"row 1 has no label \(20 such rows\)"),
        ({"labels": ["bad", "good"] * 19}, DataError, "40 rows but 38 labels"),
        ({"positive": "awful"}, UsageError, 'no row has the label "awful"\n  Try: choose from bad, good'),
        ({"n_clusters": 17}, DataError, "16 negative training rows, fewer than the 17 clusters"),
        ({"n_clusters": 0}, UsageError, "n_clusters is 0"),
        ({"labels": ["bad"] * 5 + ["good"] * 35}, DataError, "5 positive and 35 negative rows"),
        ({"X": pd.DataFrame({"a": [np.nan] * 40})}, DataError, 'column "a" has no value in any row'),
        ({"X": pd.DataFrame({"a": [1.0, None] * 20, "b": [None, 1.0] * 20})}, DataError, "every row has a missing"),
        ({"X": pd.DataFrame(index=range(40))}, DataError, "no column beside the labels"),
        ({"X": pd.DataFrame([[1, 2]] * 40, columns=["a", "a"])}, DataError, 'column "a" more than once'),
    ],
)
def test_a_table_that_cannot_be_measured_is_refused(change: dict[str, Any], error: type, said: str) -> None:
    whole = {"X": pd.DataFrame({"a": range(40)}), "labels": ["bad", "good"] * 20, "positive": "bad", **change}
    with pytest.raises(error, match=said):
        OwnData.read(whole.pop("X"), whole.pop("labels"), whole.pop("positive"), **whole)


def test_a_name_that_nobody_knows_is_an_error_everywhere(own: OwnData) -> None:
    class Mine(SevClusterTable):
        datasets = ("loans",)

    for ask in (
        lambda: load_split("loans", 0),
        lambda: load_whole("loans"),
        lambda: checksum("loans"),
        lambda: fingerprint(Mine(), "loans"),
        lambda: run_table(Mine(), ["loans"], 1, Store()),
        lambda: paper.find("alloptc").settings("loans"),
        lambda: figures.draw(figures.find("regions"), ["loans"], {}),
        lambda: load_split("german", 0, own),
    ):
        with pytest.raises(UsageError, match="loans"):
            ask()


def test_a_preset_without_its_package_is_an_error_and_the_other_lines_are_measured(
    own: OwnData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pacmap", None)
    with pytest.raises(MissingExtraError, match="pacmap"):
        paper.find("sevc", own, quick=True, preset="paper").cells("loans", 0, lambda line: None)
    settings = paper.find("sevc", own, quick=True).settings("loans")
    assert list(settings["lines"]) == ["clusters"]


def test_a_page_of_your_table_has_no_printed_column_and_says_what_was_left_out(own: OwnData) -> None:
    table = paper.find("sizes", own)
    page = as_markdown(table, summarise(table, run_table(table, ["loans"], 1, Store())))
    assert "printed" not in page
    assert f"{own.left_out} of {len(own.kept)} left out because a number is missing" in page
    assert "MIMIC" not in page
    assert table.datasets == ("loans",)


@pytest.mark.slow
def test_the_sensitivity_of_a_table_with_text(own: OwnData) -> None:
    table = paper.find("sensitivity", own, quick=True)
    found = {record.method: record.figures for record in table.cells("loans", 0, lambda line: None)}
    assert found["L2LR r"]["decided"] > 0
    assert found["L2LR r"]["sev"] >= 1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "loans.csv"
    loans().to_csv(path, index=False)
    return path


def test_one_table_of_a_csv_file(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = ["--csv", str(file), "--target", "y", "--positive", "bad"]
    assert main(["paper", "table", "sizes", *own, "--splits", "1", "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)["lines"]
    assert line["dataset"] == "loans"
    assert line["figures"]["features"]["mean"] == 4


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--target", "y"], 2, "add --csv FILE"),
        (["--csv", "FILE"], 2, "--csv needs --target and --positive"),
        (["--csv", "FILE", "--target", "z", "--positive", "bad"], 3, 'has no column "z"'),
        (["--csv", "FILE", "--target", "y", "--positive", "ugly"], 2, 'no row has the label "ugly"'),
        (["--csv", "FILE", "--target", "income", "--positive", "1"], 3, "has no label"),
        (["--csv", "FILE", "--target", "y", "--positive", "bad", "--data", "german"], 2, "leave --data"),
        (["--csv", "no.csv", "--target", "y", "--positive", "bad"], 3, "there is no file"),
        (["--csv", "FILE", "--target", "y", "--positive", "bad", "--n-clusters", "900"], 3, "fewer than the 900"),
    ],
)
def test_wrong_options_name_the_remedy(
    options: list[str], code: int, said: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(file) if option == "FILE" else option for option in options]
    assert main(["paper", "all", *given, "--out", str(tmp_path / "out")]) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def pages_of(out: Path) -> set[str]:
    return {path.stem.removesuffix("-quick") for path in out.glob("*.md")} - {"index"}


@pytest.mark.slow
@pytest.mark.parametrize("table", ["loans", "cancer"])
def test_every_page_is_made_of_a_table_nobody_prepared(
    table: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, positive = "y", "bad"
    if table == "cancer":
        from sklearn.datasets import load_breast_cancer

        file, target, positive = tmp_path / "cancer.csv", "target", "0"
        load_breast_cancer(as_frame=True).frame.to_csv(file, index=False)
    call = ["paper", "all", "--csv", str(file), "--target", target, "--positive", positive, "--quick"]
    assert main([*call, "--out", str(tmp_path / "out")]) == 0, capsys.readouterr().err
    assert pages_of(tmp_path / "out") == {*paper.names(), f"examples-{table}"}
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "What failed" not in page
    cases = (tmp_path / "out" / f"examples-{table}-quick.md").read_text(encoding="utf-8")
    assert "SEV-cluster, paper's procedure" in cases
    assert "The paper does not say" not in cases, "that is said of the paper's data alone"
    assert {path.stem.removesuffix("-quick") for path in (tmp_path / "out" / "figures").iterdir()} == set(
        figures.names()
    )


@pytest.mark.slow
def test_all_of_it_from_python_with_splits_of_yours(own: OwnData, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(paper, "names", lambda: ("sizes", "trees"))
    monkeypatch.setattr(figures, "names", lambda: ("regions",))
    rows = np.arange(len(own.kept))
    results = paper.run(own, out=tmp_path, splits=[(rows[60:], rows[:60]), (rows[:180], rows[180:])], quick=True)
    assert results.failed == []
    assert [line.splits for line in results.tables[1].lines] == [2, 2, 2, 2, 2]
    assert (tmp_path / "index.html").is_file()
