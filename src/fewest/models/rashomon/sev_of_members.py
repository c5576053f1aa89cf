"""SEV-T of a whole Rashomon set at once: what TOpt chooses by (Section 5.2)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError
from fewest.models.rashomon import _kernels
from fewest.models.rashomon._search import as_patterns
from fewest.models.rashomon.base import RashomonSet
from fewest.models.trees.thresholds import BinaryColumns
from fewest.tables.schema import Feature

Masks = npt.NDArray[np.uint64]


def score_set(trees: RashomonSet, frame: pd.DataFrame, positive: npt.ArrayLike, *, n_jobs: int = 1) -> pd.DataFrame:
    """Accuracy and SEV-T of every tree on some rows.

    SEV-T of a case decided positive is the least number of original features that must change for it to end in a
    negative leaf; columns that test one feature count once, and a leaf that no value leads to is none.

    Parameters
    ----------
    trees : RashomonSet
    frame : (n, columns)
        Rows conformed to the schema.
    positive : (n,) bool
        Their labels.
    n_jobs : int
        The result does not depend on it.

    Returns
    -------
    DataFrame
        One row per tree: ``accuracy``, ``leaves``, ``mean_sev_t`` over the rows that the tree decides positive,
        ``share_sev_1`` of them, and their number ``decided``. Both are NaN where the tree decides no row positive, or
        one that cannot be turned.

    Examples
    --------
    >>> from fewest.models.rashomon import rashomon_set
    >>> from fewest.tables.schema import Schema
    >>> from fewest.models.trees import guess_thresholds
    >>> frame = pd.DataFrame({"age": [20, 25, 30, 50, 60, 70], "job": ["none", "none", "clerk"] * 2})
    >>> y = [True, True, True, False, False, True]
    >>> trees = rashomon_set(guess_thresholds(Schema.infer(frame), frame, y), frame, y)
    >>> score_set(trees, frame, y)
       accuracy  leaves  mean_sev_t  share_sev_1  decided
    0       1.0       3         1.0          1.0        4
    1       1.0       3         1.0          1.0        4
    """
    labels = np.asarray(positive, dtype=bool)
    if labels.shape != (len(frame),) or len(frame) == 0:
        raise DataError(f"{len(frame)} rows, but labels of shape {labels.shape}", do="pass one label per row")
    sums = sum_up(trees, frame, labels, n_jobs)
    decided = sums[:, _kernels.DECIDED]
    counted = np.where((decided > 0) & (sums[:, _kernels.UNREACHED] == 0), decided, np.nan)
    return pd.DataFrame(
        {
            "accuracy": 1 - sums[:, _kernels.WRONG] / len(frame),
            "leaves": trees.leaves,
            "mean_sev_t": sums[:, _kernels.TOTAL] / counted,
            "share_sev_1": sums[:, _kernels.ONES] / counted,
            "decided": decided,
        }
    )


def sum_up(
    trees: RashomonSet, frame: pd.DataFrame, labels: npt.NDArray[np.bool_], n_jobs: int
) -> npt.NDArray[np.int64]:
    """Per tree: rows misclassified, decided positive, of SEV-T 1, the sum of SEV-T, and those not to be turned."""
    cells = cells_of(trees.columns)
    shut = _kernels.closed(trees.needs, trees.forbids, cells.mask_of, cells.cells, cells.cells_from)
    patterns = as_patterns(trees.columns.transform(frame), labels)
    used = _kernels.columns_used(trees.start, trees.leaf, trees.needs, trees.forbids)
    order = np.argsort(used, kind="stable")
    out = np.zeros((len(trees), 5), dtype=np.int64)

    def part(first: int, last: int) -> None:
        _kernels.score_trees(
            order, used, first, last, trees.start, trees.leaf, trees.needs, trees.forbids, trees.positive, shut,
            cells.owner, cells.mask_of, *patterns, out,
        )  # fmt: skip

    edges = np.linspace(0, len(trees), max(1, n_jobs) + 1).astype(int).tolist()
    if n_jobs <= 1:
        part(0, len(trees))
    else:
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(part, edges[:-1], edges[1:]))
    return out


class TableCells(NamedTuple):
    """What values of each feature can look like in the binary columns; features are numbered by first appearance.

    ``owner[c]`` is the feature of column c, ``mask_of[j]`` its columns, ``cells[cells_from[j]:cells_from[j + 1]]`` the
    patterns its values make.
    """

    owner: npt.NDArray[np.int64]
    mask_of: Masks
    cells: Masks
    cells_from: npt.NDArray[np.int64]


def cells_of(columns: BinaryColumns) -> TableCells:
    """Patterns that typed values make: missing values and levels that are not known are nothing to move to."""
    present, owner = np.unique(columns.feature, return_inverse=True)
    masks, cells, cells_from = [], [], [0]
    for place, j in enumerate(present.tolist()):
        own = np.flatnonzero(owner == place)
        masks.append(sum(1 << column for column in own.tolist()))
        cells.extend(_cells(columns, columns.schema.features[j], own))
        cells_from.append(len(cells))
    return TableCells(
        owner.astype(np.int64), np.array(masks, dtype=np.uint64), np.array(cells, dtype=np.uint64),
        np.array(cells_from, dtype=np.int64),
    )  # fmt: skip


def _cells(columns: BinaryColumns, feature: Feature, own: npt.NDArray[np.int64]) -> list[int]:
    """Patterns of one feature, each once."""
    if not np.isnan(columns.threshold[own[0]]):
        ends = [*np.unique(columns.threshold[own]).tolist(), np.inf]
        lows = [-np.inf, *ends[:-1]]
        # A whole number lies in (low, high] unless both ends round down to the same one.
        values = [high for low, high in zip(lows, ends, strict=True) if _holds(feature, low, high)]
        found = [sum(1 << c for c in own.tolist() if value <= columns.threshold[c]) for value in values]
    else:
        found = [sum(1 << c for c in own.tolist() if columns.level[c] == level) for level in feature.levels]
    return list(dict.fromkeys(found))


def _holds(feature: Feature, low: float, high: float) -> bool:
    """Whether a value of the feature's type lies in (low, high]."""
    if feature.kind != "integer" or np.isinf(low) or np.isinf(high):
        return low < high
    return bool(np.floor(low) < np.floor(high))
