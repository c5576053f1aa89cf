"""Tables that are not what they should be: each is named, and never yields a number."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.errors import DataError, FewestError, MissingExtraError, UsageError
from fewest.runs.cases import Cases, find

SCHEMA = fw.Schema.infer(
    pd.DataFrame({"debt": [1, 2], "rate": [0.5, 0.25], "code": ["A07", "B10"], "flag": [True, False]})
)
GOOD = "debt,rate,code,flag\n1,0.5,A07,true\n2,0.25,B10,False\n"


def read(path: Path, schema: fw.Schema = SCHEMA, **more: Any) -> pd.DataFrame:
    cases = Cases(find(path), schema, 2, **more)
    return pd.concat([cases.typed(part) for part in cases.parts()])


def test_a_good_table_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("\ufeffflag,extra,code,rate,debt\n" + "1,x,A07,0.1,1\n" + "\n" + '0,"y\nz","B10",1e-3,3.0\n')
    frame = read(path)
    assert frame["debt"].tolist() == [1, 3]
    assert frame["rate"].tolist() == [0.1, 0.001]
    assert frame["code"].tolist() == ["A07", "B10"]
    assert frame["flag"].tolist() == [True, False]
    assert frame.dtypes.tolist() == [SCHEMA.dtypes[name] for name in SCHEMA.columns]
    packed = tmp_path / "cases.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    pd.testing.assert_frame_equal(read(packed), frame)


def test_missing_values_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("debt,rate,code,flag\nNA,,null,true\n2,nan,n/a,false\n3,0.123456789012345678,A07,true\n")
    frame = read(path)
    assert frame["rate"].isna().tolist() == [True, True, False]
    assert frame["rate"].iloc[2] == float("0.123456789012345678")
    assert frame["code"].isna().tolist() == [True, True, False]
    assert np.isnan(frame["debt"].iloc[0])


BAD = {
    "empty file": (b"", "it is empty"),
    "short row": (GOOD.encode() + b"3,0.5,A07\n", r"Expected 4 columns, got 3"),
    "long row": (GOOD.encode() + b"3,0.5,A07,true,7\n", r"Expected 4 columns, got 5"),
    "long first row": (b"debt,rate,code,flag\n3,0.5,A07,true,7\n", r"Expected 4 columns, got 5"),
    "wrong encoding": ("debt,rate,code,flag\n1,0.5,Ä07,true\n".encode("latin-1"), "UTF-?8"),
    "wrong encoding of the header": ("débt,rate,code,flag\n".encode("latin-1"), "UTF-8"),
    "UTF-16": (GOOD.encode("utf-16"), "UTF-8|NUL"),
    "NUL bytes": (GOOD.encode() + b"3,0.5,A\x0007,true\n", "NUL bytes"),
    "duplicate columns": (b"debt,rate,code,flag,debt\n1,1,A07,true,1\n", '"debt" more than once'),
    "missing columns": (b"debt,code\n1,A07\n", "lacks 2 of 4 columns: rate, flag"),
    "text in numbers": (GOOD.encode() + b"much,0.5,A07,true\n", "much"),
    "underscores in numbers": (GOOD.encode() + b"1_000,0.5,A07,true\n", "1_000"),
    "unseen level": (GOOD.encode() + b"1,0.5,Z99,true\n", "'Z99' was never seen"),
    "no truth": (GOOD.encode() + b"1,0.5,A07,perhaps\n", "perhaps"),
    "infinite": (GOOD.encode() + b"1,inf,A07,true\n", 'row 2 of the data, column "rate": it is infinite'),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_csv_is_named(name: str, tmp_path: Path) -> None:
    data, said = BAD[name]
    path = tmp_path / "cases.csv"
    path.write_bytes(data)
    with pytest.raises(DataError, match=said):
        read(path)


def test_the_good_table_raises_nothing(tmp_path: Path) -> None:
    """Negative control of the table above."""
    (tmp_path / "cases.csv").write_text(GOOD)
    assert len(read(tmp_path / "cases.csv")) == 2


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text("debt,rate,code,flag\n")
    with pytest.raises(DataError, match="has no rows"):
        Cases(find(tmp_path / "cases.csv"), SCHEMA).head(5)


def test_an_error_names_the_row_of_the_data_even_in_a_later_part(tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text(GOOD + "1,0.5,A07,true\n" * 3 + "1,0.5,Z99,true\n")
    with pytest.raises(DataError, match=r"rows 4 to 5 of the data: .*index 5\).*Z99"):
        read(tmp_path / "cases.csv")


def test_unseen_levels_can_be_left_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text(GOOD + "1,0.5,Z99,true\n")
    assert read(tmp_path / "cases.csv", unseen="allow")["code"].iloc[2] == "Z99"


def test_dates_that_are_none_are_named(tmp_path: Path) -> None:
    schema = fw.Schema.infer(pd.DataFrame({"day": pd.to_datetime(["2026-01-01", "2026-02-01"])}))
    path = tmp_path / "cases.csv"
    path.write_text("day\n2026-01-05\n2026-01-06\n")
    assert read(path, schema)["day"].tolist() == [pd.Timestamp("2026-01-05"), pd.Timestamp("2026-01-06")]
    path.write_text("day\n2026-01-05\nsoon\n")
    with pytest.raises(DataError, match="soon"):
        read(path, schema)


def test_dtypes_may_drift_between_files_as_long_as_values_fit(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frames = [
        pd.DataFrame({"debt": [1, 2], "rate": [1, 2], "code": ["A07", "B10"], "flag": [True, False]}),
        pd.DataFrame({"debt": [1.0, 2.0], "rate": [0.5, None], "code": ["A07", None], "flag": [1, 0]}),
        pd.DataFrame({"debt": ["1", "2"], "rate": [0.5, 1], "code": ["A07", "B10"], "flag": [True, False]}),
    ]
    for k, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{k}.parquet")
    frame = read(tmp_path)
    assert frame["debt"].tolist() == [1, 2] * 3
    frames[2].assign(debt=["1", "few"]).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(DataError, match="'few' is not a number"):
        read(tmp_path)


@pytest.mark.parametrize("debt", [pd.to_datetime(["2026-01-01"]), [True], pd.to_timedelta([1])])
def test_times_and_truth_values_in_parquet_are_not_taken_for_numbers(debt: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pd.DataFrame({"debt": debt, "rate": 0.5, "code": "A07", "flag": True}).to_parquet(tmp_path / "cases.parquet")
    with pytest.raises(DataError, match=r'column "debt" holds .*, where the model was trained on numbers'):
        read(tmp_path / "cases.parquet")


def test_an_irregular_row_is_named_by_its_line_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text("debt,rate,code,flag\n1,0.5,A07,True\n2,0.5,B10,False,Jane Doe\n")
    with pytest.raises(DataError, match="Row #3: Expected 4 columns, got 5") as raised:
        read(tmp_path / "cases.csv")
    assert "Jane" not in str(raised.value)


@pytest.mark.parametrize("name", ["empty", "cut", "text"])
def test_bad_parquet_is_named(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "cases.parquet"
    pd.DataFrame({"debt": range(1000), "rate": 0.5, "code": "A07", "flag": True}).to_parquet(path)
    data = path.read_bytes()
    path.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "text": b"debt,rate\n1,2\n"}[name])
    with pytest.raises(DataError, match=r"cases\.parquet cannot be read as a table"):
        read(path)


def test_parquet_with_missing_columns_or_damaged_pages_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "cases.parquet"
    pd.DataFrame({"debt": [1]}).to_parquet(path)
    with pytest.raises(DataError, match="lacks 3 of 4"):
        read(path)
    frame = pd.DataFrame({"debt": range(1000), "rate": 0.5, "code": "A07", "flag": True})
    frame.to_parquet(path, compression="zstd")
    data = bytearray(path.read_bytes())
    data[40:300] = b"\xff" * 260
    path.write_bytes(data)
    with pytest.raises(DataError, match="cannot be read"):
        read(path)


def test_files_and_folders_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file"):
        find(tmp_path / "absent.csv")
    with pytest.raises(DataError, match="holds no table"):
        find(tmp_path)
    (tmp_path / "a.xlsx").write_text("x")
    with pytest.raises(DataError, match="no known kind"):
        find(tmp_path / "a.xlsx")
    with pytest.raises(UsageError, match="no table is named"):
        find([])


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cases.parquet"
    path.write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"fewest\[runs\]"):
        read(path)
    assert issubclass(MissingExtraError, FewestError)
