"""Figures of a whole table, and how they are printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Summary(dict[str, Any]):
    """Figures of a whole table; prints as lines.

    Examples
    --------
    >>> print(Summary({"cases": 3, "mean SEV": 1.5}))
    cases     3
    mean SEV  1.5
    """

    def __str__(self) -> str:
        width = max(map(len, self))
        return "\n".join(f"{name:<{width}}  {figure(value)}" for name, value in self.items())

    __repr__ = __str__


def likelihoods(dense: npt.NDArray[np.float64]) -> dict[str, float]:
    """Mean and median of the answers' log-densities, where there are any.

    Examples
    --------
    >>> likelihoods(np.array([-1.0, -3.0]))
    {'mean log-likelihood': -2.0, 'median log-likelihood': -2.0}
    """
    if len(dense) == 0:
        return {}
    return {"mean log-likelihood": float(dense.mean()), "median log-likelihood": float(np.median(dense))}


def figure(value: Any) -> str:
    """A figure of a summary as text.

    Examples
    --------
    >>> figure(1.23456), figure(float("nan")), figure(3)
    ('1.235', '-', '3')
    """
    if isinstance(value, float):
        return "-" if np.isnan(value) else f"{value:.4g}"
    return str(value)
