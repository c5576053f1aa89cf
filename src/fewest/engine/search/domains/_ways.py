"""The ways that features of a set may go: from the value next to the case's own to the one shown, on their grids."""

from __future__ import annotations

from typing import NamedTuple

from fewest.engine.numba_cache import inner
from fewest.tables.arrays import Bools, Floats, Ints

WAYS = 24  # features of a set at most


class Ways(NamedTuple):
    """n cases, each with a set of features that all change."""

    rows: Floats  # (n, d): Prepared rows with the values shown
    number: Floats  # (values,): The values of all features one after the other, ascending within each
    own: Floats  # (n, p): Values of the case
    scale: Floats  # (p,): What steps are measured in
    first: Ints  # (n, p): Place of the value next to the case's own; -1 where the feature stays as it is shown
    last: Ints  # (n, p): Place of the value shown, on either side of ``first``


class Nearest(NamedTuple):
    """One entry per case."""

    found: Bools
    place: Ints  # (n, p): Place of the value taken; as shown where nothing was found
    nodes: Ints


@inner()
def far_of(ways, i, f, step):  # type: ignore[no-untyped-def]
    """How far a step of a way is from the case, in standard deviations."""
    first = ways.first[i, f]
    at = first + step if ways.last[i, f] >= first else first - step
    return abs(ways.number[at] - ways.own[i, f]) / ways.scale[f]
