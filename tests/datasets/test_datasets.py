import gzip
import hashlib
import json
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewest.datasets import Dataset, book, load, names
from fewest.datasets import _load as german_module
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


def test_guesses_name_features_of_the_table() -> None:
    german = load("german")
    assert set(german.protected) <= set(german.immutable) <= set(german.X.columns)
    assert german.protected == ("personal_status_sex", "age", "foreign_worker")
    assert "credit_amount" not in german.immutable


@pytest.mark.parametrize("name", names())
def test_every_codebook_is_whole(name: str) -> None:
    known = book(name)
    assert len(set(known.names)) == len(known.columns) > 0
    assert known.marked("protected") or name == "fico"
    assert set(known.marked("protected")) <= set(known.marked("immutable"))
    assert known.licence
    assert "\n" not in known.get
    assert known.files
    assert bool(known.digest) == (name != "mimic")
    assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in known.known)


@needs_shared
def test_the_codebooks_say_what_the_shared_schema_says() -> None:
    shared = json.loads((SHARED / "schema.json").read_text())["datasets"]
    for name, entry in shared.items():
        known = book(name)
        assert known.names == tuple(column["name"] for column in entry["columns"])
        assert (known.rows, known.positives) == (entry["rows"], entry["positives"])
        assert {entry["sha256"]} <= known.known
        guessed = tuple(column["name"] for column in entry["columns"] if column["mutability"] == "immutable")
        assert known.marked("immutable") == guessed
        for ours, theirs in zip(known.columns, entry["columns"], strict=True):
            assert ours["type"] == theirs["type"]
            assert ours.get("levels") == theirs.get("levels")
            assert ours.get("unit") == theirs.get("unit")


@needs_shared
def test_codes_stay_text() -> None:
    X = load("diabetes", SHARED).X
    assert "250.01" in set(X["diag_1"])
    assert X["diag_1"].isna().sum() == 21
    assert set(X["a1c_result"]) == {">7", ">8", "Norm", "Not measured"}


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
@pytest.mark.parametrize("name", [name for name in names() if name != "mimic"])
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
    with pytest.raises(UsageError, match=r"there is no dataset .*\n  Try: choose from german, adult"):
        load("germany")


def test_without_a_folder_the_error_says_where_to_get_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    with pytest.raises(DataError, match=r"path= or set FEWEST_DATA; get it: adult\.data of UCI.*CC BY 4\.0"):
        load("adult")
