"""Brute force over whole domains: every allowed set, every combination of values, through the model's own scores."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

import fewest as fw
from fewest.constraints import AtMost, Constraints, Forbidden
from fewest.references import Anyone
from fewest.tables.closeness import feature_distances

MOST_ROWS = 400_000


def options(references: Anyone, constraints: Constraints, case: pd.DataFrame, j: int) -> pd.DataFrame:
    """The values one feature of a case may take, by the constraints' own word, its own left out."""
    frame = references.domains[j].frame
    start = case.iloc[np.zeros(len(frame), dtype=int)].set_axis(frame.index)
    fits = constraints.permitted(references.schema, start, frame)[:, j]
    differs = feature_distances(references.schema, start, frame, np.arange(len(frame)))[:, j] > 0
    return frame[fits & differs]


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
    sets = [s for k in range(1, len(schema) + 1) for s in combinations(range(len(schema)), k)]
    sets = [s for s in sets if sum(cost_of[j] for j in s) <= most and not any(b <= set(s) for b in banned)]
    best: tuple[float, float] | None = None
    for features in sorted(sets, key=lambda s: sum(cost_of[j] for j in s)):
        cost = sum(cost_of[j] for j in features)
        if best is not None and cost > best[0] + 1e-9:
            break
        far = _nearest(decision, references, case, features, [allowed[j] for j in features])
        if far is not None and (best is None or far < best[1]):
            best = cost, far
    return best


def _nearest(
    decision: fw.Decision, references: Anyone, case: pd.DataFrame, features: Any, allowed: list[pd.DataFrame]
) -> float | None:
    places = np.array(list(product(*(range(len(part)) for part in allowed))), dtype=int)
    if len(places) == 0:
        return None
    assert len(places) <= MOST_ROWS
    rows = {name: case[name].array[np.zeros(len(places), dtype=int)] for name in case.columns}
    for place, j, part in zip(places.T, features, allowed, strict=True):
        for column in references.schema.features[j].columns:
            rows[column] = part[column].array[place]
    frame = pd.DataFrame(rows)
    turned = frame[~decision.verdicts(frame).positive]
    if len(turned) == 0:
        return None
    start = case.iloc[np.zeros(len(turned), dtype=int)].set_axis(turned.index)
    return float(feature_distances(references.schema, start, turned, np.arange(len(turned))).sum(axis=1).min())
