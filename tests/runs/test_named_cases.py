"""Cases of a run folder are called what the data call them, and rows that cannot be explained do not end it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fewest as fw
from fewest.errors import DataError, UsageError
from fewest.reporting.views import Filter, PopulationView
from fewest.runs import Run, explain_files, verify
from fewest.runs.parts import read_certificates
from fewest.runs.run_files import canonical
from fewest.runs.storage import digest

X = pd.DataFrame({"debt": [80, 20, 90, 70, 10, 95], "job": ["a", "b", "a", "b", "a", "b"]})
NAMES = [f"APP-{row:03}" for row in range(6)]


def score(rows: pd.DataFrame) -> Any:
    return rows["debt"].to_numpy(dtype=float) / 100


DECISION = fw.Decision(score, positive="bad")
EXPLAINER = fw.Explainer(DECISION, fw.references.supplied(DECISION, X.iloc[[1]], X=X), n_jobs=1)


def run(folder: Path, text: str, name: str = "run", **options: Any) -> Run:
    (folder / "cases.csv").write_text(text)
    return explain_files(EXPLAINER, folder / "cases.csv", folder / name, n_jobs=1, part_rows=2, **options)


def named(names: Any = NAMES) -> str:
    return X.assign(application=names).to_csv(index=False)


def problems(folder: Path, name: str = "run") -> list[str]:
    return verify(folder / name, folder / "cases.csv", DECISION).problems


def test_a_case_is_called_by_its_column_everywhere(tmp_path: Path) -> None:
    done = run(tmp_path, named(), id_column="application", alternatives=5)
    assert [done.explanation(row).label for row in range(6)] == NAMES
    assert done.table()["label"].tolist() == NAMES
    assert read_certificates(tmp_path / "run" / "part-00001.certificates.parquet")["label"].tolist() == NAMES[2:4]
    view = PopulationView(done)
    assert [line.label for line in view.cases(Filter("AGAINST"))] == [NAMES[row] for row in (0, 2, 3, 5)]
    assert view.cases(Filter("AGAINST"))[0].changes == ("debt 80 → 20",)
    assert view.find("APP-003") == 3
    assert view.find("3") is None
    assert view.csv().decode().splitlines()[1].startswith("0,APP-000,EXPLAINED")
    assert {point.label for point in view.closeness_points()} >= {"case APP-000"}
    assert problems(tmp_path) == []


def test_a_parquet_column_of_numbers_names_cases(tmp_path: Path) -> None:
    X.assign(number=range(100, 106)).to_parquet(tmp_path / "cases.parquet")
    done = explain_files(EXPLAINER, tmp_path / "cases.parquet", tmp_path / "run", n_jobs=1, id_column="number")
    assert done.table()["label"].tolist() == [str(row) for row in range(100, 106)]


def test_a_run_without_names_is_as_it_was(tmp_path: Path) -> None:
    done = run(tmp_path, X.to_csv(index=False))
    assert "label" not in done.table()
    assert "id" not in done.manifest["settings"]
    assert done.explanation(3).label == 3
    assert PopulationView(done).cases()[3].label == "3"
    assert PopulationView(done).csv().decode().startswith("row,status")


@pytest.mark.parametrize(
    ("names", "column", "said"),
    [
        (["A", "B", "C", "D", "B", "E"], "application", "row 4, column \"application\": 'B' is also in row 1"),
        (["A", "B", None, "D", "F", "E"], "application", 'row 2, column "application": it is empty'),
        (NAMES, "number", 'no column "number" to name cases by'),
    ],
)
def test_names_that_do_not_name_one_case_are_refused(names: Any, column: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        run(tmp_path, named(names), id_column=column)
    assert not (tmp_path / "run").exists()


def test_a_feature_does_not_name_cases(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a feature"):
        run(tmp_path, named(), id_column="job")


def test_another_column_of_names_is_another_run(tmp_path: Path) -> None:
    run(tmp_path, named(), id_column="application")
    with pytest.raises(UsageError, match=r"a setting \(id\)"):
        run(tmp_path, named())


def test_a_swapped_name_is_found(tmp_path: Path) -> None:
    """Negative control: a folder whose tables and checksums were all made anew, with two people exchanged."""
    swapped = NAMES.copy()
    swapped[0], swapped[2] = swapped[2], swapped[0]
    run(tmp_path, named(swapped), id_column="application")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    (tmp_path / "cases.csv").write_text(named())
    (file,) = manifest["data"]["files"]
    file.update(sha256=digest(named().encode()), bytes=len(named().encode()))
    manifest["data"]["sha256"] = digest(canonical(manifest["data"]["files"]))
    manifest.pop("seal")
    manifest["seal"] = digest(canonical(manifest))
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    assert problems(tmp_path) == ["row 0: it is called something else than in the data (2 in all: 0, 2)"]


BAD = "debt,job\n80,a\nmuch,b\n90,a\n70,yacht\n10,a\n95,b\ninf,b\n60,a\n"


def test_bad_rows_are_left_out_and_listed(tmp_path: Path) -> None:
    done = run(tmp_path, BAD, bad_rows="skip")
    rejected = pd.read_csv(tmp_path / "run" / "rejected.csv")
    assert rejected["row"].tolist() == [1, 3, 6]
    assert rejected["reason"].iloc[0] == "column \"debt\": 'much' is not a number"
    assert "yacht" in rejected["reason"].iloc[1]
    assert rejected["reason"].iloc[2] == 'column "debt": it is infinite'
    assert [done.explanation(row).label for row in range(5)] == ["0", "2", "4", "5", "7"]
    assert [len(part) for part in done.tables()] == [2, 2, 1]
    assert problems(tmp_path) == []
    assert run(tmp_path, BAD, bad_rows="skip").manifest == done.manifest
    with pytest.raises(DataError):
        run(tmp_path, BAD, "other")


def test_bad_rows_keep_the_names_of_the_others(tmp_path: Path) -> None:
    lines = BAD.splitlines()
    text = "\n".join(["id," + lines[0], *(f"N{row},{line}" for row, line in enumerate(lines[1:]))]) + "\n"
    done = run(tmp_path, text, bad_rows="skip", id_column="id")
    assert done.table()["label"].tolist() == ["N0", "N2", "N4", "N5", "N7"]
    assert pd.read_csv(tmp_path / "run" / "rejected.csv")["case"].tolist() == ["N1", "N3", "N6"]
    assert problems(tmp_path) == []


def test_good_rows_are_read_alike_whether_bad_ones_may_be_left_out(tmp_path: Path) -> None:
    plain, lenient = (run(tmp_path, X.to_csv(index=False), way, bad_rows=way) for way in ("error", "skip"))
    pd.testing.assert_frame_equal(plain.table(), lenient.table())
    assert (tmp_path / "skip" / "rejected.csv").read_text() == "row,case,reason\n"


def test_a_good_row_that_was_left_out_is_found(tmp_path: Path) -> None:
    """Negative control: whoever wants to hide a case lists it as rejected."""
    run(tmp_path, BAD.replace("60,a", "yes,a"), bad_rows="skip")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    (tmp_path / "cases.csv").write_text(BAD)
    (file,) = manifest["data"]["files"]
    file.update(sha256=digest(BAD.encode()), bytes=len(BAD.encode()))
    manifest["data"]["sha256"] = digest(canonical(manifest["data"]["files"]))
    manifest.pop("seal")
    manifest["seal"] = digest(canonical(manifest))
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    assert any(problem.startswith("row 7 of the data: it is left out") for problem in problems(tmp_path))


def test_a_table_in_which_no_row_is_good_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no row can be explained"):
        run(tmp_path, "debt,job\nx,a\n", bad_rows="skip")
