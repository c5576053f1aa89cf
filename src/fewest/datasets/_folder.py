"""Tables of a data folder: one CSV each, with types, levels and checksums in the ``schema.json`` beside them."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.datasets._dataset import Dataset, describe, is_text
from fewest.errors import DataError

SOURCES = {
    "adult": "UCI Machine Learning Repository, Adult (CC BY 4.0)",
    "compas": "ProPublica's COMPAS analysis, compas-scores-two-years.csv",
    "diabetes": "UCI Machine Learning Repository, Diabetes 130-US hospitals (CC BY 4.0)",
    "fico": "FICO's Explainable Machine Learning Challenge, HELOC (on request; no open licence)",
    "headline": "Chen, Pennycook and Rand, What Makes News Sharable on Social Media? (no licence stated)",
    "mimic_demo": "PhysioNet, MIMIC-III Clinical Database Demo 1.4 (ODbL 1.0)",
}
CLASSES = {
    "german": ("good", "bad"),
    "adult": ("up to 50K", "above 50K"),
    "compas": ("not re-arrested", "re-arrested"),
    "diabetes": ("not readmitted", "readmitted"),
    "fico": ("good", "bad"),
    "headline": ("would not share", "would share"),
    "mimic_demo": ("survived", "died"),
}
SCHEMA = "schema.json"


def load_folder(name: str, folder: Path | None) -> Dataset:
    """Read one table of a data folder and check it against the folder's schema."""
    source = SOURCES.get(name, "the package itself: leave path out")
    if folder is None:
        raise DataError(
            f'the dataset "{name}" is not inside the package',
            do=f"get it from {source}, and pass path= or set FEWEST_DATA to its folder",
        )
    book, target = _entry(name, folder)
    file = folder / book["file"]
    if not file.is_file():
        raise DataError(f"there is no file {book['file']} in {folder}", do=f"get it from {source}")
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != book["sha256"]:
        raise DataError(
            f"{book['file']} in {folder} is not the file {SCHEMA} describes (its sha256 differs)",
            do=f"get it from {source}",
        )
    columns = book["columns"]
    table = pd.read_csv(
        io.BytesIO(content),
        compression="gzip" if file.suffix == ".gz" else None,
        dtype={entry["name"]: "str" for entry in columns if is_text(entry)},
        keep_default_na=False,
        na_values=[""],
        low_memory=False,
    )
    X = table[[entry["name"] for entry in columns]]
    y = table[target].to_numpy(dtype=np.int64)
    return Dataset(name, X, y, book["target"], CLASSES[name], describe(X, columns), book["source"], book["licence"])


def _entry(name: str, folder: Path) -> tuple[dict[str, Any], str]:
    """The dataset's part of the folder's schema and the name of the target column."""
    file = folder / SCHEMA
    try:
        schema = json.loads(file.read_text(encoding="utf-8"))
        return schema["datasets"][name], schema["target_column"]
    except FileNotFoundError:
        raise DataError(f"there is no {SCHEMA} in {folder}", do="name the folder with the tables") from None
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise DataError(
            f'{file} does not describe a dataset "{name}": {type(error).__name__}',
            do="use the schema.json that came with the tables",
        ) from error
