"""All smallest sets of a case, towards every reference it is compared with, and whether they are all there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.answers import Answers
from fewest.explanation import STATUSES, Status
from fewest.schema import Schema
from fewest.search import Found, Outcome
from fewest.typed import Cells

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
SAME = 1 + 1e-9  # costs closer than this (relative) are equal


@dataclass(frozen=True)
class Listed:
    """The cheapest sets of one case towards one reference, as features (s, p)."""

    cost: float
    reference: int
    sets: Bools
    complete: bool


@dataclass
class Listing:
    """Collects the sets that searches list, case by case, and joins those that cost the same.

    Attributes
    ----------
    asked : int
        Sets wanted per case at most.
    one_reference : bool
        Whether sets towards other references than the one shown are left out (SEV+).
    alike : (m, p) int32
        Equal numbers where references have equal values: the same changes are listed once.
    open_from : (n,) float64
        Least cost at which a search that was stopped may have missed sets; inf where none was.
    found : dict
        Case -> what was listed towards each reference, the nearest first.
    """

    asked: int
    one_reference: bool
    alike: Ints
    open_from: Floats
    found: dict[int, list[Listed]] = field(default_factory=dict)

    @classmethod
    def begin(cls, asked: int, cases: int, schema: Schema, references: pd.DataFrame, plus: bool) -> Listing:
        """Nothing listed yet."""
        alike = _alike(schema, references) if asked else np.empty((0, 0), dtype=np.int32)
        return cls(asked, plus, alike, np.full(cases, np.inf))

    def note(self, case: Longs, reference: Ints, found: Found, features: list[Bools]) -> None:
        """Take in the sets of some cubes; ``features`` are those of ``found.sets``."""
        stopped = found.outcome == Outcome.STOPPED
        np.minimum.at(self.open_from, case[stopped], found.lower[stopped])
        for cube in np.flatnonzero(found.known).tolist():
            entry = Listed(float(found.cost[cube]), int(reference[cube]), features[cube], bool(found.complete[cube]))
            self.found.setdefault(int(case[cube]), []).append(entry)

    def write(self, answers: Answers, rows: Longs, best: Floats) -> None:
        """Enter the smallest sets of each case, those of the reference shown first."""
        for case, entries in self.found.items():
            row, most = int(rows[case]), best[case] * SAME
            shown = int(answers.reference[row])
            tied = sorted((e for e in entries if e.cost <= most), key=lambda entry: entry.reference != shown)
            others = self.one_reference and len(tied) > 1
            tied = tied[:1] if others else tied
            sets = np.concatenate([entry.sets for entry in tied])
            towards = np.repeat(np.array([e.reference for e in tied], dtype=np.int32), [len(e.sets) for e in tied])
            kept = self._distinct(sets, towards)
            answers.alternatives[row] = sets[kept[: self.asked]]
            if len(tied) > 1:
                answers.towards[row] = towards[kept[: self.asked]]
            whole = all(entry.complete for entry in tied) and len(kept) <= self.asked and not others
            proved = answers.status[row] == STATUSES.index(Status.EXPLAINED)
            answers.complete[row] = whole and proved and self.open_from[case] > most

    def _distinct(self, sets: Bools, towards: Ints) -> list[int]:
        """Numbers of the sets that differ in features or values from all before them."""
        if len(set(towards.tolist())) < 2:
            return list(range(len(sets)))
        values = np.where(sets, self.alike[towards], -1)
        first: dict[bytes, int] = {}
        for number, key in enumerate(values):
            first.setdefault(key.tobytes(), number)
        return list(first.values())


def _alike(schema: Schema, references: pd.DataFrame) -> Ints:
    """Numbers of the references' values, feature by feature: equal where the values are shown alike."""
    cells = Cells.of(references)
    shown = [[repr(cells.value(row, f)) for row in range(len(references))] for f in schema.features]
    return np.column_stack([np.unique(texts, return_inverse=True)[1] for texts in shown]).astype(np.int32)
