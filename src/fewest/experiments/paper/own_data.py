"""A table of yours in the place of the paper's datasets: read, checked, and cut into training and test rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest import datasets
from fewest.errors import DataError, UsageError, check_count, check_number

MISSING = "missing"
TEST_SHARE = 0.2
# Models with early stopping hold rows of both classes back, and All-Opt holds some back of what is left.
LEAST_OF_A_CLASS = 10
Split = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class OwnData:
    """A table with labels, and its splits; `OwnData.read` makes one of raw columns.

    Attributes
    ----------
    name : str
        What it is called on the pages and in the names of files.
    X : (n, features)
        Raw features, without a missing value.
    y : (n,) int
        0 or 1; 1 is the class being explained.
    splits : tuple of (training rows, test rows), or None
        Positions in the table that was given. None: four fifths and one fifth by seed, stratified, as the paper's.
    n_clusters, m
        Of SEV-cluster; the paper has a pair for each dataset.
    kept : (rows given,) bool
        Which rows of the table given are here; those with a missing number are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"debt": range(40), "job": ["clerk", None] * 20})
    >>> data = OwnData.read(X, ["good"] * 20 + ["bad"] * 20, positive="bad", name="loans")
    >>> data, data.X["job"].unique().tolist(), int(data.y.sum())
    (<loans: 40 rows, 2 features, 20 positive>, ['clerk', 'missing'], 20)
    """

    name: str
    X: pd.DataFrame
    y: npt.NDArray[np.int64]
    splits: tuple[Split, ...] | None
    n_clusters: int
    m: float
    kept: npt.NDArray[np.bool_]

    @classmethod
    def read(
        cls, X: Any, labels: Any, positive: Any, *, name: str = "own", splits: Sequence[tuple[Any, Any]] | None = None,
        n_clusters: int = 4, m: float = 1.01,
    ) -> OwnData:  # fmt: skip
        """Check a table and its labels.

        A missing level of a text column is a level of its own; rows with a missing number are left out, as the paper's
        experiments do. Labels that are not ``positive`` are taken together.
        """
        check_count("n_clusters", n_clusters)
        check_number("m", m, "use a number above 0", above=0)
        table = pd.DataFrame(X).reset_index(drop=True)
        table.columns = table.columns.map(str)
        y = _labels(labels, positive, len(table))
        table, whole = _without_gaps(table)
        made = cls(_safe(name), table[whole].reset_index(drop=True), y[whole], None, n_clusters, m, whole)
        made.check(0)
        return made if splits is None else made.with_splits(splits)

    def with_splits(self, splits: Sequence[tuple[Any, Any]]) -> OwnData:
        """The same table, cut by yours: pairs of training rows and test rows, as positions in the table given."""
        if len(splits) == 0:
            raise UsageError("splits is empty", do="pass at least one pair of training rows and test rows")
        cut = tuple(_split(number, pair, self.kept) for number, pair in enumerate(splits))
        made = replace(self, splits=cut)
        for number in range(len(cut)):
            made.check(number)
        return made

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"<{self.name}: {rows:,} rows, {features} features, {int(self.y.sum()):,} positive>"

    @property
    def left_out(self) -> int:
        """Rows of the table given that have a missing number."""
        return len(self.kept) - len(self.X)

    @property
    def checksum(self) -> str:
        """What tells one table, with its splits and clusters, from another."""
        parts = pd.util.hash_pandas_object(self.X, index=False).to_numpy().tobytes() + self.y.tobytes()
        splits = (
            b"" if self.splits is None else b"".join(part.tobytes() + b"/" for pair in self.splits for part in pair)
        )
        known = f"{list(self.X.columns)} {self.n_clusters} {self.m}".encode()
        return hashlib.sha256(parts + splits + known).hexdigest()

    def positions(self, split: int) -> Split:
        """Training rows and test rows of a split."""
        from sklearn.model_selection import train_test_split

        if self.splits is None:
            rows = np.arange(len(self.X))
            train, test = train_test_split(rows, test_size=TEST_SHARE, stratify=self.y, random_state=split)
            return train, test
        if split >= len(self.splits):
            raise UsageError(f"there are {len(self.splits)} splits, and no split {split}", do="ask for fewer splits")
        return self.splits[split]

    def parts(self, split: int) -> tuple[Any, Any, Any, Any]:
        """Training rows, test rows, and the labels of both."""
        train, test = self.positions(split)
        return self.X.iloc[train], self.X.iloc[test], self.y[train], self.y[test]

    def check(self, split: int) -> None:
        """Refuse a split with too few rows of a class to fit the models, or fewer rows than clusters."""
        if min(np.bincount(self.y, minlength=2)) < LEAST_OF_A_CLASS:
            few = np.bincount(self.y, minlength=2)
            raise DataError(
                f'"{self.name}" has {few[1]} positive and {few[0]} negative rows without a missing number; the models '
                f"need {LEAST_OF_A_CLASS} of each",
                do="add rows, or leave out columns with many missing numbers",
            )
        _, _, y_train, y_test = self.parts(split)
        if len(set(y_train.tolist())) < 2 or len(set(y_test.tolist())) < 2:
            raise DataError(f'"{self.name}", split {split}: a part has rows of one class only', do="cut it otherwise")
        negatives = int((y_train == 0).sum())
        if negatives < self.n_clusters:
            raise DataError(
                f'"{self.name}", split {split}: there are {negatives} negative training rows, fewer than the '
                f"{self.n_clusters} clusters",
                do=f"use at most {negatives} clusters",
            )


def _labels(labels: Any, positive: Any, rows: int) -> npt.NDArray[np.int64]:
    """1 where a label is the positive one; every label must be there, and both kinds."""
    given = pd.Series(np.asarray(labels, dtype=object))
    if len(given) != rows:
        raise DataError(f"there are {rows} rows but {len(given)} labels", do="pass one label per row")
    missing = given.isna()
    if missing.any():
        raise DataError(
            f"row {int(missing.argmax())} has no label ({int(missing.sum())} such rows)", do="leave these rows out"
        )
    found = given.unique().tolist()
    shown = ", ".join(str(label) for label in found[:6]) + (", ..." if len(found) > 6 else "")
    y = np.asarray(given == positive, dtype=np.int64)
    if not y.any():
        raise UsageError(f'no row has the label "{positive}"', do=f"choose from {shown}")
    if y.all():
        raise DataError(f'all rows have the label "{positive}": there is one class', do="add rows of the other class")
    return y


def _without_gaps(table: pd.DataFrame) -> tuple[pd.DataFrame, npt.NDArray[np.bool_]]:
    """Text and truth values as text, a missing one as a level; and the rows without a missing number."""
    twins = table.columns[table.columns.duplicated()]
    if len(twins):
        raise DataError(f'the table has the column "{twins[0]}" more than once', do="keep one of them")
    if table.shape[1] == 0:
        raise DataError("the table has no column beside the labels", do="add features")
    numbers = [
        name for name in table
        if pd.api.types.is_numeric_dtype(table[name].dtype) and not pd.api.types.is_bool_dtype(table[name].dtype)
    ]  # fmt: skip
    empty = [str(name) for name in table if table[name].isna().all()]
    if empty:
        raise DataError(f'column "{empty[0]}" has no value in any row', do="leave the column out")
    words = [name for name in table if name not in numbers]
    table = table.assign(**{name: table[name].astype(object).fillna(MISSING).astype("str") for name in words})
    whole = table[numbers].notna().all(axis=1).to_numpy()
    if not whole.any():
        raise DataError("every row has a missing number", do="leave out columns with many missing numbers")
    return table, np.asarray(whole)


def _split(number: int, pair: tuple[Any, Any], whole: npt.NDArray[np.bool_]) -> Split:
    """A pair of positions in the table given, as positions among the rows that are kept."""
    place = np.cumsum(whole) - 1
    parts = []
    for part in pair:
        rows = np.asarray(part)
        if rows.ndim != 1 or len(rows) == 0 or rows.dtype.kind not in "iu":
            raise UsageError(f"split {number} is not two lists of row positions", do="pass (training rows, test rows)")
        if rows.min() < 0 or rows.max() >= len(whole):
            raise UsageError(f"split {number} names a row that is not there", do=f"use positions below {len(whole)}")
        parts.append(place[rows[whole[rows]]])
    if np.intersect1d(*parts).size:
        raise UsageError(f"split {number} has a row in both parts", do="test on rows that were not trained on")
    return parts[0], parts[1]


def _safe(name: str) -> str:
    """The name as files and pages can have it, and not that of one of the paper's datasets."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "own"
    return f"my-{plain}" if plain in datasets.names() else plain
