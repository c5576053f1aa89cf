"""The network search against the level-wise one on the network's own scores, and controls that must fail."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from slow_cases import mostly_slow

from fewest.engine.search import _bounds, _kernels, _vertices, levelwise, network
from fewest.engine.search._subsets import as_rows, combinations
from fewest.engine.search.problem import Budget, Found, Outcome, Problem, Rules
from fewest.engine.structure.base import Network, Reading

ACTIVATIONS = ("relu", "tanh", "logistic", "identity")


def random_case(
    seed: int, units: int | None = None, hidden: int | None = None, kernel: str = "", **changes: object
) -> tuple[Network, Problem]:
    """A random net, and cubes from positive rows towards a row it scores below the cut."""
    random = np.random.default_rng(seed)
    u = units or int(random.integers(3, 9))
    unit_of = np.concatenate((np.arange(u), random.integers(-1, u, 4))).astype(np.int32)
    sizes = [len(unit_of), *random.integers(3, 12, hidden or int(random.integers(1, 4))).tolist(), 1]
    weights = tuple(random.normal(size=shape) * 1.5 / shape[0] ** 0.5 for shape in itertools.pairwise(sizes))
    biases = tuple(random.normal(size=size) * 0.3 for size in sizes[1:])
    reading = Reading(0.0, 1e-9, np.asarray, np.arange(len(unit_of), dtype=np.int32))
    structure = Network(reading, weights, biases, ACTIVATIONS[seed % 4])
    if kernel:
        structure = kernel_sum(random, kernel, reading)
    sign = -1 if seed % 3 == 0 else 1
    rows = random.normal(size=(200, len(unit_of)))
    if kernel == "gauss":  # the second half of the columns holds squares
        unit_of = np.concatenate((unit_of, unit_of))
        rows = np.hstack((rows, rows**2))
    rows = rows[np.argsort(sign * structure.raw(rows))]
    goal, start = rows[:2], rows[-12:]
    low, high = (sign * structure.raw(part) for part in (goal, start))
    cut = sign * (low.max() + random.choice([-0.05, 0.02, 0.1, 0.3]) * (high.min() - low.max()))
    structure = replace(structure, reading=replace(reading, cut=float(cut)))
    problem = Problem(
        start=start,
        goal=goal,
        goal_of=random.integers(0, 2, len(start)).astype(np.int32),
        unit_of=unit_of,
        movable=random.random((len(start), u)) < 0.95,
        distance=random.integers(0, 4, (len(start), u)) * 0.1,
        limit=np.where(random.random(len(start)) < 0.8, np.inf, 2.0),
        sign=sign,
        all_sets=int(random.choice([0, 2, 1000])),
    )
    return structure, replace(problem, **changes)  # type: ignore[arg-type]


def kernel_sum(random: np.random.Generator, name: str, reading: Reading) -> Network:
    """Kernels around 40 random points, of which half speak against a row."""
    width = len(reading.source)
    points, coef = random.normal(size=(40, width)), random.normal(size=(40, 1))
    first, bias, gamma = points.T / width**0.5, np.full(40, 0.3), random.choice([0.02, 0.1, 0.5])
    if name == "gauss":
        first, bias = np.vstack((2 * gamma * points.T, np.full((width, 40), -gamma))), -gamma * (points**2).sum(axis=1)
        reading = replace(reading, source=np.tile(reading.source, 2))
    return Network(reading, (first, coef), (bias, np.zeros(1)), name)


def by_vertices(structure: Network, problem: Problem) -> Found:
    """The same question answered through the structure's own scores of mixed rows."""

    def score(cubes: np.ndarray, moved: np.ndarray) -> np.ndarray:
        taken = np.where(problem.unit_of >= 0, moved[:, problem.unit_of], False)
        rows = np.where(taken, problem.goal[problem.goal_of[cubes]], problem.start[cubes])
        return problem.sign * (structure.raw(rows) - structure.reading.cut)

    return levelwise.solve(score, problem, structure.reading.tolerance)


def as_tuple(found: Found, nodes: bool = True) -> tuple:
    sets = None if found.sets is None else [rows.tolist() for rows in found.sets]
    arrays = [found.outcome, found.moved, found.known, found.cost, found.lower, found.complete]
    return (*(np.where(a == a, a, -1).tolist() for a in arrays + ([found.nodes] if nodes else [])), sets)


