"""Find a dataset by name: the embedded one, or a file of a data folder."""

from __future__ import annotations

import os
from pathlib import Path

from fewest.datasets._dataset import Dataset
from fewest.datasets._folder import SOURCES, load_folder
from fewest.datasets._german import load_german
from fewest.errors import UsageError

ENVIRONMENT = "FEWEST_DATA"


def names() -> tuple[str, ...]:
    """Names that `load` knows.

    Examples
    --------
    >>> from fewest.datasets import names
    >>> names()
    ('german', 'adult', 'compas', 'diabetes', 'fico', 'headline', 'mimic_demo')
    """
    return ("german", *SOURCES)


def load(name: str, path: str | Path | None = None) -> Dataset:
    """Load a dataset.

    Parameters
    ----------
    name : str
        One of `names()`. ``german`` is inside the package.
    path : path, optional
        Folder that holds the table and its ``schema.json``; default: the folder that FEWEST_DATA names. With a path,
        ``german`` is read from there as well.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from fewest.datasets import load
    >>> german = load("german")
    >>> german.X[["checking_status", "duration_months", "purpose"]].head(2)
      checking_status  duration_months           purpose
    0      below 0 DM                6  radio/television
    1     0 to 200 DM               48  radio/television
    >>> german.y[:2].tolist()
    [0, 1]
    """
    if name not in names():
        raise UsageError(f'there is no dataset "{name}"', do=f"choose from {', '.join(names())}")
    if name == "german" and path is None:
        return load_german()
    folder = path or os.environ.get(ENVIRONMENT) or None
    return load_folder(name, None if folder is None else Path(folder))
