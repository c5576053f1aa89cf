"""Trees: SEV-T on a million rows, and how the ensemble search grows with features, trees and depth."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest import references
from fewest.decision import Decision
from fewest.engine.search import Budget, Outcome, Problem, ensemble
from fewest.engine.structure.base import Ensemble
from fewest.experiments.benchmarking.measure import Row, at_least, at_most, cpu, timed
from fewest.explainer import Explainer

ROWS = 1_000_000
PLAIN_ROWS = 1_000
LEAVES = 32
GRID = ((10, 100, 3), (50, 500, 3), (50, 2000, 3), (50, 500, 6), (100, 500, 6), (200, 500, 6), (50, 2000, 8))
HARD = (
    ("dense p = 200, 200 x 6, reference far", 200, 200, 6),
    ("dense p = 100, 1,000 x 8, reference far", 100, 1000, 8),
)


def negative_paths(tree: Any, positive: Any) -> dict[str, list[str]]:
    """Algorithm 2: for every inner node, named by the turns that lead to it, the paths below it to negative leaves."""
    found: list[str] = []
    nodes = [(0, "")]
    while nodes:
        node, path = nodes.pop()
        if tree.children_left[node] >= 0:
            nodes.append((int(tree.children_left[node]), path + "L"))
            nodes.append((int(tree.children_right[node]), path + "R"))
        elif not positive[node]:
            found.append(path)
    paths = defaultdict(list)
    for path in found:
        for i in range(len(path)):
            paths[path[:i]].append(path[i:])
    return paths


def plain_sev_t(tree: Any, paths: dict[str, list[str]], case: Any) -> int | None:
    """Algorithm 3 for one case: the least number of features that a path to a negative leaf changes.

    Read as it must be meant: the count starts at infinity, not at zero, and a feature that has changed counts once.
    """
    decision_path, nodes = "", [0]
    while tree.children_left[nodes[-1]] >= 0:
        node = nodes[-1]
        left = case[tree.feature[node]] <= tree.threshold[node]
        decision_path += "L" if left else "R"
        nodes.append(int(tree.children_left[node] if left else tree.children_right[node]))
    best = None
    for depth, node in enumerate(nodes[:-1]):
        for path in paths.get(decision_path[:depth], ()):
            if path[0] == decision_path[depth]:
                continue
            count = _changes(tree, node, path, case)
            if best is None or count < best:
                best = count
            if best == 1:
                return 1
    return best


def _changes(tree: Any, node: int, path: str, case: Any) -> int:
    """Distinct features whose condition on the path the case does not meet."""
    changed = set()
    for turn in path:
        feature = int(tree.feature[node])
        left = case[feature] <= tree.threshold[node]
        if left != (turn == "L"):
            changed.add(feature)
        node = int(tree.children_left[node] if turn == "L" else tree.children_right[node])
    return len(changed)


def sample(rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Ten numbers, of which an interaction of three and two more decide."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 10)).round(3)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] - 0.5 * X[:, 4]
    y = (signal + random.normal(size=rows) > 0).astype(int)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(10)]), y


def tree_million(rows: int = ROWS) -> Iterator[Row]:
    """A tree of 32 leaves, a million rows."""
    from sklearn.tree import DecisionTreeClassifier

    X_train, y_train = sample(20_000, 1)
    model = DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0).fit(X_train, y_train)
    decision = Decision(model)
    refs = references.leaves(decision, X_train, y_train)
    X, _ = sample(rows)
    reach = refs.reach()
    cases = X[decision.refuses(X)]
    codes = reach.tree.encode(cases)
    reach.search(codes[:10])
    arrays = cases.to_numpy()
    inner = DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0).fit(X_train.to_numpy(), y_train)
    search = cpu(lambda: reach.search(codes))
    predict = cpu(lambda: inner.predict(arrays))
    detail = (
        f"{1e9 * search / len(cases):.0f} ns/query against {1e9 * predict / len(cases):.0f} ns/row, "
        f"{len(cases):,} queries, {len(reach.leaf)} negative of {len(reach.tree.leaves)} leaves"
    )
    yield at_most("SEV-T search, 32 leaves", search / predict, 2, "x predict", detail)
    explainer = Explainer(decision, refs, n_jobs=1)
    explainer.explain(X.iloc[:1000])
    whole, alone = cpu(lambda: explainer.explain(X), repeats=3), cpu(lambda: model.predict(X), repeats=3)
    detail = f"explain {whole:.2f} s, predict {alone:.2f} s CPU, {rows:,} rows"
    yield at_most(f"SEV-T {rows:,} rows end to end", whole / alone, 15, "x predict", detail)
    few = arrays[:PLAIN_ROWS].astype(np.float32)
    inside = model.tree_
    paths = negative_paths(inside, inside.value[:, 0, 1] >= decision.cut)
    counts, spent = timed(lambda: [plain_sev_t(inside, paths, case) for case in few])
    plain = spent / len(few)
    if counts != reach.search(codes[:PLAIN_ROWS])[1].tolist():
        raise AssertionError("the paper's algorithm and the search do not agree")
    detail = f"{1e6 * plain:.0f} us/query, the same {len(few):,} answers"
    yield at_least("SEV-T against Algorithm 3 in Python", plain / (search / len(cases)), 1000, "x faster", detail)


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
        found, seconds = timed(partial(ensemble.solve, structure, task, 1))
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
        found, seconds = timed(partial(ensemble.solve, structure, task.take(np.array([cube])), 1))
        times.append(seconds)
        proved += found.outcome[0] != Outcome.STOPPED and times[-1] <= limit
        sizes.append(found.cost[0])
    detail = (
        f"mean SEV {np.nanmean(sizes):.1f}, largest {np.nanmax(sizes):.0f}; "
        f"median {1e3 * np.median(times):.3g} ms, mean {1e3 * np.mean(times):.3g} ms, longest {max(times):.3g} s"
    )
    yield at_least(f"{name}: proved within 2 s", proved / task.n_cubes, 1, "share", detail)
    yield at_most(f"{name}: longest", max(times), 5, "s CPU")
