"""Files as spreadsheets write them are read, and one bad row does not end a batch."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fewest.apps.cli import main
from fewest.apps.cli._files import read_table
from fewest.errors import DataError
from fewest.tables.schema import Schema


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("a;b\n1,5;x\n2,25;y\n", 1.5, "semicolons between columns and decimal commas"),
        ("a;b\n1.5;x,z\n2.25;y\n", 1.5, "semicolons between columns\n"),
        ("a,b\n1.5,x;y;z\n2.25,y\n", 1.5, ""),
        ('"a;;";b\n3;x\n', 3, "semicolons"),
        ('a,"b;c;d;e"\n3,x\n', 3, ""),
    ],
)
def test_semicolons_and_decimal_commas_are_read_and_said(
    text: str, value: float, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.csv"
    path.write_text(text)
    table = read_table(path)
    assert table.shape[1] == 2
    assert table.iloc[0, 0] == value
    printed = capsys.readouterr().err
    assert said in printed
    assert bool(printed) == bool(said)


def test_a_table_with_other_separators_is_named() -> None:
    schema = Schema.infer(pd.DataFrame({"a": [1, 2], "b": [1, 2]}))
    with pytest.raises(DataError, match="they are separated with ';'"):
        schema.conform(pd.DataFrame({"a;b": ["1;2"]}))


def call(files: Any, data: Path, *more: str) -> int:
    return main(["explain", str(data), *files.arguments[2:], "--positive", "bad", *more])


@pytest.fixture
def flawed(files: Any, tmp_path: Path) -> Path:
    cases = pd.read_csv(files.data).astype({"age": "object"})
    cases.loc[7, "code"] = "Z99"
    cases.loc[30, "age"] = "old"
    cases.insert(0, "application", [f"A-{row}" for row in range(len(cases))])
    cases.to_csv(tmp_path / "cases.csv", index=False)
    return tmp_path / "cases.csv"


def test_bad_rows_are_set_aside_with_their_reasons(
    files: Any, flawed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = flawed.with_name("out.csv")
    assert call(files, flawed, "--out", str(out)) == 3
    assert not out.exists()
    assert call(files, flawed, "--out", str(out), "--unseen", "skip", "--id", "application") == 0
    assert "2 of 120 rows are left out" in capsys.readouterr().err
    rejected = pd.read_csv(flawed.with_name("rejected.csv"))
    assert rejected["row"].tolist() == [7, 30]
    assert rejected["case"].tolist() == ["A-7", "A-30"]
    assert rejected["reason"][0].startswith('column "code": value ')
    assert "Z99" in rejected["reason"][0]
    assert "old" in rejected["reason"][1]
    answers = pd.read_csv(out)
    assert len(answers) == 118
    assert not set(rejected["case"]) & set(answers["case"])


def test_nothing_is_written_where_every_row_is_sound(files: Any, tmp_path: Path) -> None:
    assert call(files, files.data, "--out", str(tmp_path / "out.csv"), "--unseen", "skip") == 0
    assert not (tmp_path / "rejected.csv").exists()


def test_a_table_without_a_sound_row_is_refused(files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pd.read_csv(files.data).assign(code="Z99").iloc[:4].to_csv(tmp_path / "cases.csv", index=False)
    assert call(files, tmp_path / "cases.csv", "--out", str(tmp_path / "out.csv"), "--unseen", "skip") == 3
    assert "no row can be explained" in capsys.readouterr().err
    assert call(files, tmp_path / "cases.csv", "--out", str(tmp_path / "run"), "--unseen", "skip") == 3
    assert "no row can be explained" in capsys.readouterr().err
