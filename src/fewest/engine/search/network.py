"""Exact search for feed-forward networks: cheap vertices for small sets, bounded sub-cubes for larger ones.

Sizes one and two are looked at vertex by vertex. From three on, a tree over the units (strongest first) is walked for
many cubes at once; a sub-cube is left out when a linear relaxation that counts the remaining moves shows that nothing
in it is turned, so what is left still holds every smallest set, and the ranking among them is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import comb

import numpy as np
import numpy.typing as npt

from fewest.engine.search import _tree, levelwise
from fewest.engine.search._bounds import BoundNodes, Bounds, bound, margin
from fewest.engine.search._greedy import give_up
from fewest.engine.search._joint import one_unit_each
from fewest.engine.search._subsets import (
    TurnedSubsets,
    as_rows,
    combinations,
    end_beyond,
    place_in_run,
    unit_lists,
)  # fmt: skip
from fewest.engine.search._vertices import Net, Shorts, VertexCubes
from fewest.engine.search.problem import Found, Outcome, Problem, combined
from fewest.engine.structure.base import Network
from fewest.tables.arrays import Bools, Floats, Ints

Bytes = npt.NDArray[np.int8]

_SLICE = 2048  # cubes searched together, at most
_HELD = 2**22  # ... and numbers in their steps, units times neurons
_DIRECT = 2  # sizes up to which bounds do not pay
_CAP = 512  # a sub-cube with at most this many sets that pass its linear bound is listed, not split
_FEW = 200  # ... unless more than this many of them pass the tighter bound, too
_CHUNK = 512  # nodes of a cube taken at a time
_LIST = 2**15  # vertices listed before they are scored


def solve(structure: Network, problem: Problem, n_jobs: int = 1) -> Found:
    """Cheapest turned set of each cube of a network; costs, rules and rejected sets are searched level by level.

    ``nodes`` counts vertices and bounded sub-cubes. Vertices are screened in float32; those within the worst-case
    rounding error of the threshold are decided in float64, one row at a time.
    """
    structure, problem = one_unit_each(structure, problem)
    found = Found.blank(problem)
    net = Net(structure, problem.sign)
    size = min(_SLICE, _HELD // (problem.n_units * int(net.widths[0]) + 1), -(-problem.n_cubes // n_jobs))
    size = max(size, 1)
    slices = [np.arange(low, min(low + size, problem.n_cubes)) for low in range(0, problem.n_cubes, size)]

    def work(part: Ints) -> Found:
        return _search(net, problem.take(part), structure.reading.tolerance)

    if n_jobs > 1 and len(slices) > 1:
        with ThreadPoolExecutor(n_jobs) as pool:
            parts = list(pool.map(work, slices))
    else:
        parts = [work(part) for part in slices]
    for part, piece in zip(slices, parts, strict=True):
        found.put(part, piece)
    return found


def _search(net: Net, problem: Problem, tolerance: float) -> Found:
    """Search one slice of cubes."""
    view = VertexCubes(net, problem)
    if problem.cost is not None or problem.rules or problem.rejected or len(net.widths) == 1:
        return levelwise.solve(view.exact, problem, tolerance)
    found = Found.blank(problem)
    active = np.arange(problem.n_cubes)
    k = 0
    while len(active) and not problem.budget.expired():
        k += 1
        active = end_beyond(problem, found, active, k)
        level = _Level(view, problem, tolerance, found, k)
        if k <= _DIRECT:
            level.enumerate(active)
        else:
            level.walk(active)
        level.turned.settle(found, None, ~level.stopped)
        active = active[found.outcome[active] == Outcome.STOPPED]
        if not problem.budget.expired():
            score = combined(view.exact, problem, tolerance)
            give_up(score, problem, tolerance, _LIST, found, active[level.stopped[active]])
        active = active[~level.stopped[active]]
    return found


class _Level:
    """The search for turned sets of exactly k units; smaller ones are known not to exist."""

    def __init__(self, view: VertexCubes, problem: Problem, tolerance: float, found: Found, k: int) -> None:
        self._view, self._problem, self._tolerance, self._found, self._k = view, problem, tolerance, found, k
        self._threshold = tolerance + margin(view)
        self._best = np.full(problem.n_cubes, np.inf)  # distance of the nearest turned set so far
        self.turned = TurnedSubsets(problem)
        self.stopped = np.zeros(problem.n_cubes, dtype=bool)

    def enumerate(self, cubes: Ints) -> None:
        """Look at all sets of k units."""
        sizes = self._problem.movable.sum(axis=1)
        for m in np.unique(sizes[cubes]):
            group, ways = cubes[sizes[cubes] == m], comb(int(m), self._k)
            group = self._afford(group, np.full(len(group), ways))
            table = combinations(int(m), self._k)
            step = max(1, _LIST // ways)
            for low in range(0, len(group), step):
                part = group[low : low + step]
                units = unit_lists(self._problem.movable, part).astype(np.int16)
                if self._problem.budget.expired():
                    self.stopped[group[low:]] = True
                    break
                self._take(np.repeat(part, ways), units[:, table].reshape(-1, self._k))

    def walk(self, cubes: Ints) -> None:
        """Walk the tree of all sets of k units, many cubes at a time, bounding every sub-cube."""
        stack = [self._roots(cubes)]
        while stack:
            nodes = stack.pop()
            nodes, rest = _divide(nodes, ~self.stopped[nodes.cubes])
            if self._problem.budget.expired():
                self.stopped[cubes] = True
                return
            if rest is not None:
                stack.append(rest)
            if len(nodes) > 0:
                stack.extend(self._process(nodes))

    def _roots(self, cubes: Ints) -> BoundNodes:
        """The whole cubes; units that can change the output most stand first."""
        strength = np.where(self._problem.movable[cubes], self._view.strength[cubes], -1.0)
        order = np.argsort(-strength, axis=1, kind="stable")
        sizes = self._problem.movable[cubes].sum(axis=1)
        listed = np.arange(self._problem.n_units) < sizes[:, None]
        offset = np.concatenate(([0], np.cumsum(sizes)))
        return BoundNodes(cubes, np.empty((len(cubes), 0), dtype=np.int16), order[listed].astype(np.int16), offset)

    def _process(self, nodes: BoundNodes) -> Iterator[BoundNodes]:
        """Bound nodes, score the sets of the small ones, and give the children of the others."""
        n, most = len(nodes), self._k - nodes.units.shape[1]
        threshold = self._threshold[nodes.cubes]
        bounds = bound(self._view, nodes, most)
        kind, passes = np.zeros(n, dtype=np.int8), np.zeros(len(nodes.free), dtype=bool)
        sets, children, room, others = (np.zeros(n, dtype=np.int64) for _ in range(4))
        _tree.plan(
            nodes.offset, bounds.constants, bounds.effects, threshold, most, _FEW, _CAP, kind, sets, passes, children,
            room, others,
        )  # fmt: skip
        present, first = np.unique(nodes.cubes, return_index=True)
        self._afford(present, np.add.reduceat(np.where(kind == _tree.LISTED, sets, 0) + 1, first))
        kind[self.stopped[nodes.cubes]] = _tree.PRUNED
        self._list(nodes, bounds, threshold, most, kind)
        split = kind == _tree.SPLIT
        if not split.any():
            return
        others[~split] = 0
        yield _some(nodes, others > 0, others)
        total = int(children[split].sum())
        following = BoundNodes(
            np.empty(total, dtype=np.int64),
            np.empty((total, nodes.units.shape[1] + 1), dtype=np.int16),
            np.empty(int(room[split].sum()), dtype=np.int16),
            np.empty(total + 1, dtype=np.int64),
        )
        _tree.split(
            kind, nodes.cubes, nodes.units, nodes.free, nodes.offset, most, passes, following.cubes, following.units,
            following.free, following.offset,
        )  # fmt: skip
        yield following

    def _list(self, nodes: BoundNodes, bounds: Bounds, threshold: Floats, most: int, kind: Bytes) -> None:
        """Score the sets of listed nodes that pass both bounds; nodes with too many of them are split after all."""
        view = self._view
        cubes = np.empty(_LIST + _FEW + self._problem.n_units**2, dtype=np.int64)
        units = np.empty((len(cubes), self._k), dtype=np.int16)
        at = 0
        while at < len(nodes):
            at, count = _tree.list_sets(
                at, kind, (nodes.cubes, nodes.units, nodes.free, nodes.offset),
                (bounds.constants, bounds.effects, bounds.bases, bounds.weights), threshold, most, view.steps32,
                view.base32, view.exact_first, cubes, units, _FEW,
            )  # fmt: skip
            if count:
                self._take(cubes[:count], units[:count])

    def _afford(self, cubes: Ints, nodes: Ints) -> Ints:
        """Charge cubes for what comes next; those that cannot pay are stopped, the others returned."""
        fits = self._found.nodes[cubes] + nodes <= self._problem.budget.nodes
        self.stopped[cubes[~fits]] = True
        self._found.nodes[cubes[fits]] += nodes[fits]
        return np.asarray(cubes[fits])

    def _take(self, cubes: Ints, units: Shorts) -> None:
        """Score sets and keep the turned ones; without ``all_sets`` only those that can still rank first."""
        one = not self._problem.all_sets
        if one:
            distance = np.zeros(len(cubes))
            for position in range(self._k):
                distance += self._problem.distance[cubes, units[:, position]]
            near = distance <= self._best[cubes] * (1 + 1e-10) + 1e-300
            cubes, units, distance = cubes[near], units[near], distance[near]
        hit = self._view.turned(cubes, units, self._tolerance)
        if self._problem.floor is not None and len(hit):
            lacking = self._problem.floor.missing(cubes[hit], as_rows(units[hit], self._problem.n_units))
            hit = hit[lacking <= 0]
        if one and len(hit):
            np.minimum.at(self._best, cubes[hit], distance[hit])
            hit = hit[distance[hit] <= self._best[cubes[hit]] * (1 + 1e-10) + 1e-300]
        if len(hit):
            rows = as_rows(units[hit], self._problem.n_units)
            self.turned.add(cubes[hit], rows, self._view.exact(cubes[hit], rows))


def _divide(nodes: BoundNodes, wanted: Bools) -> tuple[BoundNodes, BoundNodes | None]:
    """The wanted nodes, at most `_CHUNK` of a cube, and the rest of the wanted ones."""
    now = place_in_run(nodes.cubes) < _CHUNK
    if now.all() and wanted.all():
        return nodes, None
    rest = _some(nodes, wanted & ~now)
    return _some(nodes, wanted & now), rest if len(rest) else None


def _some(nodes: BoundNodes, mask: Bools, keep: Ints | None = None) -> BoundNodes:
    """The nodes of a mask; of their free units all or the last ``keep``."""
    sizes = np.diff(nodes.offset)
    kept = (sizes if keep is None else keep) * mask
    # A unit stays when its distance from the end of its list is at most what its node keeps.
    from_end = np.repeat(nodes.offset[1:], sizes) - np.arange(nodes.offset[0], nodes.offset[-1])
    offset = np.concatenate(([0], np.cumsum(kept[mask])))
    return BoundNodes(nodes.cubes[mask], nodes.units[mask], nodes.free[from_end <= np.repeat(kept, sizes)], offset)
