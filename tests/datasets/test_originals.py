"""Originals are decoded step by step; where a shared table can be written back in the original's form, all of it is."""

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewest.datasets import Dataset, book, load
from fewest.datasets._originals import STEPS, decode
from fewest.errors import DataError, FewestWarning

SHARED = Path(__file__).parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the data folder ../shared/data is not here")


def shared(file: str) -> pd.DataFrame:
    return pd.read_csv(SHARED / file, dtype="str", keep_default_na=False)


def csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


def adult() -> bytes:
    table = shared("adult.csv.gz").replace("", "?")
    table["target"] = table["target"].map({"0": "<=50K", "1": ">50K"})
    return "\n".join([*(", ".join(row) for row in table.itertuples(index=False)), "", ""]).encode()


def fico() -> bytes:
    return csv(shared("fico.csv").rename(columns={"target": "RiskPerformance"}))


def headline() -> bytes:
    table = shared("headline.csv.gz")
    names = {entry["name"]: entry.get("source_name", entry["name"]) for entry in book("headline").columns}
    table = table.rename(columns={**names, "target": "y"})
    outcome = table.pop("y")
    table.insert(table.columns.get_loc("economic_conserv") + 1, "y", outcome)
    return csv(table)


def compas() -> bytes:
    """The columns that count, with those of the source that have the same name twice, and 307 people without a date."""
    table = shared("compas.csv").rename(columns={"target": "two_year_recid", "charge_degree": "c_charge_degree"})
    table["c_charge_degree"] = table["c_charge_degree"].str[0]
    counts = table[["juvenile_crimes", "juv_fel_count", "juv_misd_count"]].astype(int)
    table["juv_other_count"] = (2 * counts["juvenile_crimes"] - counts.sum(axis=1)).astype(str)
    table = table.drop(columns="juvenile_crimes").assign(days_b_screening_arrest="-1", name="somebody, of theirs")
    table = pd.concat([table, table[:307].assign(days_b_screening_arrest="")]).sort_index(kind="stable")
    table.insert(len(table.columns), "again", "99")
    return csv(table.rename(columns={"again": "priors_count"}))


def diabetes() -> bytes:
    table = shared("diabetes.csv.gz")
    for entry in book("diabetes").columns:
        back = {label: code for code, label in reversed(entry.get("codes", {}).items())}
        table[entry["name"]] = table[entry["name"]].replace(back).replace("", "?")
    table["target"] = np.where(table["target"] == "0", "NO", np.where(np.arange(len(table)) % 2 == 0, "<30", ">30"))
    names = {entry["name"]: entry.get("source_name", entry["name"]) for entry in book("diabetes").columns}
    return csv(table.rename(columns={**names, "target": "readmitted"}).assign(encounter_id="7", patient_nbr="9"))


@needs_shared
@pytest.mark.parametrize(
    ("make", "file", "change", "sha256"),
    [
        (
            adult,
            "adult.data",
            (b" 77516,", b" 77517,"),
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        ),
        (fico, "fico.txt", (b"\n55,", b"\n56,"), "d08177838e0fd20c071702106787f026f1f21654961ed12144675fc2ebd41f00"),
        (
            headline,
            "headline_total.csv",
            (b",40,", b",41,"),
            "94d084ac224aa02483f68628217f616210d7dfc2e583b011d4de4dc304c775be",
        ),
        (compas, "compas-scores-two-years.csv", (b"Male,69,", b"Male,68,"), None),
        pytest.param(diabetes, "diabetic_data.csv", (b",[10-20),", b",[0-10),"), None, marks=pytest.mark.slow),
    ],
)
def test_an_original_gives_the_shared_table(
    make: Callable[[], bytes], file: str, change: tuple[bytes, bytes], sha256: str | None, tmp_path: Path
) -> None:
    content = make()
    assert sha256 is None or hashlib.sha256(content).hexdigest() == sha256, "these are not the original bytes"
    (tmp_path / file).write_bytes(content)
    name = make.__name__
    data, other = load(name, tmp_path), load(name, SHARED)
    pd.testing.assert_frame_equal(data.X, other.X)
    assert np.array_equal(data.y, other.y)
    assert data.schema == other.schema
    (tmp_path / file).write_bytes(content.replace(*change, 1 if name != "compas" else 99))
    with pytest.raises(DataError, match="the checksum of its values differs"):
        load(name, tmp_path)


@needs_shared
def test_a_heloc_file_in_words_is_the_one_in_numbers(tmp_path: Path) -> None:
    table = shared("fico.csv")
    table.insert(0, "RiskPerformance", table.pop("target").map({"0": "Good", "1": "Bad"}))
    with gzip.open(tmp_path / "mine.csv.gz", "wb") as file:
        file.write(csv(table).replace(b"\n", b"\r\n"))
    pd.testing.assert_frame_equal(load("fico", tmp_path / "mine.csv.gz").X, load("fico", SHARED).X)


