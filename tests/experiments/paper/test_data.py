import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from fewest import datasets
from fewest.errors import DataError, UsageError
from fewest.experiments.paper import data
from fewest.experiments.paper.data import checksum, data_folder, load_split

SHARED = Path(__file__).parents[4] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the data folder ../shared/data is not here")


def test_the_split_is_stratified_seeded_and_complete() -> None:
    rows, again, other = load_split("german", 3), load_split("german", 3), load_split("german", 4)
    german = datasets.load("german")
    _, expected = train_test_split(german.X, test_size=0.2, stratify=german.y, random_state=3)
    assert rows.X_test.index.tolist() == expected.index.tolist()
    assert again.X_test.index.tolist() == rows.X_test.index.tolist()
    assert other.X_test.index.tolist() != rows.X_test.index.tolist()
    assert set(rows.X_train.index) | set(rows.X_test.index) == set(range(1000))
    assert not set(rows.X_train.index) & set(rows.X_test.index)
    assert rows.y_test.tolist() == german.y[rows.X_test.index].tolist()
    assert rows.y_test.mean() == 0.3


def test_a_table_that_is_not_here_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert data_folder() is None
    with pytest.raises(DataError, match=r"FEWEST_DATA or pass --data-dir.*german works without"):
        load_split("compas", 0)
    with pytest.raises(DataError, match=r"has no schema\.json"):
        load_split("compas", 0, tmp_path)
    with pytest.raises(DataError, match="FEWEST_DATA"):
        checksum("compas")
    assert len(load_split("german", 0).X_train) == 800


@pytest.mark.parametrize("place", ["data", "../shared/data"])
def test_a_folder_near_the_working_directory_is_not_taken_for_the_papers(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    monkeypatch.chdir(tmp_path / "here")
    Path(place).mkdir(parents=True)
    (Path(place) / "schema.json").write_text("{}")
    assert data_folder() is None
    assert data_folder(place) == Path(place)


def test_a_dataset_nobody_knows_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no dataset"):
        load_split("atlantis", 0)


def test_the_variable_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text("{}")
    monkeypatch.setenv("FEWEST_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert data_folder(tmp_path / "elsewhere") is None
    with pytest.raises(DataError, match='does not describe "compas"'):
        checksum("compas")


def test_labels_become_the_smallest_code_they_were_made_from() -> None:
    columns = [
        {"name": "source", "source_name": "admission_source_id", "paper_set": True,
         "codes": {"15": "Not available", "9": "Not available", "1": "Referral"}},
        {"name": "weight", "source_name": "weight", "paper_set": False},
        {"name": "race", "source_name": "race", "paper_set": True, "codes": {"1": "a"}},
    ]  # fmt: skip
    X = pd.DataFrame({"source": ["Referral", "Not available"], "weight": ["x", "y"], "race": ["a", "a"]})
    out = data._as_the_paper(X, columns)
    assert out.columns.tolist() == ["source", "race"]
    assert out["source"].tolist() == [1, 9]
    assert out["source"].dtype == np.int64
    assert out["race"].tolist() == ["a", "a"]
    assert data._as_the_paper(X, columns[1:2]) is X


@needs_shared
def test_missing_levels_are_levels_and_adult_has_as_many_as_its_source() -> None:
    rows = load_split("adult", 0, SHARED)
    both = pd.concat([rows.X_train, rows.X_test])
    assert both.shape == (32_561, 14)
    assert int((both["workclass"] == "missing").sum()) == 1_836
    assert not both.isna().to_numpy().any()
    assert checksum("adult", SHARED) == json.loads((SHARED / "schema.json").read_text())["datasets"]["adult"]["sha256"]


@needs_shared
def test_rows_with_a_missing_number_are_left_out() -> None:
    rows = load_split("mimic_demo", 0, SHARED)
    assert len(rows.X_train) + len(rows.X_test) == 130


@pytest.mark.slow
@needs_shared
def test_diabetes_has_the_papers_columns_with_ids_as_integers() -> None:
    rows = load_split("diabetes", 0, SHARED)
    assert rows.X_train.shape == (81_412, 33)
    ids = ("admission_type", "discharge_disposition", "admission_source")
    assert all(rows.X_train[name].dtype == np.int64 for name in ids)
    both = pd.concat([rows.X_train, rows.X_test])
    assert int((both["admission_type"] == 1).sum()) == 53_990  # emergencies in the source
    assert both["admission_source"].nunique() == 17
