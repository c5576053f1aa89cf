"""Answers: what is known of n cases, column by column; `Explanations` types it on the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.results.explanation import STATUSES, Status


@dataclass
class Answers:
    """The answers of n cases as arrays; -1, NaN and zero stand for "none" until `Explanations` types them."""

    status: npt.NDArray[np.int8]  # (n,) int8: Position in `STATUSES`
    moved: npt.NDArray[np.bool_]  # (n, p) bool: Features changed
    reference: npt.NDArray[np.int32]  # (n,) int32
    score: npt.NDArray[np.float64]  # score, score_after, cost, lower, l_inf: (n,) float64
    score_after: npt.NDArray[np.float64]
    cost: npt.NDArray[np.float64]
    lower: npt.NDArray[np.float64]
    l_inf: npt.NDArray[np.float64]
    proved: npt.NDArray[np.bool_]  # (n,) bool
    nodes: npt.NDArray[np.int64]  # (n,) int64
    strategy: npt.NDArray[np.int8]  # (n,) int8: Position in ``strategies``; 0 where nothing was searched
    log_density: npt.NDArray[np.float64]  # (n,) float64: Of the row the answer leads to, where a credibility is set
    # (n,) bool: Whether ``alternatives`` is known to hold every smallest set; the search says so
    complete: npt.NDArray[np.bool_]
    # (n,) int8: Decimals beyond those of its features that a case is shown with (`fewest.results.decimals`); -1: all;
    # -2: the model was not asked yet
    decimals: npt.NDArray[np.int8]
    # Row -> (s, p) smallest sets, the one shown first
    alternatives: dict[int, npt.NDArray[np.bool_]] = field(default_factory=dict)
    # Row -> (s,) the reference each of them leads to, where that is not the row's own for all of them
    towards: dict[int, npt.NDArray[np.int32]] = field(default_factory=dict)

    @classmethod
    def blank(cls, n: int, p: int) -> Answers:
        """All cases ALREADY_NEGATIVE, nothing known."""
        return cls(
            status=np.full(n, STATUSES.index(Status.ALREADY_NEGATIVE), dtype=np.int8),
            moved=np.zeros((n, p), dtype=bool),
            reference=np.full(n, -1, dtype=np.int32),
            score=np.full(n, np.nan),
            score_after=np.full(n, np.nan),
            cost=np.full(n, np.nan),
            lower=np.zeros(n),
            l_inf=np.full(n, np.nan),
            proved=np.zeros(n, dtype=bool),
            nodes=np.zeros(n, dtype=np.int64),
            strategy=np.zeros(n, dtype=np.int8),
            log_density=np.full(n, np.nan),
            complete=np.zeros(n, dtype=bool),
            decimals=np.full(n, -2, dtype=np.int8),
        )

    def put(self, rows: npt.NDArray[np.int64], part: Answers) -> None:
        """Write the answers of some rows."""
        for name, column in self._arrays().items():
            column[rows] = getattr(part, name)
        self.alternatives.update({int(rows[k]): sets for k, sets in part.alternatives.items()})
        self.towards.update({int(rows[k]): goals for k, goals in part.towards.items()})

    def take(self, rows: Sequence[int]) -> Answers:
        """The answers of some rows, in that order."""
        sets, goals = (
            {place: known[row] for place, row in enumerate(rows) if row in known}
            for known in (self.alternatives, self.towards)
        )
        chosen = np.asarray(rows, dtype=np.int64)
        arrays = {name: column[chosen] for name, column in self._arrays().items()}
        return Answers(**arrays, alternatives=sets, towards=goals)  # type: ignore[arg-type]

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
