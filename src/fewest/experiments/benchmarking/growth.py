"""How the ensemble search grows with features, trees and depth, on synthetic forests of random additive trees."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fewest.engine.search import Budget, Outcome, Problem, ensemble
from fewest.engine.structure.base import Ensemble
from fewest.experiments.benchmarking.measure import Row, at_least, at_most

GRID = ((10, 100, 3), (50, 500, 3), (50, 2000, 3), (50, 500, 6), (100, 500, 6), (200, 500, 6), (50, 2000, 8))
HARD = (
    ("dense p = 200, 200 x 6, reference far", 200, 200, 6),
    ("dense p = 100, 1,000 x 8, reference far", 100, 1000, 8),
)


def boosted(
    p: int, trees: int, depth: int, dense: bool = False, seed: int = 0
) -> tuple[Ensemble, npt.NDArray[np.float64]]:
    """A gradient-boosted model on a dense additive signal with interactions, and rows like its training rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    from fewest.engine.structure import read

    random = np.random.default_rng(seed)
    X = random.normal(size=(4000, p))
    weight = random.normal(size=p)
    if dense:  # no feature stands out
        weight = random.choice([-1.0, 1.0], p) * random.uniform(0.5, 1.0, p)
    weight /= np.sqrt(p)
    signal = X @ weight + 0.3 * (X[:, :-1] * X[:, 1:]) @ random.normal(size=p - 1) / np.sqrt(p)
    y = signal + 0.3 * random.normal(size=len(X)) > 0
    model = HistGradientBoostingClassifier(
        max_iter=trees, max_depth=depth, max_leaf_nodes=None, learning_rate=min(0.1, 20 / trees), min_samples_leaf=10
    )
    structure = read(model.fit(X, y))
    assert isinstance(structure, Ensemble)
    return structure, X


def problem(structure: Ensemble, X: npt.NDArray[np.float64], cases: int, far: bool, seconds: float) -> Problem:
    """Positive rows towards the mean of the negatives; ``far``: the most positive rows towards one barely accepted."""
    raw = structure.raw(X)
    positive, negative = X[raw >= structure.reading.cut], X[raw < structure.reading.cut]
    goal = negative.mean(axis=0)[None, :]
    if structure.raw(goal)[0] >= structure.reading.cut or far:
        goal = X[[int(np.argsort(raw)[int(len(negative) * (0.85 if far else 0.1))])]]
    order = np.argsort(-structure.raw(positive)) if far else np.arange(len(positive))
    start = positive[order[:cases]]
    scale = X.std(axis=0)
    return Problem(
        start=np.ascontiguousarray(start),
        goal=np.ascontiguousarray(goal),
        goal_of=np.zeros(len(start), dtype=np.int32),
        unit_of=np.arange(X.shape[1], dtype=np.int32),
        movable=start != goal,
        distance=np.abs(start - goal) / scale,
        limit=np.full(len(start), np.inf),
        budget=Budget(nodes=100_000, deadline=time.monotonic() + seconds),
    )


def growth() -> Iterator[Row]:
    """The grid, then the hard sets."""
    for p, trees, depth in GRID:
        structure, X = boosted(p, trees, depth)
        task = problem(structure, X, 200, False, 600)
        ensemble.solve(structure, task, 1)  # compiled and warm
        began = time.process_time()
        found = ensemble.solve(structure, task, 1)
        seconds = time.process_time() - began
        small = found.cost[(found.outcome == Outcome.FOUND)]
        name = f"growth p = {p}, {trees} trees, depth {depth}"
        detail = f"mean SEV {small.mean():.2f}, largest {small.max():.0f}, trees read {len(structure.root)}"
        yield at_most(name, 1e3 * seconds / task.n_cubes, 5, "ms per query", detail)
        yield at_least(f"{name}, proved", float((found.outcome != Outcome.STOPPED).mean()), 1, "share")
    for name, p, trees, depth in HARD:
        yield from _hard(name, p, trees, depth)


def _hard(name: str, p: int, trees: int, depth: int, cases: int = 60, limit: float = 2.0) -> Iterator[Row]:
    structure, X = boosted(p, trees, depth, dense=True)
    task = problem(structure, X, cases, True, 3600)
    times, proved, sizes = [], 0, []
    for cube in range(task.n_cubes):
        one = task.take(np.array([cube]))
        began = time.process_time()
        found = ensemble.solve(structure, one, 1)
        times.append(time.process_time() - began)
        proved += found.outcome[0] != Outcome.STOPPED and times[-1] <= limit
        sizes.append(found.cost[0])
    detail = (
        f"mean SEV {np.nanmean(sizes):.1f}, largest {np.nanmax(sizes):.0f}; "
        f"median {1e3 * np.median(times):.3g} ms, mean {1e3 * np.mean(times):.3g} ms, longest {max(times):.3g} s"
    )
    yield at_least(f"{name}: proved within 2 s", proved / task.n_cubes, 0.95, "share", detail)
