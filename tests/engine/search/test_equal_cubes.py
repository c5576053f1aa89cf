"""Equal cubes are searched once, and each still gets the answer of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fewest.engine.search import _equal_cubes, levelwise
from fewest.engine.search.problem import Found, Problem

WEIGHTS = np.array([1.0, -2.0, 0.5, 3.0, -1.0])


def raw(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.nan_to_num(rows) @ WEIGHTS)


def many_alike(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 2, size=(60, 5)).astype(float)
    start[rng.random(start.shape) < 0.1] = np.nan
    goal = np.array([[0.0, 1.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0, 0.0]])
    goal_of = rng.integers(0, 2, size=60).astype(np.int32)
    problem = Problem(
        start, goal, goal_of, np.arange(5, dtype=np.int32), rng.random((60, 5)) < 0.9,
        rng.integers(1, 3, size=(60, 5)).astype(float), np.where(rng.random(60) < 0.3, 2.0, np.inf),
    )  # fmt: skip
    return problem.take(np.flatnonzero(raw(start) >= 0))


def searched(problem: Problem, cut: float = 0.0) -> tuple[Found, int]:
    seen = []

    def search(part: Problem, cubes: np.ndarray) -> Found:
        seen.append(len(cubes))
        return levelwise.solve(lambda local, moved: raw(part.vertex_rows(local, moved)) - cut, part, 0.0)

    return _equal_cubes.once(problem, search), seen[0]


@pytest.mark.parametrize("seed", range(4))
def test_equal_cubes_are_searched_once_and_answered_as_alone(seed: int, brute: Any) -> None:
    problem = many_alike(seed)
    n = problem.n_cubes
    twice = problem.take(np.concatenate([np.arange(n), np.arange(n)]))
    found, count = searched(twice)
    assert count <= n
    assert brute.disagreement(twice, brute.solve(twice, raw, 0.0, 0.0), found) is None
    assert np.array_equal(found.nodes[:n], found.nodes[n:])


def test_keys_that_agree_by_chance_change_nothing(monkeypatch: pytest.MonkeyPatch, brute: Any) -> None:
    problem = many_alike(0)
    monkeypatch.setattr(_equal_cubes, "_SPREAD", np.uint64(0))
    found, count = searched(problem)
    assert count > 1
    assert brute.disagreement(problem, brute.solve(problem, raw, 0.0, 0.0), found) is None


CHANGES = {
    "start": [[4.0, 0.0, 0.0, 1.0, 0.0]],
    "distance": [[2.0, 1.0, 1.0, 1.0, 1.0]],
    "limit": [0.0],
    "goal_of": [1],
    "movable": [[False, True, True, True, True]],
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_twin_that_overlooks_a_difference_is_caught(name: str, monkeypatch: pytest.MonkeyPatch, brute: Any) -> None:
    """Negative control: two cubes that differ in one respect alone are taken for equal."""
    one = Problem(
        np.array([[1.0, 0.0, 0.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 9.0]]),
        np.zeros(1, dtype=np.int32), np.arange(5, dtype=np.int32), np.ones((1, 5), dtype=bool),
        np.array([[1.0, 2.0, 1.0, 1.0, 1.0]]), np.array([np.inf]),
    )  # fmt: skip
    other = np.array(CHANGES[name], dtype=getattr(one, name).dtype)
    problem = replace(one.take(np.zeros(2, dtype=int)), **{name: np.concatenate([getattr(one, name), other])})
    truth = brute.solve(problem, raw, 1.0, 0.0)
    assert brute.disagreement(problem, truth, searched(problem, 1.0)[0]) is None
    monkeypatch.setattr(_equal_cubes, "REPEATED", 1.0)  # all are compared
    monkeypatch.setattr(_equal_cubes, "first_equal", lambda problem: np.zeros(2, dtype=int))
    assert brute.disagreement(problem, truth, searched(problem, 1.0)[0]) is not None
