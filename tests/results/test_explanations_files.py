"""Answers as files for spreadsheets."""

from pathlib import Path

import pandas as pd
import pytest

import fewest as fw
from fewest.errors import UsageError
from fewest.results import export


def answers() -> fw.Explanations:
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    refs = fw.references.supplied(decision, {"debt": [20], "job": ["clerk"]})
    cases = pd.DataFrame({"debt": [90, 10], "job": ["=1+1", "a\x07b"]}, index=["=A1", "B"])
    return fw.Explainer(decision, refs, unseen="allow").explain(cases)


def test_excel_holds_the_same_table_as_csv(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="openpyxl is not installed (extra excel)")
    out = answers()
    out.to_excel(tmp_path / "out.xlsx")
    out.to_csv(tmp_path / "out.csv")
    excel, text = pd.read_excel(tmp_path / "out.xlsx"), pd.read_csv(tmp_path / "out.csv")
    pd.testing.assert_frame_equal(excel, text, check_dtype=False)
    assert excel["case"].tolist() == ["'=A1", "B"]
    assert excel["sentence"].iloc[0].startswith("If debt had been 20 instead of 90")


def test_nothing_in_a_sheet_is_a_formula(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed (extra excel)")
    answers().to_excel(tmp_path / "out.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} <= {"s", "inlineStr", "n", "b"}
    assert sheet.freeze_panes == "B2"


def test_a_table_that_is_larger_than_a_sheet_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openpyxl", reason="openpyxl is not installed (extra excel)")
    monkeypatch.setattr(export, "MOST_ROWS", 1)
    with pytest.raises(UsageError, match="holds 1 rows, not 2"):
        answers().to_excel(tmp_path / "out.xlsx")
