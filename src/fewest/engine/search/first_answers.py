"""The first answers of a process: small cubes, looked at set by set, while no compiled search is loaded.

Compiling a search takes many seconds and loading it about one, more than scoring the few sets that a small table asks
for. Both ways give the same answers, and count the same nodes where few sets had to be looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import comb

import numpy as np

from fewest.engine.search import levelwise
from fewest.engine.search._ties import as_cheap
from fewest.engine.search.problem import Found, Outcome, Problem, Score
from fewest.engine.structure.base import Additive, Ensemble, Network
from fewest.tables.arrays import Ints

Readable = Additive | Ensemble | Network

FEW = 4096  # sets of a cube, up to the size of the answer, that are looked at one by one
SECONDS_LOADING = 1.0  # spent on looking at sets before a compiled search is loaded
SECONDS_COMPILING = 6.0  # ... and before one is compiled that never was
WIDEST = FEW.bit_length() - 1  # this many units have at most `FEW` sets, one more has over twice as many
LEAST = 30_000  # nodes: with fewer to spend, the search decides what is stopped


@dataclass
class Readiness:
    """What this process has spent on looking at sets, in seconds, and which searches it has loaded."""

    spent: float = 0.0
    loaded: set[type] = field(default_factory=set)

    def has_time(self, structure: Readable, seconds: float) -> bool:
        """Whether that much more may be spent before the compiled search is the quicker way."""
        total = self.spent + seconds
        if type(structure) in self.loaded or total > SECONDS_COMPILING:
            return False
        return total <= SECONDS_LOADING or not _is_compiled(structure)


READINESS = Readiness()


def _is_compiled(structure: Readable) -> bool:
    """Whether the search of a structure was compiled before: then it need only be loaded. Imports numba."""
    from fewest.engine.numba_cache import is_cached
    from fewest.engine.search import _blocks, _kernels, _sorted_effects

    entries = {Additive: _sorted_effects.solve_block, Ensemble: _blocks.tree_sizes, Network: _kernels.vertices}
    return is_cached(entries[type(structure)])


def solve(
    structure: Readable,
    problem: Problem,
    score: Score,
    search: Callable[[Problem], Found],
    readiness: Readiness | None = None,
) -> Found:
    """The cheapest sets of a problem: from ``search``, the compiled one, or from looking at few sets by ``score``."""
    readiness = READINESS if readiness is None else readiness
    if problem.cost is not None or problem.floor is not None or problem.budget.nodes < LEAST:
        readiness.loaded.add(type(structure))
        return search(problem)
    if type(structure) not in readiness.loaded:
        found = _first_look(structure, problem, score, search, readiness)
    elif isinstance(structure, Additive) and problem.is_plain:
        return search(problem)  # whose kernel says them alike
    else:
        found = search(problem)
    _say_alike(problem, found)
    return found


def _first_look(
    structure: Readable, problem: Problem, score: Score, search: Callable[[Problem], Found], readiness: Readiness
) -> Found:
    """Look at sets while that is the quicker way; what is left goes to the compiled search, which is loaded then."""
    found, left = Found.blank(problem), np.arange(problem.n_cubes)
    seconds = _seconds(structure, problem, left, 1) + _seconds(structure, problem, left, 2)
    if readiness.has_time(structure, seconds):
        found, left = _look(structure, problem, score, readiness)
    if len(left):
        if not problem.budget.expired():
            readiness.loaded.add(type(structure))
        found.nodes[left] = 0
        found.put(left, search(problem.take(left) if len(left) < problem.n_cubes else problem))
    return found


def _look(structure: Readable, problem: Problem, score: Score, readiness: Readiness) -> tuple[Found, Ints]:
    """Look at sets of one unit, then of two, and so on while they are few; what was found, and the cubes left."""
    found, tolerance = Found.blank(problem), structure.reading.tolerance
    every = np.arange(problem.n_cubes)
    # A start that counts as turned is answered by the empty set, which is not looked at here.
    begun = score(every, np.zeros((problem.n_cubes, problem.n_units), dtype=bool)) >= tolerance
    active, left, size = every[begun], [every[~begun]], 0
    while len(active) and not problem.budget.expired():
        size += 1
        small = _sets_up_to(problem, active, size) <= FEW
        left.append(active[~small])
        seconds = _seconds(structure, problem, active[small], size)
        if not readiness.has_time(structure, seconds):
            left.append(active[small])
            active = active[:0]
            break
        readiness.spent += seconds
        active = levelwise.look_at_size(score, problem, tolerance, found, active[small], size)
    return found, np.sort(np.concatenate([*left, active]))


def _sets_up_to(problem: Problem, cubes: Ints, size: int) -> Ints:
    """How many sets of at most this size each cube has, counted as far as just beyond `FEW`."""
    units = np.count_nonzero(problem.movable[cubes], axis=1)
    return np.asarray(counts(problem.n_units, FEW)[units, min(size, WIDEST)])


@lru_cache(maxsize=64)
def counts(units: int, few: int) -> Ints:
    """By number of units and largest size, how many sets there are, the empty one not counted; at most ``few`` + 1.

    Sizes end at `WIDEST`: beyond it nothing is added, or there are more than ``few``.
    """
    table = np.zeros((units + 1, WIDEST + 1), dtype=np.int64)
    for m in range(units + 1):
        for size in range(1, WIDEST + 1):
            table[m, size] = min(table[m, size - 1] + comb(m, size), few + 1)
    return table


def _seconds(structure: Readable, problem: Problem, cubes: Ints, size: int) -> float:
    """About how long scoring the sets of this size takes."""
    widths, cubes_each = np.unique(problem.movable[cubes].sum(axis=1), return_counts=True)
    sets = sum(float(comb(m, size)) * n for m, n in zip(widths.tolist(), cubes_each.tolist(), strict=True))
    each = 1.5e-6 + 2e-8 * problem.start.shape[1]
    if isinstance(structure, Ensemble):
        each += 1e-8 * len(structure.root) * np.log2(2 + len(structure.column) / max(1, len(structure.root)))
    if isinstance(structure, Network):
        each += 1e-9 * sum(weight.size for weight in structure.weights)
    return float(sets * each)


def _say_alike(problem: Problem, found: Found) -> None:
    """Nodes and bounds that do not depend on the way that was taken.

    Where there are few sets up to the size of a proved answer, or up to the limit, these are the nodes. Where a limit
    is in the way, the bound is one more than it: how soon a search sees that no size would do is its own affair. The
    plain additive search does the same inside its kernel (`_sorted_effects`).
    """
    movable, none = np.count_nonzero(problem.movable, axis=1), found.outcome == Outcome.NONE
    sizes = np.where(found.outcome == Outcome.FOUND, found.cost, 0.0)
    if none.any():
        whole = np.maximum(np.floor(as_cheap(problem.limit[none])), 0.0)
        found.lower[none] = np.where(movable[none] <= whole, np.inf, whole + 1.0)
        sizes[none] = np.minimum(movable[none], whole)
        found.nodes[none & (sizes == 0)] = 0
    up_to = sizes.astype(np.int64)
    sets = counts(problem.n_units, FEW)[movable, np.minimum(up_to, WIDEST)]
    few = (up_to > 0) & (sets <= FEW)
    found.nodes[few] = sets[few]
