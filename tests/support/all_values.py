"""Brute force over whole domains: every allowed set, every combination of values, through the model's own scores."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

import fewest as fw
from fewest.constraints import AtMost, Constraints, Forbidden
from fewest.references import Anyone
from fewest.tables.closeness import feature_distances

MOST_ROWS = 400_000  # of one set
AT_ONCE = 4_000  # rows from which on the model is asked

Features = tuple[int, ...]


def options(references: Anyone, constraints: Constraints, case: pd.DataFrame, j: int) -> tuple[pd.DataFrame, Any]:
    """The values one feature of a case may take, by the constraints' own word, its own left out; how far each is."""
    frame = references.domains[j].frame
    start = case.iloc[np.zeros(len(frame), dtype=int)].set_axis(frame.index)
    fits = constraints.permitted(references.schema, start, frame)[:, j]
    far = feature_distances(references.schema, start, frame, np.arange(len(frame)))[:, j]
    return frame[fits & (far > 0)], far[fits & (far > 0)]


def best_of_all(
    decision: fw.Decision,
    references: Anyone,
    case: pd.DataFrame,
    constraints: Constraints | None = None,
    weights: dict[str, float] | None = None,
) -> tuple[float, float] | None:
    """Least cost and least distance at that cost over everything allowed; None where nothing turns the case."""
    constraints, schema = constraints or Constraints(), references.schema
    cost_of = [float((weights or {}).get(name, 1.0)) for name in schema.names]
    allowed = [options(references, constraints, case, j) for j in range(len(schema))]
    most = min((item.most for item in constraints.of(AtMost)), default=np.inf)
    banned = [{schema.index(name) for name in item.names} for item in constraints.of(Forbidden)]
    able = [j for j in range(len(schema)) if len(allowed[j][1])]
    sets = [s for k in range(1, len(able) + 1) for s in combinations(able, k)]
    sets = [s for s in sets if sum(cost_of[j] for j in s) <= most and not any(b <= set(s) for b in banned)]
    best: tuple[float, float] | None = None
    for batch in _batches(sorted(sets, key=lambda s: sum(cost_of[j] for j in s)), allowed):
        for features, far in _nearest(decision, references, case, batch, allowed):
            cost = sum(cost_of[j] for j in features)
            if best is None or (cost <= best[0] + 1e-9 and far < best[1]):
                best = cost, far
        if best is not None and sum(cost_of[j] for j in batch[-1]) > best[0] + 1e-9:
            break
    return best


def _batches(sets: list[Features], allowed: list[Any]) -> Iterator[list[Features]]:
    """The sets in their order, as many at once as make enough rows to ask the model about."""
    batch: list[Features] = []
    rows = 0
    for features in sets:
        batch.append(features)
        rows += int(np.prod([len(allowed[j][1]) for j in features]))
        if rows >= AT_ONCE:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _nearest(
    decision: fw.Decision, references: Anyone, case: pd.DataFrame, sets: list[Features], allowed: list[Any]
) -> Iterator[tuple[Features, float]]:
    """The sets that turn the case with some of their values, in their order, and the least distance of those."""
    p = len(references.schema)
    places = []
    for features in sets:
        grid = np.indices([len(allowed[j][1]) for j in features]).reshape(len(features), -1)
        assert grid.shape[1] <= MOST_ROWS
        own = np.full((grid.shape[1], p), -1)
        own[:, list(features)] = grid.T
        places.append(own)
    place, owner = np.vstack(places), np.repeat(np.arange(len(sets)), [len(own) for own in places])
    rows, far = {name: case[name].array[np.zeros(len(place), dtype=int)] for name in case.columns}, np.zeros(len(place))
    for j in range(p):
        moved = np.flatnonzero(place[:, j] >= 0)
        if len(moved):
            frame, steps = allowed[j]
            for column in references.schema.features[j].columns:
                cells = rows[column].astype(frame[column].dtype).copy()
                cells[moved] = frame[column].array[place[moved, j]]
                rows[column] = cells
            far[moved] += steps[place[moved, j]]
    turned = ~decision.verdicts(pd.DataFrame(rows)).positive
    for number, features in enumerate(sets):
        mine = turned & (owner == number)
        if mine.any():
            yield features, float(far[mine].min())
