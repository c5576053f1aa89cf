"""How raw rows become the columns that a trained model sees; always made of scikit-learn's own transformers.

Whatever is used, each column comes from one original feature, so that the engine can read the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError
from fewest.tables.schema import Schema

ENCODERS = ("curves", "linear", "plain")


def make_encoder(word: str, schema: Schema, frame: pd.DataFrame, knots: int) -> Any:
    """An unfitted encoder of typed rows.

    Parameters
    ----------
    word : str
        What becomes of numbers. ``curves``: hat functions on quantiles, over which a linear model is a sum of
        piecewise linear curves that stay level beyond the data; ``linear``: standardised; ``plain``: left alone.
        Levels get one column each in any case; one that is not known gets none.
    schema : Schema
    frame : (n, columns)
        Training rows: quantiles are read off them.
    knots : int
        Corners of a curve, its ends among them; fewer where a number has fewer values.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 30, 40, 50], "job": ["none", "clerk", "none", "none"]})
    >>> encoder = make_encoder("curves", Schema.infer(frame), frame, knots=3).fit(frame)
    >>> encoder.transform(frame.iloc[:2]).round(2).tolist()
    [[1.0, 0.0, 0.0, 0.0, 1.0], [0.5, 0.5, 0.0, 1.0, 0.0]]
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    if word not in ENCODERS:
        raise UsageError(f'encoder "{word}" is unknown', do=f"use one of {', '.join(ENCODERS)}, or a transformer")
    numbers = [feature.columns[0] for feature in schema.features if feature.is_numeric]
    levels = [name for name in schema.columns if name not in numbers]
    parts: list[tuple[str, Any, list[str]]] = []
    if word == "curves":
        parts += [(name, _curve(frame[name].to_numpy(dtype=float), knots), [name]) for name in numbers]
    elif numbers:
        parts.append(("numbers", StandardScaler() if word == "linear" else "passthrough", numbers))
    if levels:
        parts.append(("levels", OneHotEncoder(handle_unknown="ignore", sparse_output=False), levels))
    return ColumnTransformer(parts, verbose_feature_names_out=False)


def _curve(values: npt.NDArray[np.float64], knots: int) -> Any:
    """Hat functions with their tips at quantiles of a number; one that never changes is only standardised."""
    from sklearn.preprocessing import SplineTransformer, StandardScaler

    distinct = np.unique(values)
    if len(distinct) < 2:
        return StandardScaler()
    if len(distinct) > knots:
        distinct = np.unique(np.quantile(values, np.linspace(0.0, 1.0, knots), method="nearest"))
        distinct = np.unique([values.min(), *distinct, values.max()])
    return SplineTransformer(degree=1, knots=distinct[:, None], extrapolation="constant")
