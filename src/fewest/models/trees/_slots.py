"""Slots: how each restricted feature of a negative leaf is entered, under the constraints, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.constraints import AtMost, Constraints, Forbidden, Immutable, OneOf, Only, Range
from fewest.errors import ModelError, UsageError
from fewest.models.trees.leaf_boxes import Interval, Levels, Side, boxes
from fewest.models.trees.tree import Bools, Floats, Ints, Tree
from fewest.models.trees.values import nearest_inside
from fewest.tables.schema import Feature

Value = Literal["nearest", "median", "mean"]
INSIDE, NEVER = -2, -1  # targets of a level that is in the box, and of one that cannot get there


class Slots(NamedTuple):
    """One slot per negative leaf and feature its box restricts, in the order the compiled search takes them.

    Attributes
    ----------
    start : (leaves + 1,) int32
        First slot of each leaf.
    feature : (slots,) int32
    low, high : (slots,) float64
        A number is inside when ``low < value <= high``.
    missing_inside : (slots,) bool
    from_below, from_above, from_missing : (slots,) float64
        Value a case takes when it comes from there; NaN where it may not, or no typed value exists.
    table : (slots,) int32
        Row of ``target`` for features with levels, -1 for numbers.
    target : (rows, width) int32
        For each code: it is inside (-2), cannot enter (-1), or the code it takes.
    """

    start: Ints
    feature: Ints
    low: Floats
    high: Floats
    missing_inside: Bools
    from_below: Floats
    from_above: Floats
    from_missing: Floats
    table: Ints
    target: Ints


class Slot(NamedTuple):
    """How one feature of one leaf is entered; ``levels`` is its row of targets, None for numbers."""

    feature: int
    low: float
    high: float
    missing_inside: bool
    from_below: float
    from_above: float
    from_missing: float
    levels: Ints | None


def lay_out(tree: Tree, typical: Floats, value: Value, rules: SlotRules) -> tuple[Ints, Slots]:
    """Nodes of the negative leaves, and their slots."""
    leaves: list[int] = []
    start = [0]
    slots: list[Slot] = []
    for node, box in boxes(tree):
        if not tree.positive[node]:
            leaves.append(node)
            slots += [_slot(rules, tree, j, box[j], float(typical[node, j]), value) for j in sorted(box)]
            start.append(len(slots))
    width = 1 + max((len(tree.schema.features[j].levels) for j in tree.used.tolist()), default=0)
    rows = [slot.levels for slot in slots if slot.levels is not None]
    target = np.full((len(rows), width), NEVER, dtype=np.int32)
    for row, levels in zip(target, rows, strict=True):
        row[: len(levels)] = levels
    leveled = np.array([slot.levels is not None for slot in slots], dtype=bool)
    table = np.where(leveled, np.cumsum(leveled) - 1, -1).astype(np.int32)

    def floats(name: str) -> Floats:
        return np.array([getattr(slot, name) for slot in slots], dtype=float)

    return np.array(leaves, dtype=np.int32), Slots(
        start=np.array(start, dtype=np.int32),
        feature=np.array([slot.feature for slot in slots], dtype=np.int32),
        low=floats("low"),
        high=floats("high"),
        missing_inside=np.array([slot.missing_inside for slot in slots], dtype=bool),
        from_below=floats("from_below"),
        from_above=floats("from_above"),
        from_missing=floats("from_missing"),
        table=table,
        target=target,
    )


@dataclass(frozen=True)
class SlotRules:
    """The constraints as far as leaves can keep them."""

    constraints: Constraints
    immutable: frozenset[int]
    up: frozenset[int]
    down: frozenset[int]
    ranges: dict[int, tuple[float, float]]
    allowed: dict[int, list[float]]
    forbidden: tuple[Ints, ...]
    most: float

    @classmethod
    def read(cls, tree: Tree, constraints: Constraints) -> SlotRules:
        """Sort the constraints by what they ask of a slot; refuse those a leaf cannot keep."""
        schema = tree.schema
        for item in constraints:
            if not isinstance(item, AtMost | Forbidden | Immutable | OneOf | Only | Range):
                raise UsageError(
                    f"{type(item).__name__} cannot be kept with the leaves of a tree: a leaf fixes only what it tests",
                    do="use references.single or clusters with this constraint",
                )
        ranges: dict[int, tuple[float, float]] = {}
        for item in constraints.of(Range):
            j = schema.index(item.name)
            low, high = ranges.get(j, (-np.inf, np.inf))
            ranges[j] = (max(low, item.low), min(high, item.high))
        allowed: dict[int, list[float]] = {}
        for item in constraints.of(OneOf):
            j = schema.index(item.name)
            if schema.features[j].is_numeric:
                values = [float(level) for level in item.levels]
                allowed[j] = [value for value in allowed.get(j, values) if value in values]
        only = {way: frozenset(schema.index(o.name) for o in constraints.of(Only) if o.direction == way)
                for way in ("up", "down")}  # fmt: skip
        groups = tuple(
            np.array([schema.index(name) for name in item.names], dtype=np.int32) for item in constraints.of(Forbidden)
        )
        held = frozenset(schema.index(item.name) for item in constraints.of(Immutable))
        return cls(constraints, held, only["up"], only["down"], ranges, allowed, groups, constraints.most)


def _slot(rules: SlotRules, tree: Tree, j: int, side: Side, centre: float, value: Value) -> Slot:
    feature = tree.schema.features[j]
    if isinstance(side, Levels):
        levels, from_missing = _level_targets(rules, tree, j, side, centre)
        return Slot(j, np.nan, np.nan, side.missing, np.nan, np.nan, from_missing, levels)
    if not feature.is_numeric:
        raise ModelError(f'the tree tests "{feature.name}", which has no typed value to move to', do="drop the feature")
    if j in rules.immutable:
        return Slot(j, side.low, side.high, side.missing, np.nan, np.nan, np.nan, None)
    low, high = rules.ranges.get(j, (-np.inf, np.inf))
    # The range includes its lower end, the box does not.
    room = Interval(max(side.low, float(np.nextafter(low, -np.inf))), min(side.high, high))
    allowed = rules.allowed.get(j)

    def enter(target: float) -> float:
        return nearest_inside(feature, room, target, allowed)

    middle = enter(centre if np.isfinite(centre) else side.low)
    below, above = (enter(side.low), enter(side.high)) if value == "nearest" else (middle, middle)
    return Slot(
        j, side.low, side.high, side.missing,
        np.nan if j in rules.down else below,
        np.nan if j in rules.up else above,
        np.nan if j in rules.up | rules.down else middle,
        None,
    )  # fmt: skip


def _level_targets(rules: SlotRules, tree: Tree, j: int, side: Levels, centre: float) -> tuple[Ints, float]:
    """For each code the level it takes to get inside, and the level a missing value takes."""
    feature = tree.schema.features[j]
    count = len(feature.levels)
    may = _permitted(rules, tree, j)
    inside = np.flatnonzero(side.inside[:count])
    goals = []
    for code in range(count + 2):  # the last two: a level that is not known, and a missing one
        open_to = inside[may[code, inside]]
        if len(open_to) == 0:
            goals.append(NEVER)
        elif feature.ordered and code < count:
            goals.append(int(open_to[np.argmin(np.abs(open_to - code))]))
        else:
            goals.append(int(centre) if centre in open_to else int(open_to[0]))
    levels = np.where(side.inside, INSIDE, goals[: count + 1]).astype(np.int32)
    return levels, np.nan if goals[-1] == NEVER else float(goals[-1])


def _permitted(rules: SlotRules, tree: Tree, j: int) -> Bools:
    """Whether a case with one code may take another: (levels + 2, levels), by asking the constraints themselves."""
    feature = tree.schema.features[j]
    count = len(feature.levels)
    out = np.ones((count + 2, count), dtype=bool)
    items = [item for item in rules.constraints if item.features()[:1] == (feature.name,)]
    items = [item for item in items if not isinstance(item, Forbidden)]
    if not items:
        return out
    start = _level_rows(feature, np.repeat(np.arange(count + 2), count))
    goal = _level_rows(feature, np.tile(np.arange(count), count + 2))
    for item in items:
        mask = item.permits(tree.schema, start, goal)
        if mask is not None:
            out &= mask.reshape(count + 2, count)
    return out


def _level_rows(feature: Feature, codes: npt.NDArray[np.int64]) -> pd.DataFrame:
    """A table of one feature's columns; codes beyond the levels are missing."""
    if feature.kind == "indicators":
        return pd.DataFrame({column: (codes == k).astype(float) for k, column in enumerate(feature.columns)})
    levels = np.empty(len(feature.levels) + 2, dtype=object)
    levels[: len(feature.levels)] = feature.levels
    levels[len(feature.levels) :] = None
    if feature.kind == "boolean":
        return pd.DataFrame({feature.columns[0]: pd.array(levels[codes], dtype="boolean")})
    return pd.DataFrame({feature.columns[0]: levels[codes]})
