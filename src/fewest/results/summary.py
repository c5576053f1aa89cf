"""Figures of a whole table, and how they are printed."""

from __future__ import annotations

from typing import Any

import numpy as np


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
