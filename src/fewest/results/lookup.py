"""Cases looked up by their places and by their labels, as pandas does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import DataError, UsageError
from fewest.tables.arrays import Ints


def places_of(key: Any, n: int) -> Ints:
    """The places among n cases that a slice, a mask or a list of places means."""
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
    """Answers by the labels of their cases; ``pick`` gives one for a place, several for an array of places."""

    labels: pd.Index[Any]
    pick: Callable[[Any], Any]

    def __getitem__(self, key: Any) -> Any:
        """One answer for a label that one case has; else those of all that are meant."""
        try:
            found = pd.Series(np.arange(len(self.labels)), index=self.labels).loc[key]
        except (KeyError, TypeError) as error:
            known = ", ".join(map(repr, self.labels[:3].tolist()))
            raise DataError(f"no case is called {key!r}", do=f"use labels of the table, like {known}") from error
        return self.pick(found.to_numpy() if isinstance(found, pd.Series) else int(found))
