"""Every kind of table becomes the same frame, or is refused with a remedy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from fewest.errors import DataError
from fewest.tables.frames import mix, to_frame


def test_a_pandas_frame_is_not_copied() -> None:
    frame = pd.DataFrame({"a": [1]})
    assert to_frame(frame) is frame


def test_polars_and_arrow_give_the_same_as_pandas() -> None:
    polars = pytest.importorskip("polars")
    columns = {"n": [1.5, 2.0], "i": [1, 2], "s": ["a", "b"], "b": [True, False]}
    wanted = pd.DataFrame(columns)
    for foreign in (polars.DataFrame(columns), polars.DataFrame(columns).to_arrow()):
        got = to_frame(foreign)
        for name in columns:
            assert got[name].tolist() == wanted[name].tolist()
    assert to_frame(polars.DataFrame(columns))["i"].dtype == wanted["i"].dtype


def test_polars_nulls_become_missing() -> None:
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"n": [1, None], "s": ["a", None], "b": [True, None], "c": ["x", None]})
    got = to_frame(table.with_columns(table["c"].cast(polars.Categorical)))
    assert got.isna().sum().tolist() == [1, 1, 1, 1]
    assert isinstance(got["c"].dtype, pd.CategoricalDtype)


def test_sparse_matrices_and_arrays_are_read() -> None:
    array = np.array([[0.0, 1.0], [2.0, 0.0]])
    assert to_frame(sparse.csr_matrix(array)).to_numpy().tolist() == array.tolist()
    assert to_frame(array, ["p", "q"]).columns.tolist() == ["p", "q"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than once"),
        (pd.DataFrame([[1, 2]], columns=["a", 3]), "must be text"),
        (pd.Series([1, 2]), "Series"),
        (np.zeros(3), "1 dimension"),
        (object(), "not understood"),
    ],
)
def test_bad_tables_are_refused(table: object, words: str) -> None:
    with pytest.raises(DataError, match=words) as error:
        to_frame(table)
    assert "Try:" in str(error.value)


def test_mix_keeps_dtypes() -> None:
    a = pd.DataFrame(
        {
            "str": pd.Series(["p", "q"], dtype="str"),
            "category": pd.Categorical(["x", "y"], categories=["x", "y", "z"]),
            "nullable": pd.array([1, None], dtype="Int64"),
            "when": pd.to_datetime(["2020-01-01", "2021-01-01"]),
            "flag": [True, False],
        }
    )
    b = a.iloc[[1]].reset_index(drop=True)
    take = {name: np.array([True, False]) for name in a.columns}
    out = mix(a, b, np.array([0, 0]), take)
    assert (out.dtypes == a.dtypes).all()
    assert out.iloc[0].astype(str).tolist() == a.iloc[1].astype(str).tolist()
    assert out.iloc[1].astype(str).tolist() == a.iloc[1].astype(str).tolist()
    assert a["flag"].tolist() == [True, False]


@pytest.mark.parametrize("touched", [1, 7])
def test_mix_takes_few_or_many_columns_and_leaves_its_tables_alone(touched: int) -> None:
    """Whole numbers that meet others become numbers; the tables mixed from keep what they had."""
    a = pd.DataFrame({f"c{k}": [1, 2, 3] for k in range(8)}, index=[7, 8, 9]).assign(word=list("xyz"))
    b = pd.DataFrame({f"c{k}": [0.5, 1.5] for k in range(8)}).assign(word=["u", "v"])
    before = a.copy(deep=True), b.copy(deep=True)
    take = {f"c{k}": np.array([True, False, True]) for k in range(touched)} | {"word": np.array([False, True, False])}
    out = mix(a, b, np.array([0, 1, 1]), take)
    assert out["c0"].tolist() == [0.5, 2.0, 1.5]
    assert out["c7"].tolist() == [1, 2, 3]
    assert out["word"].tolist() == ["x", "v", "z"]
    assert out.index.tolist() == [7, 8, 9]
    assert out.columns.tolist() == a.columns.tolist()
    assert a.equals(before[0])
    assert b.equals(before[1])
    assert out["c0"].dtype == float
