"""Cases inside the leaves of a tree: a leaf is a box, so each case brings the values it enters with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fewest.tables.schema import Schema
from fewest.tables.values import written


def entered(schema: Schema, frame: pd.DataFrame, values: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows with the values they are said to have.

    Parameters
    ----------
    schema : Schema
    frame : (n, columns)
    values : n mappings
        Feature -> its new value, as JSON holds it.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [30, 40], "job": ["a", "b"]})
    >>> entered(Schema.infer(X), X, [{"job": "b"}, {"age": 50}]).to_dict("list")
    {'age': [30, 50], 'job': ['b', 'b']}
    """
    out = {column: frame[column].astype(object).to_numpy(copy=True) for column in schema.columns}
    for row, stated in enumerate(values):
        for name, value in stated.items():
            for column, cell in written(schema, name, value).items():
                out[column][row] = cell
    return schema.conform(pd.DataFrame(out, index=frame.index).infer_objects(), unseen="allow")
