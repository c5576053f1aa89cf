"""Columns that depend on several features: which the model uses, how they are tried, and what they are on the cubes.

Nothing of a transformer need be understood but which features its columns depend on: their value at a vertex is what
the user's own transformers give for the mixed row, and a column of k features has 2**k values on a cube.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from fewest.engine.search.problem import JointColumns, SummedColumns
from fewest.engine.structure.base import Additive, Ensemble, Rivals, Structure
from fewest.tables.arrays import Bools, Floats, Ints, Ints32

MOST = 6  # features that a column may depend on, unless each adds an amount of its own
_CLOSE, _TINY = 1e-9, 1e-12  # differences of this share of a column's size, and this much anyway, are rounding
_EVIDENCE = 8  # rows in which several features change a column before it counts as a sum, where it need not be one
_ROWS = 1 << 16  # mixed rows that go through the transformers at once

Rows = Callable[[Ints, Bools], Floats]  # cube numbers (v,) and the units moved (v, u) -> prepared rows of the vertices


@dataclass(frozen=True)
class ColumnGroup:
    """Prepared columns that depend on the same several features."""

    columns: Ints
    features: Ints
    summed: bool = False  # Whether each feature adds an amount of its own, whatever the others are


def column_groups(structure: Structure, sources: Sequence[frozenset[int]]) -> tuple[ColumnGroup, ...]:
    """The columns that a structure uses and that depend on several features, those of the same features together."""
    of_column = [tuple(sorted(set().union(*(sources[c] for c in places)))) for places in structure.reading.inputs]
    used = [c for c in np.flatnonzero(_used(structure)).tolist() if len(of_column[c]) > 1]
    grouped = groupby(sorted(used, key=of_column.__getitem__), key=of_column.__getitem__)
    return tuple(ColumnGroup(np.array(list(columns)), np.array(features)) for features, columns in grouped)


def _used(structure: Structure) -> Bools:
    if isinstance(structure, Ensemble):
        return np.bincount(structure.column[structure.column >= 0], minlength=len(structure.reading.source)) > 0
    if isinstance(structure, Additive):
        return np.asarray(structure.coef != 0)
    if isinstance(structure, Rivals):
        used = np.zeros(len(structure.reading.source), dtype=bool)
        for member, span in zip(structure.members, structure.spans, strict=True):
            used[span] |= _used(member)
        return used
    return np.ones(len(structure.reading.source), dtype=bool)


def close(a: Floats, b: Floats) -> Bools:
    """Which cells of two tables are equal but for rounding on the scale of their column; missing equals missing."""
    sizes = np.where(np.isfinite(a), np.abs(a), 0.0).max(axis=0, initial=0.0)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= _CLOSE * sizes + _TINY
    return np.asarray(near | (a == b) | (np.isnan(a) & np.isnan(b)))


def tried(
    groups: Sequence[ColumnGroup], rows: Callable[[Bools], Floats], took: Bools, exact: bool
) -> list[ColumnGroup]:
    """The groups whose columns are, on mixed rows, what their own features alone make them; ``summed`` where they add.

    ``rows`` gives the prepared rows of cases in which the features ``took`` (n, p) come from a goal. Where ``exact``,
    only what is known of the groups is tried; otherwise sums are found, and groups divided into those and the others.
    """
    n, p = took.shape
    own = np.array([np.isin(np.arange(p), group.features) for group in groups])
    adding = np.any([mine for mine, group in zip(own, groups, strict=True) if group.summed or not exact], axis=0)
    singly = np.flatnonzero(adding) if np.any(adding) else np.empty(0, dtype=np.int64)
    asked = [took, np.zeros_like(took), *(took & mine for mine in own)]
    asked += [took & (np.arange(p) == feature) for feature in singly]
    seen = rows(np.concatenate(asked)).reshape(len(asked), n, -1)
    whole, start, alone, steps = seen[0], seen[1], seen[2 : 2 + len(groups)], seen[2 + len(groups) :] - seen[1]
    total = start + steps.sum(axis=0)
    scale = (np.abs(start) + np.abs(steps).sum(axis=0)).max(axis=0, initial=0.0)
    adds = (np.abs(total - whole) <= _CLOSE * scale).all(axis=0)
    shown = ((np.abs(steps) > _TINY).sum(axis=0) > 1).sum(axis=0) >= _EVIDENCE
    good: list[ColumnGroup] = []
    for group, seen_alone in zip(groups, alone, strict=True):
        c = group.columns
        if not close(seen_alone[:, c], whole[:, c]).all() or (group.summed and not adds[c].all()):
            continue
        sums = adds[c] & (shown[c] | (len(group.features) > MOST))
        parts = [(c, group.summed)] if exact else [(c[sums], True), (c[~sums], False)]
        good += [replace(group, columns=part, summed=summed) for part, summed in parts if len(part)]
    return good


def on_cubes(
    groups: Sequence[ColumnGroup], unit_of: Ints32, movable: Bools, start: Floats, rows: Rows
) -> tuple[tuple[JointColumns, ...], SummedColumns | None]:
    """The columns of the groups at the vertices of cubes that begin at ``start`` (n, d), by asking for mixed rows."""
    together: dict[tuple[int, ...], list[Ints]] = {}
    for group in groups:
        if not group.summed:
            units = tuple(np.unique(unit_of[group.features]).tolist())
            together.setdefault(units, []).append(group.columns)
    joint: list[JointColumns] = []
    for units, parts in together.items():
        columns = np.concatenate(parts)
        values = np.repeat(start[:, None, columns], 2 ** len(units), axis=1)
        joint.append(JointColumns(columns, np.array(units), values))
    for part in _apart(joint):
        _fill(part, movable, rows)
    return tuple(joint), _summed([group for group in groups if group.summed], unit_of, movable, start, rows)


def _apart(joint: list[JointColumns]) -> list[list[JointColumns]]:
    """Lists of columns that share no unit: one mixed row gives a value of each."""
    parts: list[tuple[set[int], list[JointColumns]]] = []
    for columns in sorted(joint, key=lambda one: -len(one.units)):
        units = set(columns.units.tolist())
        for taken, part in parts:
            if not taken & units:
                taken |= units
                part.append(columns)
                break
        else:
            parts.append((units, [columns]))
    return [part for _, part in parts]


def _fill(part: list[JointColumns], movable: Bools, rows: Rows) -> None:
    """Look the values up, in place; a unit that is not movable in a cube changes nothing there."""
    most = max(len(joint.units) for joint in part)
    fits: list[tuple[int, list[Bools]]] = []
    moved_at: list[Bools] = []
    for code in range(1, 2**most):
        moved, here = np.zeros_like(movable), []
        for joint in part:
            k = len(joint.units)
            digits = np.array([code >> place & 1 for place in reversed(range(k))], dtype=bool) & (code < 2**k)
            fit = (movable[:, joint.units] | ~digits).all(axis=1) & (code < 2**k)
            moved[np.ix_(fit, joint.units[digits])] = True
            here.append(fit)
        fits.append((code, here))
        moved_at.append(moved)
    needed = [np.flatnonzero(np.any(here, axis=0)) for _, here in fits]
    cubes = np.concatenate(needed)
    seen = _in_pieces(rows, cubes, np.concatenate([m[which] for m, which in zip(moved_at, needed, strict=True)]))
    first = 0
    for (code, here), which in zip(fits, needed, strict=True):
        for joint, fit in zip(part, here, strict=True):
            mine = fit[which]
            if not mine.any():
                continue
            joint.values[which[mine], code] = seen[first : first + len(which)][mine][:, joint.columns]
        first += len(which)
    for joint in part:
        k = len(joint.units)
        mask: Ints = movable[:, joint.units].astype(np.int64) @ (1 << np.arange(k)[::-1])
        codes = np.arange(2**k) & mask[:, None]
        joint.values[:] = np.take_along_axis(joint.values, codes[:, :, None], axis=1)


def _summed(
    groups: list[ColumnGroup], unit_of: Ints32, movable: Bools, start: Floats, rows: Rows
) -> SummedColumns | None:
    """What each unit adds by itself to the columns that are sums."""
    if not groups:
        return None
    columns = np.concatenate([group.columns for group in groups])
    steps = np.zeros((*movable.shape, len(columns)))
    units = np.unique(unit_of[np.concatenate([group.features for group in groups])])
    cubes, place = np.nonzero(movable[:, units])
    alone = np.zeros((len(cubes), movable.shape[1]), dtype=bool)
    alone[np.arange(len(cubes)), units[place]] = True
    steps[cubes, units[place]] = _in_pieces(rows, cubes, alone)[:, columns] - start[cubes][:, columns]
    return SummedColumns(columns, steps)


def _in_pieces(rows: Rows, cubes: Ints, moved: Bools) -> Floats:
    parts = [rows(cubes[low : low + _ROWS], moved[low : low + _ROWS]) for low in range(0, len(cubes), _ROWS)]
    return np.concatenate(parts) if parts else rows(cubes, moved)
