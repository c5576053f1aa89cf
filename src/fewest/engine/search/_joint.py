"""Columns that several units change, put in the words of the searches, which know one unit for each column.

Trees: a split on such a column asks whether the units are moved, one after the other, and then looks the value up; the
highest and the lowest value of the combinations still open tell whether asking is needed at all. Additive models: what
the column adds is a multilinear polynomial. Columns to which each unit adds its own amount become one column per unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from fewest.engine.search.problem import JointColumns, Problem
from fewest.engine.structure.base import Additive, Ensemble, Network
from fewest.tables.arrays import Floats, Ints

_EPS = float(np.finfo(np.float64).eps)
_LEFT, _RIGHT = -1, -2  # children of the split that is replaced
_ASKS, _LOOKS_UP = 0, 1  # what a node of a `_Template` does: asks whether a unit is moved, or compares with a threshold


class _Template(NamedTuple):
    """The small tree that replaces a split; its node 0 takes the place of the split itself."""

    kind: Ints
    place: Ints  # Unit that is asked about, or place among the numbers of the column (see `_numbers`)
    left: Ints  # A node of the template, `_LEFT` or `_RIGHT`
    right: Ints


def _template(k: int, ranges: bool) -> _Template:
    """The tree over k units; ``ranges``: whether the highest and lowest values may be looked at first."""
    nodes: list[list[int]] = []

    def grow(depth: int, prefix: int) -> int:
        at, first = len(nodes), 2 * (2**depth - 1)
        if depth == k:
            nodes.append([_LOOKS_UP, first + prefix, _LEFT, _RIGHT])
            return at
        if ranges:
            nodes.append([_LOOKS_UP, first + prefix, _LEFT, at + 1])
            nodes.append([_LOOKS_UP, first + 2**depth + prefix, at + 2, _RIGHT])
        asks = [_ASKS, depth, 0, 0]
        nodes.append(asks)
        asks[2:] = grow(depth + 1, 2 * prefix), grow(depth + 1, 2 * prefix + 1)
        return at

    grow(0, 0)
    return _Template(*np.array(nodes, dtype=np.int64).T)


def _numbers(values: Floats) -> Floats:
    """What templates look up of a column (n, 2**k): highest and lowest by prefix, level by level, then the values.

    Where values are missing for some of the combinations, highest and lowest are such that they settle nothing.
    """
    n, count = values.shape
    parts = []
    width = count
    while width > 1:
        blocks = values.reshape(n, -1, width)
        missing = np.isnan(blocks)
        some, every = missing.any(axis=2), missing.all(axis=2)
        for extreme, beyond in ((blocks.max(axis=2), np.inf), (blocks.min(axis=2), -np.inf)):
            parts.append(np.where(some & ~every, beyond, extreme))
        width //= 2
    return np.concatenate([*parts, values], axis=1)


def spread(structure: Ensemble, problem: Problem) -> tuple[Ensemble, Problem]:
    """Trees and cubes in which every column belongs to one unit; the nodes may have several parents then.

    Vertices of the new problem score as those of the old one; only the compiled searches can walk the new trees.
    """
    if not problem.joint:
        return structure, problem
    n, width = problem.start.shape
    units = np.unique(np.concatenate([joint.units for joint in problem.joint]))
    asked = np.full(problem.n_units, -1)
    asked[units] = width + np.arange(len(units))
    starts, columns = [problem.start, np.zeros((n, len(units)))], width + len(units)
    nodes = {name: [getattr(structure, name).copy()] for name in _NODE_ARRAYS}
    count = len(structure.column)
    for joint in problem.joint:
        for place, column in enumerate(joint.columns.tolist()):
            numbers = _numbers(joint.values[:, :, place])
            splits = np.flatnonzero(structure.column == column)
            plain = (structure.category[splits] < 0) & (structure.threshold[splits] < np.inf)
            for some, ranges in ((splits[plain], True), (splits[~plain], False)):
                if len(some):
                    template = _template(len(joint.units), ranges)
                    count += _put(structure, nodes, some, count, template, asked[joint.units], columns)
            starts.append(numbers)
            columns += numbers.shape[1]
    joined: dict[str, Any] = {name: np.concatenate(parts) for name, parts in nodes.items()}
    extra = columns - width
    unit_of = np.full(extra, -1, dtype=np.int32)
    unit_of[: len(units)] = units
    moved = np.zeros((len(problem.goal), extra))
    moved[:, : len(units)] = 1.0
    return replace(structure, **joined), replace(
        problem, start=np.concatenate(starts, axis=1), goal=np.concatenate([problem.goal, moved], axis=1),
        unit_of=np.concatenate([problem.unit_of, unit_of]), joint=(),
    )  # fmt: skip


_NODE_ARRAYS = ("column", "threshold", "left", "right", "missing_left", "category", "value")


def _put(
    structure: Ensemble, nodes: dict[str, list[Any]], splits: Ints, count: int, template: _Template, asked: Ints,
    numbers: int,
) -> int:  # fmt: skip
    """Replace splits by a template; how many nodes that adds behind the ``count`` there are."""
    m, size = len(splits), len(template.kind)
    added = m * (size - 1)
    # (splits, size): the node number of each part of each template
    at = np.concatenate([splits[:, None], count + np.arange(added).reshape(m, size - 1)], axis=1)

    def children(which: Ints) -> Ints:
        outer = np.where(which == _LEFT, structure.left[splits][:, None], structure.right[splits][:, None])
        return np.where(which >= 0, at[:, np.maximum(which, 0)], outer)

    asks = template.kind == _ASKS
    kept = {name: np.broadcast_to(getattr(structure, name)[splits][:, None], (m, size)) for name in _NODE_ARRAYS}
    kept["column"] = np.broadcast_to(
        np.where(asks, asked[template.place * asks], numbers + template.place), (m, size)
    )  # fmt: skip
    kept["threshold"] = np.where(asks, 0.5, kept["threshold"])
    kept["missing_left"] = kept["missing_left"] & ~asks
    kept["category"] = np.where(asks, -1, kept["category"])
    kept["left"], kept["right"] = children(template.left), children(template.right)
    for name, values in kept.items():
        first = nodes[name][0]
        first[splits] = values[:, 0]
        nodes[name].append(values[:, 1:].reshape(-1).astype(first.dtype))
    return added


def one_unit_each(structure: Additive | Network, problem: Problem) -> tuple[Any, Problem]:
    """The same where each unit adds its own amount to a column: one column for each unit instead."""
    if problem.summed is None:
        return structure, problem
    columns, steps = problem.summed
    n, u, c = steps.shape
    source = np.concatenate([np.arange(problem.start.shape[1]), np.tile(columns, u)])
    flat = replace(
        problem,
        start=np.concatenate([problem.start, np.zeros((n, u * c))], axis=1),
        goal=np.concatenate([problem.goal[problem.goal_of], steps.reshape(n, u * c)], axis=1),
        goal_of=np.arange(n, dtype=np.int32),
        unit_of=np.concatenate([problem.unit_of, np.repeat(np.arange(u), c)]).astype(np.int32),
        summed=None,
    )
    if isinstance(structure, Additive):
        wider = replace(structure, coef=structure.coef[source])
        return (wider.wide_enough(flat.start, flat.goal) if structure.reading.growth else wider), flat
    weights = (np.ascontiguousarray(structure.weights[0][source]), *structure.weights[1:])
    return replace(structure, weights=weights), flat


class Monomials(NamedTuple):
    """What sets of several units add together: the same sets in every cube, each with a weight of its own."""

    linear: Floats  # (n, u): What single units add
    weight: Floats  # (n, t)
    begin: Ints  # (t + 1,): Where the units of each begin
    units: Ints


def monomials(structure: Additive, problem: Problem) -> Monomials:
    """The polynomial of the joint columns of an additive model, equal monomials added up; its constant is the start."""
    linear = np.zeros((problem.n_cubes, problem.n_units))
    weights: dict[tuple[int, ...], Floats] = {}
    for joint in problem.joint:
        for units, weight in _moebius(joint, structure.coef):
            if len(units) == 1:
                linear[:, units[0]] += problem.sign * weight
            else:
                weights[units] = weights.get(units, 0.0) + problem.sign * weight
    kept = {units: weight for units, weight in weights.items() if weight.any()}
    sizes = np.array([len(units) for units in kept], dtype=np.int64)
    weight = np.column_stack(list(kept.values())) if kept else np.zeros((problem.n_cubes, 0))
    return Monomials(
        linear, np.ascontiguousarray(weight), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([unit for units in kept for unit in units], dtype=np.int64),
    )  # fmt: skip


def _moebius(joint: JointColumns, coef: Floats) -> Iterator[tuple[tuple[int, ...], Floats]]:
    """What each set of the joint units adds beyond its own subsets, rounding apart, in each cube."""
    k = len(joint.units)
    terms = joint.values * coef[joint.columns]
    table = terms.sum(axis=2).reshape(-1, *[2] * k)
    noise = 2**k * _EPS * np.abs(terms).sum(axis=(1, 2))
    for axis in range(1, k + 1):
        kept, moved = np.split(table, 2, axis=axis)
        table = np.concatenate([kept, moved - kept], axis=axis)
    for size in range(1, k + 1):
        for places in combinations(range(k), size):
            weight = table[(slice(None), *(int(place in places) for place in range(k)))]
            members = tuple(sorted(joint.units[list(places)].tolist()))
            yield members, weight if size == 1 else np.where(np.abs(weight) <= noise, 0.0, weight)
