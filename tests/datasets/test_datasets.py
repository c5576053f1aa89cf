import gzip
import hashlib
import json
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewest.datasets import Dataset, load, names
from fewest.datasets import _german as german_module
from fewest.errors import DataError, UsageError

SHARED = Path(__file__).parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the data folder ../shared/data is not here")


def test_german_has_the_known_shape_types_and_labels() -> None:
    german = load("german")
    assert german.X.shape == (1000, 20)
    assert german.y.sum() == 300
    assert set(np.unique(german.y)) == {0, 1}
    assert german.y.dtype == np.int64
    assert not german.X.isna().to_numpy().any()
    assert german.schema.names == tuple(german.X.columns)
    assert german.licence == "CC BY 4.0"
    assert "Hofmann" in german.provenance


def test_the_embedded_bytes_are_the_original_ones_and_compressed_without_a_date() -> None:
    packed = (resources.files("fewest.datasets") / "german.data.gz").read_bytes()
    assert packed[4:8] == bytes(4)
    assert hashlib.sha256(gzip.decompress(packed)).hexdigest() == (
        "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"
    )


def test_a_damaged_embedded_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(german_module.gzip, "decompress", lambda raw: b"A11 6\n")
    with pytest.raises(DataError, match="damaged"):
        load("german")


def test_ordinal_text_is_ordered_in_the_schema_and_other_text_is_not() -> None:
    schema = load("german").schema
    employment = schema.features[schema.index("employment_since")]
    assert employment.ordered
    assert employment.levels[0] == "unemployed"
    assert employment.levels[-1] == "7 years or more"
    assert not schema.features[schema.index("purpose")].ordered


def test_the_schema_accepts_its_own_table() -> None:
    german = load("german")
    pd.testing.assert_frame_equal(german.schema.conform(german.X), german.X)


def test_two_loads_do_not_share_a_table() -> None:
    first = load("german")
    first.X.loc[0, "age"] = 1
    assert load("german").X.loc[0, "age"] == 67


@needs_shared
def test_the_decoded_german_table_equals_the_shared_one_cell_by_cell() -> None:
    embedded, shared = load("german"), load("german", SHARED)
    plain = pd.read_csv(SHARED / "german.csv")
    pd.testing.assert_frame_equal(embedded.X, plain.drop(columns="target"))
    pd.testing.assert_frame_equal(embedded.X, shared.X)
    assert np.array_equal(embedded.y, plain["target"])
    assert embedded.schema == shared.schema


@needs_shared
@pytest.mark.parametrize("name", names())
def test_every_shared_table_fits_its_own_description(name: str) -> None:
    data = load(name, SHARED)
    entry = json.loads((SHARED / "schema.json").read_text())["datasets"][name]
    assert isinstance(data, Dataset)
    assert data.X.shape == (entry["rows"], entry["features"])
    assert data.y.sum() == entry["positives"]
    assert data.X.isna().sum().to_dict() == {column["name"]: column["missing"] for column in entry["columns"]}
    for column in entry["columns"]:
        if isinstance(column.get("levels", [0])[0], str):
            assert pd.api.types.is_string_dtype(data.X[column["name"]].dropna())


@needs_shared
def test_the_folder_can_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWEST_DATA", str(SHARED))
    assert len(load("compas")) == 6907


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"there is no dataset .*\n  Do: choose from german, adult"):
        load("germany")


def test_without_a_folder_the_error_says_where_to_get_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    with pytest.raises(DataError, match="UCI Machine Learning Repository, Adult"):
        load("adult")


def _folder(path: Path, content: bytes, sha256: str) -> Path:
    columns = [{"name": "code", "type": "categorical", "levels": ["007", "250.00"]}, {"name": "age", "type": "numeric"}]
    entry = {"file": "compas.csv", "target": "t", "source": "s", "licence": "l", "sha256": sha256, "columns": columns}
    (path / "schema.json").write_text(json.dumps({"target_column": "target", "datasets": {"compas": entry}}))
    (path / "compas.csv").write_bytes(content)
    return path


TINY = b"code,age,target\n007,30,1\n250.00,,0\n,50,0\n"


def test_codes_stay_text_and_empty_cells_stay_missing(tmp_path: Path) -> None:
    data = load("compas", _folder(tmp_path, TINY, hashlib.sha256(TINY).hexdigest()))
    assert data.X["code"].tolist()[:2] == ["007", "250.00"]
    assert data.X.isna().sum().tolist() == [1, 1]
    assert data.y.tolist() == [1, 0, 0]


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sha256 differs"):
        load("compas", _folder(tmp_path, TINY + b"007,1,1\n", hashlib.sha256(TINY).hexdigest()))


@pytest.mark.parametrize(("missing", "said"), [("compas.csv", "no file compas.csv"), ("schema.json", "no schema.json")])
def test_a_missing_file_is_named(tmp_path: Path, missing: str, said: str) -> None:
    folder = _folder(tmp_path, TINY, hashlib.sha256(TINY).hexdigest())
    (folder / missing).unlink()
    with pytest.raises(DataError, match=said):
        load("compas", folder)


@pytest.mark.parametrize("text", ["{", "[]", '{"datasets": {}}'])
def test_a_wrong_schema_file_is_a_data_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "schema.json").write_text(text)
    with pytest.raises(DataError, match="does not describe"):
        load("compas", tmp_path)
