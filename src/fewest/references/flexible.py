"""Flexible references (Section 4.4, Algorithm 1; rule 7): numbers of a reference may move a little, to a lower score.

Each number moves inside its band, the quantiles of the negatives within eps of its own, to the value of a grid that the
model scores lowest while all other features stay. Values are typed and rounded before they are scored, and never leave
their band by that. A value that does not move is in every grid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import check_count, check_number, check_word
from fewest.references._round_values import as_frame
from fewest.references.spread import Spread, at_levels, band, numeric_columns, position
from fewest.tables.arrays import Floats
from fewest.tables.schema import Feature, Schema

if TYPE_CHECKING:
    from fewest.references.base import References

Placement = Literal["uniform", "quantiles"]
Choices = Mapping[str, list[float]]
WIDEST = 0.5


class Trial(NamedTuple):
    """One value for one number of one reference."""

    row: int
    column: str
    value: float


@dataclass(frozen=True)
class Flexibility:
    """How far and how thoroughly references move; checked when made."""

    eps: float  # Half-width of the band, as a share of the negatives
    grid: int = 11  # Values tried per number, beside the one it has
    passes: int = 1  # 1 is Algorithm 1; more go on from the moved reference, one number after the other
    # Where the grid lies: ``uniform`` between the ends of the band, or at its ``quantiles``
    at: Placement = "uniform"

    def __post_init__(self) -> None:
        share = f"use a share of the negatives from 0 to {WIDEST}, e.g. 0.05"
        check_number("eps", self.eps, share, least=0, most=WIDEST)
        check_count("grid", self.grid, least=2)
        check_count("passes", self.passes)
        check_word("at", self.at, ("uniform", "quantiles"))


def move(
    decision: Decision, schema: Schema, frame: pd.DataFrame, spread: Spread, flexibility: Flexibility
) -> pd.DataFrame:
    """Every reference moved to a lower score."""
    numbers = numeric_columns(schema)
    choices = [
        {column: candidates(schema, spread.quantiles.get(column), row, column, flexibility) for column in numbers}
        for row in frame.to_dict("records")
    ]
    moved = _each_alone(decision, schema, frame, choices)
    for _ in range(flexibility.passes - 1):
        moved = _descend(decision, schema, moved, choices)
    return moved


def candidates(
    schema: Schema, quantiles: Floats | None, row: Mapping[str, Any], column: str, flexibility: Flexibility
) -> list[float]:
    """Values a number may take: its own first, then those of the grid, typed, from the nearest to the farthest."""
    value = row[column]
    if pd.isna(value) or quantiles is None:
        return [value]
    own, feature = float(value), schema.features[schema.feature_of[column]]
    low, high = band(quantiles, own, flexibility.eps)
    if flexibility.at == "uniform":
        wanted = np.linspace(low, high, flexibility.grid)
    else:
        level, eps = position(quantiles, own), flexibility.eps
        wanted = at_levels(quantiles, np.linspace(max(0.0, level - eps), min(1.0, level + eps), flexibility.grid))
    inside = set(typed_inside(feature, wanted, low, high).tolist()) - {own}
    return [own, *sorted(inside, key=lambda other: (abs(other - own), other))]


def typed_inside(feature: Feature, values: Floats, low: float, high: float) -> Floats:
    """Values rounded as the feature is shown, each to the nearest one inside [low, high]; none if there is none."""
    steps = 10.0**feature.decimals
    # Rounded first: 0.3 * 10 is a little more than 3, and would be lifted to 4.
    first, last = np.ceil(np.round(low * steps, 6)), np.floor(np.round(high * steps, 6))
    if first > last:
        return np.empty(0)
    return np.asarray(np.round(np.clip(np.round(values * steps), first, last) / steps, feature.decimals))


def _each_alone(decision: Decision, schema: Schema, frame: pd.DataFrame, choices: Sequence[Choices]) -> pd.DataFrame:
    """Algorithm 1: every number by itself from the reference as it is, all moves made together in the end.

    Together they can do harm that none does alone, as features interact. The best single move is kept then.
    """
    records = frame.to_dict("records")
    tried, score, trials = _try(decision, schema, records, choices)
    if not trials:
        return frame
    single = _lowest([trial.row for trial in trials], score)
    by_number = _lowest([(trial.row, trial.column) for trial in trials], score)
    for (row, column), trial in by_number.items():
        records[row][column] = trials[trial].value
    together = as_frame(schema, records)
    alone = tried.iloc[[single[row] for row in range(len(records))]].reset_index(drop=True)
    worse = decision.verdicts(together).score > score[[single[row] for row in range(len(records))]]
    both = pd.concat([alone, together], ignore_index=True)
    return both.iloc[np.where(worse, 0, len(alone)) + np.arange(len(alone))].reset_index(drop=True)


def _descend(decision: Decision, schema: Schema, frame: pd.DataFrame, choices: Sequence[Choices]) -> pd.DataFrame:
    """Every number in turn from where the ones before have left the reference."""
    for column in numeric_columns(schema):
        tried, score, trials = _try(
            decision, schema, frame.to_dict("records"), [{column: values[column]} for values in choices]
        )
        best = _lowest([trial.row for trial in trials], score)
        frame = tried.iloc[[best[row] for row in range(len(frame))]].reset_index(drop=True)
    return frame


def _try(
    decision: Decision, schema: Schema, records: Sequence[Mapping[Any, Any]], choices: Sequence[Choices]
) -> tuple[pd.DataFrame, Floats, list[Trial]]:
    """Rows with one number replaced, and what the model says of them in one call."""
    trials = [
        Trial(row, column, value)
        for row, columns in enumerate(choices)
        for column, values in columns.items()
        for value in values
    ]
    tried = as_frame(schema, [{**records[trial.row], trial.column: trial.value} for trial in trials])
    return tried, decision.verdicts(tried).score, trials


def _lowest(keys: Sequence[Any], score: Floats) -> dict[Any, int]:
    """Key -> where its lowest score is; the first among equals, so that nothing moves for nothing."""
    found: dict[Any, int] = {}
    for place, key in enumerate(keys):
        if key not in found or score[place] < score[found[key]]:
            found[key] = place
    return found


def with_twins(plain: References, moved: pd.DataFrame, flexibility: Flexibility) -> References:
    """References and their moved twins, scored."""
    m = len(plain)
    frame = pd.concat([plain.frame, moved], ignore_index=True)
    return replace(
        plain,
        frame=frame,
        names=(*plain.names, *(f"{name} (flexible)" for name in plain.names)),
        support=np.tile(plain.support, 2),
        score=np.concatenate([plain.score, plain.decision.verdicts(moved).score]),
        spread=replace(plain.spread, ranges=plain.spread.ranges * 2),
        signatures=(*plain.signatures, *(None,) * m) if plain.signatures else (),
        flexible_of=(-1,) * m + tuple(range(m)),
        provenance={**plain.provenance, "flexible": asdict(flexibility)},
    )
