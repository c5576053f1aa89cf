"""Rows of a table of answers looked up as people know it: by place, slice, mask or label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import DataError, UsageError
from fewest.tables.arrays import Ints


def places_of(key: Any, n: int) -> Ints:
    """Places among n rows that a slice, a mask or a list of places stands for; missing truths count as False."""
    if isinstance(key, slice):
        return np.arange(n)[key]
    masked = isinstance(key, pd.Series) and pd.api.types.is_bool_dtype(key.dtype)
    places = key.to_numpy(dtype=bool, na_value=False) if masked else np.asarray(key)
    if places.ndim == 1 and places.dtype == bool and len(places) == n:
        return np.flatnonzero(places)
    if places.ndim == 1 and (places.dtype.kind == "i" or places.size == 0):
        outside = places[(places < -n) | (places >= n)]
        if len(outside):
            raise IndexError(f"row {outside[0]} of {n}")
        return np.asarray(places.astype(np.int64) % max(1, n))
    what = f"a mask of {len(places)} for {n} cases" if places.dtype == bool and places.ndim else repr(key)
    do = "use a place, a slice, a mask as long as the table or a list of places; for labels .loc"
    raise UsageError(f"answers cannot be looked up by {what}", do=do)


@dataclass(frozen=True, eq=False)
class ByLabel:
    """Answers looked up by the labels of their cases, as pandas does."""

    answers: Any  # Explanations

    def __getitem__(self, key: Any) -> Any:
        """One `Explanation` for a label that one case has; else `Explanations`."""
        places = pd.Series(np.arange(len(self.answers)), index=self.answers.frame.index)
        try:
            found = places.loc[key]
        except (KeyError, TypeError) as error:
            labels = ", ".join(map(repr, self.answers.frame.index[:3].tolist()))
            raise DataError(f"no case is called {key!r}", do=f"use labels of the table, like {labels}") from error
        if isinstance(found, pd.Series):
            return self.answers[found.to_numpy()]
        return self.answers[int(found)]
