"""Which of many references a case is searched towards, and when: those that may need the fewest features come first.

What is proved of all of them at once (`fewest.engine.search.domains.many_rows`) says which cannot be better than the
best so far: most are never searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from fewest.engine.model_reading import ModelReading
from fewest.engine.structure.base import Ensemble
from fewest.tables.arrays import Bools, Floats, Ints, Ints32
from fewest.tables.closeness import Distances

MANY = 64  # references up to which all are searched
FIRST = 8  # references of a case in its second turn; up to four times as many in each later one


class Turn(NamedTuple):
    """Pairs of a case and a reference that are searched at once; those of a case in the order that decides ties."""

    case: Ints
    reference: Ints32
    limit: Floats  # The most that a set may cost
    ahead: Bools  # Whether it wins a tie with the best so far
    strict: bool  # Whether it must need fewer features to be preferred


class Race(Protocol):
    """The best so far of each case."""

    best: Floats
    length: Floats
    reference: Ints32


class ManyRows:
    """What is laid out of the references for one reading of the model, and kept."""

    def __init__(self) -> None:
        self._kept: tuple[Any, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what is laid out: it holds functions, and is laid out again."""
        return {"_kept": None}

    def turns(
        self, inside: ModelReading, goals: Floats, prepared: Floats, far: Distances, race: Race, deadline: float,
        n_jobs: int,
    ) -> Iterator[Turn]:  # fmt: skip
        """The turns of cases (n, d) that differ this far from the references ``goals`` (m, d)."""
        structure = inside.structure
        if self._kept is None or self._kept[0] is not structure:
            self._kept = structure, _lay_out(inside, goals, far.count)
        bounds = self._kept[1].bounds(prepared, far, deadline, n_jobs)
        return _turns(bounds.size.astype(float), np.round(bounds.steps, 12), far, race)


def _lay_out(inside: ModelReading, goals: Floats, p: int) -> Any:
    from fewest.engine.search.domains.many_rows import SummedRows, TreeRows  # imports numba, which takes a while

    kind = TreeRows if isinstance(inside.structure, Ensemble) else SummedRows
    return kind(inside.structure, inside.feature_of(), goals, p)  # type: ignore[arg-type]


def _turns(level: Floats, steps: Floats, far: Distances, race: Race) -> Iterator[Turn]:
    """First the nearest of those that may win, then whatever may still beat what was found."""
    lowest = steps.min(axis=1)
    case, reference = np.nonzero(steps == lowest[:, None])
    total = _totals(far, case, reference)
    order = np.lexsort((reference, total, case))
    order = order[np.append(True, case[order][1:] != case[order][:-1])[: len(order)]]
    case, reference = case[order], reference[order]
    seen = np.zeros(steps.shape, dtype=bool)
    yield _turn(race, case, reference, np.ones(len(case), dtype=bool), seen)
    many, size = len(level) * MANY, FIRST
    while True:
        settled = (race.best < level) | ((race.best == level) & (race.length <= lowest))
        todo = np.flatnonzero(~settled)
        if len(todo) == 0:
            return
        more = np.isinf(steps[todo])
        least, away = level[todo, None] + more, np.where(more, 0.0, steps[todo])
        best, length = race.best[todo, None], race.length[todo, None]
        tied = (least == best) & (away == length) & ~seen[todo]
        at, reference = np.nonzero(tied)
        tied[at, reference] = _ahead(far, race, todo[at], reference)
        open_to = ~seen[todo] & ((least < best) | ((least == best) & (away < length)) | tied)
        at, reference = np.nonzero(open_to)
        if len(at) == 0:
            return
        order = np.lexsort((away[at, reference], least[at, reference], at))
        at, reference = at[order], reference[order]
        place = np.arange(len(at)) - np.searchsorted(at, at)
        case, reference = todo[at[place < size]], reference[place < size]
        order = np.lexsort((reference, _totals(far, case, reference), case))
        case, reference = case[order], reference[order]
        yield _turn(race, case, reference, _ahead(far, race, case, reference), seen)
        size = min(4 * size, max(MANY, many // len(todo)))


def _turn(race: Race, case: Ints, reference: Ints, ahead: Bools, seen: Bools) -> Turn:
    seen[case, reference] = True
    return Turn(case, reference.astype(np.int32), race.best[case], ahead, False)


def _totals(far: Distances, case: Ints, reference: Ints) -> Floats:
    return np.asarray(np.round(far.between(case, reference).sum(axis=1), 12))


def _ahead(far: Distances, race: Race, case: Ints, reference: Ints) -> Bools:
    """Whether references come before those of the best so far: nearer as a whole, or earlier among equals."""
    holder = race.reference[case]
    own, other = _totals(far, case, reference), _totals(far, case, np.maximum(holder, 0))
    return np.asarray((holder < 0) | (own < other) | ((own == other) & (reference < holder)))
