import re
from pathlib import Path

import pandas as pd
import pytest

from fewest import datasets
from fewest.errors import DataError
from fewest.experiments.paper import Store, find, load_split, run_table, summarise
from fewest.experiments.paper.data import checksum, load_whole
from fewest.experiments.paper.models import _encoder
from fewest.experiments.paper.sizes import SizesTable, encoded, questions

SHARED = Path(__file__).parents[4] / "shared" / "data"
TEX = Path(__file__).parents[4] / "shared" / "paper" / "improving-decision-sparsity.tex"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the data folder ../shared/data is not here")


def test_german_has_the_printed_sizes() -> None:
    table = find("sizes")
    (line,) = summarise(table, run_table(table, ["german"], 1, Store()))
    assert [cell.mean for cell in line.cells.values()] == [1000, 20, 59, 20]
    assert [line.cells[name].difference for name in ("rows", "features", "encoded")] == [0, 0, 0]


@needs_shared
@pytest.mark.parametrize(
    ("dataset", "sizes"),
    [
        ("compas", (6_907, 7, 7, 7)),
        ("adult", (32_561, 14, 107, 14)),
        pytest.param("diabetes", (101_766, 33, 96, 33), marks=pytest.mark.slow),
        ("fico", (10_459, 23, 23, 23)),
        ("headline", (41_752, 13, 18, 18)),
        ("mimic_demo", (130, 14, 14, 14)),
    ],
)
def test_the_shared_tables_have_the_known_sizes(dataset: str, sizes: tuple[int, ...]) -> None:
    (record,) = SizesTable(folder=SHARED).cells(dataset, 0, lambda line: None)
    assert tuple(record.figures.values()) == sizes


@needs_shared
@pytest.mark.parametrize("dataset", ["adult", "german", "compas"])
def test_columns_are_counted_as_the_models_encoder_makes_them(dataset: str) -> None:
    X, _ = load_whole(dataset, SHARED)
    assert encoded(X) == _encoder(X).fit(X).transform(X[:1]).shape[1]
    assert encoded(X.assign(extra=["abc"[k % 3] for k in range(len(X))])) == encoded(X) + 3  # it is not a constant


def test_ticks_of_one_question_count_once() -> None:
    columns = list(datasets.book("headline").names)
    assert questions(pd.DataFrame(columns=columns), "headline") == 13
    assert questions(pd.DataFrame(columns=columns[:12]), "headline") == 12


@pytest.mark.skipif(not TEX.is_file(), reason="the paper's source is not here")
def test_every_printed_size_stands_in_the_paper() -> None:
    source = TEX.read_text(encoding="utf-8")
    table = source[source.index(r"\textsc{Observations}") : source.index(r"\label{tab:datasets}")]
    found = re.findall(r"^[\w -]+ & ([\d,]+) & (\d+) & (\d+)", table, flags=re.M)
    typed = [tuple(figure.mean for figure in figures.values()) for figures in SizesTable.published.values()]
    assert [tuple(float(part.replace(",", "")) for part in row) for row in found] == typed
    assert len(found) == 7


def test_an_original_file_without_a_schema_is_enough(tmp_path: Path) -> None:
    rows = pd.DataFrame({name: [f"{10 + k}.5" for k in range(10)] for name in datasets.book("mimic").names})
    rows = rows.assign(mechvent="1", electivesurgery="0", hospital_expire_flag=["0", "1"] * 5)
    file = tmp_path / "oasis.csv"
    rows.to_csv(file, index=False)
    with pytest.warns(UserWarning, match="10 complete stays"):
        assert len(load_split("mimic", 0, tmp_path).X_train) == 8
    first = checksum("mimic", tmp_path)
    file.write_text(file.read_text().replace("19.5", "20.5"))
    assert checksum("mimic", tmp_path) != first
    with pytest.raises(DataError, match=r"has no schema\.json"):
        checksum("adult", tmp_path)
