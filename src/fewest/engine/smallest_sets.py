"""All smallest sets of a case, towards every reference it is compared with, and whether they are all there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fewest.engine.search import Found, Outcome, as_cheap
from fewest.results.answers import Answers
from fewest.results.explanation import STATUSES, Status
from fewest.tables.arrays import Bools, Floats, Ints, Ints32


@dataclass(frozen=True)
class SmallestSets:
    """The cheapest sets of one case towards one reference, as features (s, p)."""

    cost: float
    reference: int
    sets: Bools
    complete: bool


@dataclass
class Listing:
    """Collects the sets that searches list, case by case, and joins those that cost the same.

    A set of features that changes the outcome towards several references is listed once: towards the reference shown
    if it is one of them, else towards the nearest.
    """

    asked: int  # Sets wanted per case at most
    one_reference: bool  # Whether sets towards other references than the one shown are left out (SEV+)
    # (n,) float64: Least cost at which a search that was stopped may have missed sets; inf where none was
    open_from: Floats
    # Case -> what was listed towards each reference, the nearest first
    found: dict[int, list[SmallestSets]] = field(default_factory=dict)

    def note(self, case: Ints, reference: Ints32, found: Found, features: list[Bools]) -> None:
        """Take in the sets of some cubes; ``features`` are those of ``found.sets``."""
        stopped = found.outcome == Outcome.STOPPED
        np.minimum.at(self.open_from, case[stopped], found.lower[stopped])
        for cube in np.flatnonzero(found.known).tolist():
            entry = SmallestSets(
                float(found.cost[cube]), int(reference[cube]), features[cube], bool(found.complete[cube])
            )
            self.found.setdefault(int(case[cube]), []).append(entry)

    def write(self, answers: Answers, rows: Ints, best: Floats) -> None:
        """Enter the smallest sets of each case, those of the reference shown first."""
        for case, entries in self.found.items():
            row, most = int(rows[case]), as_cheap(best[case])
            shown = int(answers.reference[row])
            tied = sorted((e for e in entries if e.cost <= most), key=lambda entry: entry.reference != shown)
            sets = np.concatenate([entry.sets for entry in tied])
            towards = np.repeat(np.array([e.reference for e in tied], dtype=np.int32), [len(e.sets) for e in tied])
            distinct: dict[bytes, int] = {}
            for number, features in enumerate(sets):
                distinct.setdefault(features.tobytes(), number)
            kept = [k for k in distinct.values() if towards[k] == shown or not self.one_reference][: self.asked]
            answers.alternatives[row] = sets[kept]
            if (towards[kept] != shown).any():
                answers.towards[row] = towards[kept]
            whole = all(entry.complete for entry in tied) and len(kept) == len(distinct)
            proved = answers.status[row] == STATUSES.index(Status.EXPLAINED)
            answers.complete[row] = whole and proved and self.open_from[case] > most