def agree(structure: Network, problem: Problem) -> bool:
    return as_tuple(network.solve(structure, problem), False) == as_tuple(by_vertices(structure, problem), False)


@pytest.fixture
def trees_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound from size one on and split everything: small cases then exercise what large ones need."""
    monkeypatch.setattr(network, "_DIRECT", 0)
    monkeypatch.setattr(network, "_CAP", 1)
    monkeypatch.setattr(network, "_FEW", 1)
    monkeypatch.setattr(network, "_CHUNK", 3)


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_levelwise_search(seed: int) -> None:
    assert agree(*random_case(seed))


KERNELS = ("gauss", "square", "cube")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", mostly_slow(range(24), range(8)))
def test_sums_of_kernels_equal_the_levelwise_search(seed: int, kernel: str) -> None:
    assert agree(*random_case(seed, kernel=kernel))


@pytest.mark.usefixtures("trees_from_the_start")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", mostly_slow(range(24), range(8)))
def test_bounded_sums_of_kernels_equal_the_levelwise_search(seed: int, kernel: str) -> None:
    assert agree(*random_case(seed, kernel=kernel))
    assert agree(*random_case(seed, units=11, kernel=kernel))


@pytest.mark.usefixtures("trees_from_the_start")
@pytest.mark.parametrize("seed", mostly_slow(range(120), range(40)))
def test_bounded_trees_equal_the_levelwise_search(seed: int) -> None:
    assert agree(*random_case(seed))


@pytest.mark.parametrize("seed", range(4))
def test_larger_sets_and_wider_nets_equal_the_levelwise_search(seed: int) -> None:
    structure, problem = random_case(seed, units=14, hidden=2, limit=np.full(12, np.inf))
    assert agree(structure, problem)


@pytest.mark.parametrize("seed", range(12))
def test_costs_rules_and_rejected_sets_are_obeyed(seed: int) -> None:
    random = np.random.default_rng(seed)
    structure, problem = random_case(seed)
    u = problem.n_units
    first = by_vertices(structure, problem)
    for changes in (
        {"cost": random.choice([0.5, 1.0, 2.0], size=(12, u))},
        {"rules": Rules(np.array([[0, 1]], dtype=np.int32), (np.array([1, 2], dtype=np.int32),))},
        {
            "rules": Rules(
                np.array([[0, 1]], dtype=np.int32), (np.array([1, 2], dtype=np.int32),), random.random((12, 2)) < 0.5
            )
        },
        {"rejected": {cube: first.moved[cube : cube + 1] for cube in range(12) if first.known[cube]}},
    ):
        assert agree(structure, replace(problem, **changes))


@pytest.mark.usefixtures("trees_from_the_start")
@pytest.mark.parametrize("seed", range(8))
def test_slices_and_threads_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    structure, problem = random_case(seed, units=9, budget=Budget(nodes=150))
    whole = as_tuple(network.solve(structure, problem))
    for size, n_jobs in ((1, 1), (5, 3)):
        monkeypatch.setattr(network, "_SLICE", size)
        assert as_tuple(network.solve(structure, problem, n_jobs)) == whole


@pytest.mark.parametrize("seed", range(30))
def test_a_spent_budget_is_said_and_its_bound_holds(seed: int) -> None:
    structure, problem = random_case(seed, units=8, all_sets=0)
    truth = by_vertices(structure, problem)
    for nodes in (0, 10, 40, 100):
        found = network.solve(structure, replace(problem, budget=Budget(nodes=nodes)))
        true_cost = np.where(truth.known, truth.cost, math.inf)
        assert (found.lower <= true_cost).all()
        assert (found.cost[found.known] >= true_cost[found.known]).all()
        assert (found.cost == true_cost)[found.outcome == Outcome.FOUND].all()
        assert (truth.outcome == Outcome.NONE)[found.outcome == Outcome.NONE].all()
        view = _vertices.VertexCubes(_vertices.Net(structure, problem.sign), problem)
        known = np.nonzero(found.known)[0]
        assert (view.exact(known, found.moved[known]) < structure.reading.tolerance).all()


def test_a_passed_deadline_leaves_cubes_stopped() -> None:
    structure, problem = random_case(1, budget=Budget(deadline=time.monotonic() - 1.0))
    assert (network.solve(structure, problem).outcome == Outcome.STOPPED).all()


@pytest.mark.parametrize(
    ("seed", "kernel"), [*((seed, "") for seed in range(24)), *((seed, name) for seed in range(6) for name in KERNELS)]
)
def test_no_vertex_of_a_sub_cube_scores_below_its_bounds(seed: int, kernel: str) -> None:
    structure, problem = random_case(seed, units=8, kernel=kernel)
    view = _vertices.VertexCubes(_vertices.Net(structure, problem.sign), problem)
    for moved, most in ((0, 1), (0, 3), (2, 2), (1, 7)):
        nodes = _bounds.BoundNodes(
            np.arange(12),
            np.tile(np.arange(moved, dtype=np.int16), (12, 1)),
            np.tile(np.arange(moved, 8, dtype=np.int16), 12),
            np.arange(13) * (8 - moved),
        )
        bounds = _bounds.bound(view, nodes, most)
        for size in range(most + 1):
            table = moved + combinations(8 - moved, size)
            rows = as_rows(table, 8)
            rows[:, :moved] = True
            for cube in range(12):
                exact = view.exact(np.full(len(rows), cube), rows)
                effects = bounds.effects[nodes.offset[cube] : nodes.offset[cube + 1]]
                room = _bounds.margin(view)[cube]
                linear = bounds.constants[cube] + rows[:, moved:] @ effects
                assert (linear <= exact + room).all()
                if structure.activation == "relu":
                    first = np.maximum(view.base[cube] + rows @ view.steps[cube], 0.0)
                    tighter = bounds.bases[cube] + first @ bounds.weights[cube]
                    assert (tighter <= exact + room).all()
                    assert (linear <= tighter + room).all()


@pytest.mark.parametrize("kernel", ["", *KERNELS])
@pytest.mark.parametrize("seed", range(8))
def test_float32_scores_lie_within_the_stated_band(seed: int, kernel: str) -> None:
    structure, problem = random_case(seed, units=8, kernel=kernel)
    view = _vertices.VertexCubes(_vertices.Net(structure, problem.sign), problem)
    table = combinations(8, 4)
    for cube in range(12):
        cubes = np.full(len(table), cube)
        gap = np.abs(view.screen(cubes, table) - view.exact(cubes, as_rows(table, 8)))
        assert (gap[problem.movable[cube][table].all(axis=1)] <= view.band[cube]).all()


def disagreements(kernel: str = "") -> int:
    return sum(not agree(*random_case(seed, kernel=kernel)) for seed in range(24))


@pytest.mark.usefixtures("trees_from_the_start")
def test_control_a_bound_that_is_too_high_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert disagreements() == 0
    monkeypatch.setattr(network, "margin", lambda view: -0.5 + 0.0 * view.band)
    assert disagreements() > 0


@pytest.mark.usefixtures("trees_from_the_start")
def test_control_lines_that_cut_through_a_kernel_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert disagreements("gauss") == 0
    way_back = _kernels.way_back

    def wrong(weight: np.ndarray, bias: np.ndarray, store: np.ndarray, *rest: object) -> None:
        way_back(-weight, bias, -store, *rest)  # the line above where the one below is due

    monkeypatch.setattr(_kernels, "way_back", wrong)
    assert disagreements("gauss") > 0


def test_control_a_search_that_skips_a_size_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network._Level, "enumerate", lambda self, cubes: self.walk(cubes) if self._k != 2 else None)
    assert disagreements() > 0


def test_control_a_shifted_threshold_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = _vertices.VertexCubes.turned
    monkeypatch.setattr(
        _vertices.VertexCubes, "turned", lambda self, cubes, units, cut: turned(self, cubes, units, cut + 0.1)
    )
    assert disagreements() > 0


def test_the_threshold_itself_is_not_turned() -> None:
    structure, problem = random_case(3, all_sets=0, limit=np.full(12, np.inf), sign=1)
    found = network.solve(structure, problem)
    cube = int(np.nonzero(found.known)[0][0])
    view = _vertices.VertexCubes(_vertices.Net(structure, 1), problem)
    score = float(view.exact(np.array([cube]), found.moved[cube][None])[0])
    exact = replace(structure, reading=replace(structure.reading, tolerance=score))
    assert not (network.solve(exact, problem).moved[cube] == found.moved[cube]).all()
    above = replace(structure, reading=replace(structure.reading, tolerance=float(np.nextafter(score, 9.0))))
    assert network.solve(above, problem).known[cube]
