"""Columns of 0 and 1 that look like the levels of one feature, as `get_dummies` and one-hot encoders write them.

Explained one by one, they lead to cases with no level at all, or with two.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import FewestWarning

SEPARATORS = re.compile(r"[_=:.\-\[ ]")
CHANCE = 1e-6  # columns that have nothing to do with each other exclude each other in a table less often than this


def warn_of_one_hot(frame: pd.DataFrame) -> None:
    """Say which columns look like levels of one feature, with a mapping that makes them one."""
    found = find_one_hot(frame)
    if found:
        parts = "".join(f"\n    {name!r}: {list(columns)!r}," for name, columns in found.items())
        warnings.warn(
            f"columns of 0 and 1 that exclude each other look like levels of one feature: {', '.join(found)}. "
            "Explained column by column, a case can end with no level, or with two.\n"
            f"  Try: pass\n  groups={{{parts}\n  }}\n  or groups={{}} if each column is a feature of its own",
            FewestWarning,
            stacklevel=3,
        )


def find_one_hot(frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Columns of 0 and 1 with the same beginning of which every row has exactly one set, or at most one.

    At most one is what remains of a feature whose first level was dropped. Whatever could be chance is left out: in a
    short table, or where nearly all rows have the same level, such columns are not distinguished from others.
    """
    cells = {str(name): _binary(frame[name]) for name in frame.columns}
    sharing: dict[str, list[str]] = defaultdict(list)
    for name, values in cells.items():
        if values is not None:
            for place in SEPARATORS.finditer(name):
                sharing[name[: place.end()]].append(name)
    # Of several beginnings of the same columns the longest says most; of sets of columns the largest comes first.
    longest = {tuple(sharing[start]): start for start in sorted(sharing, key=len)}
    found: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    for columns in sorted(longest, key=len, reverse=True):
        if len(columns) > 1 and taken.isdisjoint(columns) and _exclusive(cells, columns):
            found[_name(longest[columns], frame.columns)] = columns
            taken.update(columns)
    return found


def _binary(column: pd.Series) -> npt.NDArray[np.bool_] | None:
    """Which rows are set, where a column holds 0 and 1, both, and nothing else."""
    kind = column.dtype
    if not (pd.api.types.is_bool_dtype(kind) or pd.api.types.is_numeric_dtype(kind)) or column.isna().any():
        return None
    values = column.to_numpy()
    is_set = np.asarray(values == 1, dtype=bool)
    both = is_set.any() and not is_set.all()
    return is_set if both and bool(np.all(is_set | np.asarray(values == 0, dtype=bool))) else None


def _exclusive(cells: Mapping[str, npt.NDArray[np.bool_] | None], columns: Sequence[str]) -> bool:
    """Whether no row has two of the columns set, and that is not chance."""
    table = [values for name in columns if (values := cells[name]) is not None]
    count = np.zeros(len(table[0]), dtype=np.int32)
    for values in table:
        count += values
        if count.max() > 1:
            return False
    share = np.array([values.mean() for values in table])
    one = float(np.prod(1 - share) * np.sum(share / (1 - share)))
    chance = one if count.min() == 1 else one + float(np.prod(1 - share))
    return bool(len(count) * np.log(chance) < np.log(CHANCE))


def _name(start: str, taken: Sequence[str]) -> str:
    name = start.rstrip("_=:.-[ ") or start
    return f"{name} (levels)" if name in taken else name
