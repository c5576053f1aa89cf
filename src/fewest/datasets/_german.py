"""German Credit from the original bytes inside the package, decoded by the codebook beside them.

Source: UCI Machine Learning Repository, Statlog (German Credit Data), donated by H. Hofmann, CC BY 4.0.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from fewest.datasets._dataset import Dataset, describe
from fewest.errors import DataError

CLASSES = ("good", "bad")
BAD = "2"  # the source's code of the bad class


def load_german() -> Dataset:
    """The embedded table: 1,000 rows, 20 features, 1 = bad credit."""
    here = resources.files("fewest.datasets")
    book = json.loads((here / "german.json").read_text(encoding="utf-8"))
    raw = gzip.decompress((here / "german.data.gz").read_bytes())
    if hashlib.sha256(raw).hexdigest() != book["sha256"]:
        raise DataError("the embedded German Credit file is damaged", do="install the package again")
    rows = [line.split() for line in raw.decode("ascii").splitlines() if line.strip()]
    *features, target = zip(*rows, strict=True)
    X = pd.DataFrame(
        {entry["name"]: _decode(cells, entry) for entry, cells in zip(book["columns"], features, strict=True)}
    )
    y = np.array([int(label == BAD) for label in target], dtype=np.int64)
    columns = [{**entry, "levels": _levels(X[entry["name"]], entry)} for entry in book["columns"]]
    return Dataset("german", X, y, book["target"], CLASSES, describe(X, columns), book["source"], book["licence"])


def _decode(cells: tuple[str, ...], entry: dict[str, Any]) -> pd.Series[Any]:
    codes = entry.get("codes")
    if codes is None:
        return pd.Series([int(cell) for cell in cells])
    return pd.Series([codes[cell] for cell in cells], dtype="str")


def _levels(column: pd.Series[Any], entry: dict[str, Any]) -> list[str]:
    """Labels that occur, in the codebook's order."""
    present = set(column)
    return [label for label in entry.get("codes", {}).values() if label in present]
