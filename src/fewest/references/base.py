"""References: the prototypical accepted cases a case is compared with, and where they come from (rules 5, 14)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.closeness import feature_distances
from fewest.decision import Decision
from fewest.errors import PositiveReferenceError, UsageError
from fewest.files import write_text
from fewest.schema import Schema

OnPositive = Literal["error", "allow"]
Assignment = Literal["nearest", "sparsest"]
FORMAT = 1


@dataclass(frozen=True, eq=False)
class References:
    """Points to compare with, typed and rounded as they will be shown, with their provenance.

    Attributes
    ----------
    decision : Decision
        The decision they are accepted by.
    schema : Schema
        The features they have values for.
    frame : (m, columns)
        One row per reference, in the schema's columns and dtypes.
    names : tuple of str
    support : (m,) int
        How many rows each stands for; -1 where not known.
    score : (m,) float
        The model's score of each.
    assignment : str
        ``nearest``: each case is compared with the closest reference; ``sparsest``: with all, and the one that needs
        the fewest features is kept (the closest among equals).
    provenance : mapping
        How they were made.
    """

    decision: Decision
    schema: Schema
    frame: pd.DataFrame
    names: tuple[str, ...]
    support: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]
    assignment: Assignment = "nearest"
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        rows = ", ".join(f"{name} ({score:.3g})" for name, score in zip(self.names, self.score, strict=True))
        return f"<{len(self)} reference{'s' if len(self) != 1 else ''}: {rows}>"

    def with_assignment(self, assignment: Assignment) -> References:
        """The same points, assigned to cases in another way."""
        if assignment not in ("nearest", "sparsest"):
            raise UsageError(f'assignment "{assignment}" is unknown', do='use "nearest" or "sparsest"')
        return replace(self, assignment=assignment)

    def candidates(self, frame: pd.DataFrame) -> npt.NDArray[np.int32]:
        """References each row is compared with, nearest first: (n, 1) or (n, m)."""
        if len(self) == 1:
            return np.zeros((len(frame), 1), dtype=np.int32)
        far = np.empty((len(frame), len(self)))
        for k in range(len(self)):
            goal_of = np.full(len(frame), k, dtype=np.int32)
            far[:, k] = feature_distances(self.schema, frame, self.frame, goal_of).sum(axis=1)
        order = np.argsort(np.round(far, 12), axis=1, kind="stable").astype(np.int32)
        return order if self.assignment == "sparsest" else order[:, :1]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, no training rows: what `save` writes."""
        rows = json.loads(self.frame.to_json(orient="records", date_format="iso", default_handler=str))
        return {
            "format": FORMAT,
            "assignment": self.assignment,
            "provenance": dict(self.provenance),
            "references": [
                {"name": name, "support": int(support), "score": float(score), "values": row}
                for name, support, score, row in zip(self.names, self.support, self.score, rows, strict=True)
            ],
        }

    def save(self, path: str | Path) -> None:
        """Write the references as JSON."""
        write_text(path, json.dumps(self.to_dict(), indent=2, default=str) + "\n")


def build(
    decision: Decision,
    schema: Schema,
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    support: Sequence[int],
    *,
    on_positive: OnPositive,
    assignment: Assignment = "nearest",
    provenance: Mapping[str, Any] | None = None,
) -> References:
    """Type and round the points, score them, and refuse those the model decides against."""
    if on_positive not in ("error", "allow"):
        raise UsageError(f'on_positive "{on_positive}" is unknown', do='use "error" or "allow"')
    typed = pd.DataFrame([schema.snap(row) for row in rows], columns=list(schema.columns))
    frame = schema.conform(typed).reset_index(drop=True)
    verdicts = decision.verdicts(frame)
    if on_positive == "error" and verdicts.positive.any():
        worst = int(np.flatnonzero(verdicts.positive)[0])
        raise PositiveReferenceError(
            f'the reference "{names[worst]}" is itself decided positive '
            f"(score {verdicts.score[worst]:.4g} >= {decision.cut:.4g}); explanations that lead there may not exist",
            do='try centre="median" or centre="medoid", or clusters; on_positive="allow" proves what cannot be reached',
        )
    return References(
        decision, schema, frame, tuple(names), np.asarray(support, dtype=np.int64), verdicts.score, assignment,
        dict(provenance or {}),
    )  # fmt: skip