def test_the_original_german_file_is_the_embedded_one(tmp_path: Path) -> None:
    from importlib import resources

    packed = (resources.files("fewest.datasets") / "german.data.gz").read_bytes()
    (tmp_path / "german.data").write_bytes(gzip.decompress(packed))
    inside = load("german")
    for place in (tmp_path, tmp_path / "german.data"):
        data = load("german", place)
        pd.testing.assert_frame_equal(data.X, inside.X)
        assert np.array_equal(data.y, inside.y)


def test_adults_are_read_with_blanks_and_question_marks() -> None:
    content = (
        b"39, State-gov, 77516, Bachelors, 13, Never-married, ?, Not-in-family, White, Male, 2174, 0, 40, Cuba, <=50K\n"
        b"50, ?, 83311, Doctorate, 16, Divorced, Sales, Husband, White, Male, 0, 0, 13, ?, >50K\n\n"
    )
    X, y = decode(book("adult"), content, "adult.data")
    assert y.tolist() == [0, 1]
    assert X.isna().sum().sum() == 3
    assert X.loc[0, ["age", "workclass", "native_country"]].tolist() == [39, "State-gov", "Cuba"]
    assert X["age"].dtype == np.int64


def test_compas_leaves_out_who_was_not_screened_and_sums_what_children_did() -> None:
    content = (
        b"sex,age,juv_fel_count,juv_misd_count,juv_other_count,priors_count,days_b_screening_arrest,c_charge_degree,"
        b"priors_count,two_year_recid\n"
        b"Male,20,1,2,4,5,-1,F,9,1\nFemale,30,0,0,0,0,,M,9,0\nFemale,40,0,0,1,0,0,M,9,0\n"
    )
    X, y = decode(book("compas"), content, "compas.csv")
    assert y.tolist() == [1, 0]
    assert X.index.tolist() == [0, 1]
    assert X["juvenile_crimes"].tolist() == [7, 1]
    assert X["priors_count"].tolist() == [5, 0]
    assert X["charge_degree"].tolist() == ["Felony", "Misdemeanor"]


def stays(rows: int = 3) -> pd.DataFrame:
    """Stays as a user's own derivation may give them: other case, other order, more columns."""
    names = [entry["name"] for entry in book("mimic").columns]
    table = pd.DataFrame({name: [f"{10 + k}.5" for k in range(rows)] for name in names})
    table = table.assign(mechvent="1", electivesurgery="0", hospital_expire_flag=["1", "0", "0"][:rows], subject_id="8")
    return table[list(reversed(table.columns))].rename(columns=str.upper)


def load_stays(table: pd.DataFrame, folder: Path) -> Dataset:
    (folder / "oasis_mimiciii.csv").write_bytes(csv(table))
    with pytest.warns(FewestWarning, match=r"complete stays; the paper has 48,786"):
        return load("mimic", folder)


def test_mimic_takes_any_order_and_case_and_leaves_out_stays_with_a_gap(tmp_path: Path) -> None:
    table = stays()
    table.loc[1, "GCS"] = "NULL"
    data = load_stays(table, tmp_path)
    assert data.X.columns.tolist() == list(book("mimic").names)
    assert data.X["gcs"].tolist() == [10.5, 12.5]
    assert data.y.tolist() == [1, 0]
    assert data.X["mechvent"].dtype == np.int64
    assert "Credentialed" in data.licence


@needs_shared
def test_the_demo_written_as_a_users_file_gives_its_complete_stays(tmp_path: Path) -> None:
    table = shared("mimic_demo.csv").rename(columns={"target": "hospital_expire_flag"}).sample(frac=1, axis=1)
    data, demo = load_stays(table, tmp_path), load("mimic_demo", SHARED)
    whole = demo.X.notna().all(axis=1).to_numpy()
    assert len(data) == 130
    assert np.array_equal(data.X.to_numpy(dtype=float), demo.X[whole].to_numpy(dtype=float))
    assert np.array_equal(data.y, demo.y[whole])


def test_the_finished_oasis_table_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    table = stays().drop(columns=["HEARTRATE_MIN", "HEARTRATE_MAX"]).assign(HEARTRATE="80")
    (tmp_path / "oasis.csv").write_bytes(csv(table))
    with pytest.raises(DataError, match=r"lacks 2 columns: heartrate_min, heartrate_max\n.*lowest and highest"):
        load("mimic", tmp_path)


def test_a_column_that_is_there_in_two_cases_is_refused(tmp_path: Path) -> None:
    (tmp_path / "oasis.csv").write_bytes(csv(stays().assign(gcs="3")))
    with pytest.raises(DataError, match='has the column "gcs" twice'):
        load("mimic", tmp_path)


def test_every_dataset_has_steps() -> None:
    from fewest.datasets import names

    assert set(STEPS) == set(names())
