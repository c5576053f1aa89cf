"""What ``fewest train`` reads: a table with labels of two classes, cut into training and test rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.apps.cli._files import read_table
from fewest.apps.cli._text import label_key
from fewest.errors import DataError, UsageError


class TrainLabels(NamedTuple):
    """Labels as 0 and 1, and what those are called."""

    y: npt.NDArray[np.int64]
    names: tuple[str, str]


def check_folder(out: Path | None) -> None:
    """Refuse a file where a folder is wanted."""
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file", do="name a folder")


def read_training(path: Path, target: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Features and the column of labels."""
    table = read_table(path)
    if target not in table.columns:
        raise DataError(f'{path.name} has no column "{target}"', do="check --target")
    return table.drop(columns=target), table[target]


def read_labels(column: pd.Series[Any], positive: str | None) -> TrainLabels:
    """Which rows are of the class being explained; by default the second of two, and all others are the other one."""
    if column.isna().any():
        row = int(np.flatnonzero(column.isna().to_numpy())[0])
        raise DataError(f'row {row}, column "{column.name}": the label is missing', do="leave such rows out")
    classes = sorted(column.unique().tolist(), key=lambda label: (isinstance(label, str), label))
    known = {label_key(label): str(label) for label in classes}
    shown = ", ".join(list(known.values())[:5]) + (", ..." if len(known) > 5 else "")
    if len(known) < 2 or (len(known) > 2 and positive is None):
        raise DataError(
            f'column "{column.name}" has {len(known)} classes ({shown}), but two are needed',
            do="check --target" if len(known) < 2 else "check --target, or name one with --positive",
        )
    chosen = list(known)[-1] if positive is None else label_key(positive)
    if chosen not in known:
        raise UsageError(f'--positive {positive}: "{column.name}" has no such class', do=f"its classes are {shown}")
    others = [name for key, name in known.items() if key != chosen]
    y = np.array([label_key(label) == chosen for label in column]).astype(np.int64)
    return TrainLabels(y, (others[0] if len(others) == 1 else f"not {known[chosen]}", known[chosen]))


def cut(X: pd.DataFrame, y: npt.NDArray[Any], test_size: float, random_state: int) -> list[Any]:
    """Training features, test features, training labels and test labels; both parts have both classes alike."""
    from sklearn.model_selection import train_test_split

    if not 0 < test_size < 1:
        raise UsageError(f"--test-size {test_size:g}", do="choose a share between 0 and 1, say 0.2")
    try:
        return list(train_test_split(X, y, test_size=test_size, stratify=y, random_state=random_state))
    except ValueError as error:
        raise DataError(f"the table cannot be split: {error}", do="pass more rows of both classes") from error
