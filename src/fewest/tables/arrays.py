"""Names of the arrays that annotations speak of: one for each type of element."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]


def true_cells(table: Bools) -> tuple[Ints, Ints]:
    """Rows and columns of what is true in a table (n, p), row by row: `np.nonzero`, several times as fast.

    >>> true_cells(np.array([[False, True], [True, True]]))
    (array([0, 1, 1]), array([1, 0, 1]))
    """
    rows, columns = np.divmod(np.flatnonzero(table), max(1, table.shape[1]))
    return rows, columns
