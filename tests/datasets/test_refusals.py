"""A file that is not what was asked for is refused, with the reason and with where to get the right one."""

import gzip
import hashlib
import json
from importlib import resources
from pathlib import Path

import pandas as pd
import pytest

from fewest.datasets import book, load
from fewest.errors import DataError

SHARED = Path(__file__).parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the data folder ../shared/data is not here")


def german() -> list[str]:
    """Lines of the original."""
    packed = (resources.files("fewest.datasets") / "german.data.gz").read_bytes()
    return gzip.decompress(packed).decode().splitlines()


def write(folder: Path, lines: list[str]) -> Path:
    file = folder / "german.data"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_the_lines_themselves_are_accepted(tmp_path: Path) -> None:
    """Negative control of the refusals below."""
    assert len(load("german", write(tmp_path, german()))) == 1000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: lines[:-1], "gives 999 rows where there should be 1,000"),
        (lambda lines: [*lines, lines[0]], "gives 1,001 rows"),
        (lambda lines: [*lines[1:], lines[0]], "the checksum of its values differs"),
        (lambda lines: [lines[0].replace("1169", "1170"), *lines[1:]], "the checksum of its values differs"),
        (lambda lines: [*lines[:4], lines[4] + " 3", *lines[5:]], "line 5: 22 fields where there should be 21"),
        (lambda lines: [*lines[:4], "A11 6", *lines[5:]], "line 5: 2 fields where there should be 21"),
        (lambda lines: [lines[0].replace("A11 ", "A99 "), *lines[1:]], 'row 0, column "checking_status": .A99. is not'),
        (lambda lines: [lines[0].replace("1169", "much"), *lines[1:]], 'credit_amount": .much. is not a number'),
        (lambda lines: [lines[0][:-1] + "7", *lines[1:]], 'column "class": .7. is none of 2, 1'),
        (lambda lines: [], r"german\.data is empty"),
    ],
)  # fmt: skip
def test_a_changed_original_is_refused(change: object, said: str, tmp_path: Path) -> None:
    assert callable(change)
    with pytest.raises(DataError, match=said) as caught:
        load("german", write(tmp_path, change(german())))
    assert caught.value.do


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file or folder .*elsewhere\n.*archive\.ics\.uci\.edu"):
        load("adult", tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"neither adult\.data nor a schema\.json in .*\n.*CC BY 4\.0"):
        load("adult", tmp_path)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    (tmp_path / "heloc.csv").write_text("RiskPerformance,ExternalRiskEstimate\nBad,55\n")
    with pytest.raises(DataError, match=r"heloc\.csv lacks 22 columns: MSinceOldestTradeOpen"):
        load("fico", tmp_path / "heloc.csv")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"RiskPerformance,ExternalRiskEstimate\n", "has no rows"),
        (b"\xff\xfe\x00", "is not a text file"),
        (gzip.compress(b"RiskPerformance\nBad\n" * 50, mtime=0)[:-9], "cannot be read"),
        (b'RiskPerformance\n"' + b"x" * 200_000 + b'"\n', "line 2: field larger"),
        (b"PK\x03\x04", "has no rows"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "fico.txt").write_bytes(content)
    with pytest.raises(DataError, match=said):
        load("fico", tmp_path)


@needs_shared
@pytest.mark.parametrize(
    ("asked", "file", "said"),
    [
        ("mimic", "mimic_demo.csv", 'is not "mimic" but "mimic_demo", which has other terms: ODbL'),
        ("adult", "fico.csv", 'is not "adult" but "fico", which has other terms: FICO challenge terms'),
        ("fico", "headline.csv.gz", 'is not "fico" but "headline", which has other terms: no licence stated'),
    ],
)
def test_a_file_known_to_be_another_dataset_is_refused_for_its_terms(asked: str, file: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        load(asked, SHARED / file)
    assert 'load("' in str(caught.value.do)


@needs_shared
def test_a_packed_copy_of_another_dataset_is_known_as_well(tmp_path: Path) -> None:
    (tmp_path / "oasis.csv").write_bytes(gzip.compress((SHARED / "mimic_demo.csv").read_bytes()))
    with pytest.raises(DataError, match="other terms"):
        load("mimic", tmp_path)


TINY = (
    "sex,age,juv_fel_count,juv_misd_count,juvenile_crimes,priors_count,charge_degree,target\n"
    "Male,30,0,0,0,1,Felony,1\nFemale,,0,0,0,0,Misdemeanor,0\n"
)


def folder(path: Path, text: str = TINY, **changes: object) -> Path:
    """A data folder of one table."""
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    entry = {"file": "compas.csv", "sha256": sha256, "rows": 2, **changes}
    (path / "schema.json").write_text(json.dumps({"target_column": "target", "datasets": {"compas": entry}}))
    (path / "compas.csv").write_text(text)
    return path


def test_a_folder_that_describes_itself_is_read(tmp_path: Path) -> None:
    """Negative control of the refusals below."""
    data = load("compas", folder(tmp_path))
    assert data.y.tolist() == [1, 0]
    assert data.X["age"].isna().tolist() == [False, True]
    assert data.licence == book("compas").licence
    pd.testing.assert_frame_equal(load("compas", tmp_path / "compas.csv").X, data.X)


@pytest.mark.parametrize(
    ("text", "changes", "said"),
    [
        (TINY, {"sha256": "0"}, "sha256 differs"),
        (TINY, {"rows": 3}, r"has 2 rows where schema\.json says 3"),
        (TINY.replace("age", "old"), {}, r"compas\.csv lacks 1 columns: age"),
        (TINY.replace("target", "outcome"), {}, "lacks 1 columns: target"),
        (TINY.replace("Felony", "Treason"), {}, 'row 0, column "charge_degree": .Treason. is not one of'),
        (TINY.replace("Felony,1", "Felony,2"), {}, 'column "target": .2. is none of 1, 0'),
        (TINY.replace("Felony,1", "Felony,"), {}, 'column "target": .. is none of'),
        (TINY.replace("Felony,1", "Felony"), {}, "line 2: 7 fields where there should be 8"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused(
    text: str, changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=said):
        load("compas", folder(tmp_path, text, **changes))


def test_a_table_that_is_described_but_missing_is_named(tmp_path: Path) -> None:
    (folder(tmp_path) / "compas.csv").unlink()
    with pytest.raises(DataError, match=r"no file compas\.csv"):
        load("compas", tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"datasets": {}}', '{"datasets": {"compas": 3}}'])
def test_a_wrong_schema_file_is_a_data_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "schema.json").write_text(text)
    with pytest.raises(DataError, match="does not describe"):
        load("compas", tmp_path)


def test_an_original_beside_a_schema_without_it_is_read(tmp_path: Path) -> None:
    folder(tmp_path)
    write(tmp_path, german())
    assert len(load("german", tmp_path)) == 1000
