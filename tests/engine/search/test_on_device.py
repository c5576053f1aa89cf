"""Sets looked at on a module's own device: the same answers as level by level, and as brute force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest import checks
from fewest.engine.search import levelwise
from fewest.engine.search.problem import Budget, Found, Outcome, Problem
from fewest.errors import ModelError, VerificationError

torch = pytest.importorskip("torch", reason='modules need pip install "fewest[train]"')
on_device = pytest.importorskip("fewest.engine.search.on_device")
from fewest.engine.structure.base import Module  # noqa: E402


class Residual(torch.nn.Module):  # type: ignore[misc]
    """A small net with a link past its middle, which nothing here reads."""

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.middle, self.last = (torch.nn.Linear(a, b) for a, b in ((width, 6), (6, 6), (6, 1)))

    def forward(self, rows: Any) -> Any:
        hidden = torch.tanh(self.first(rows))
        return 3.0 * self.last(hidden + torch.relu(self.middle(hidden)))


def random_problem(seed: int, n: int = 30, units: int = 6) -> tuple[Module, Problem]:
    """Cubes with equal and unequal units to move, columns of no unit, two columns of one, limits, both signs."""
    random = np.random.default_rng(seed)
    unit_of = np.array([*range(units), 0, -1], dtype=np.int32)
    rows, goal = random.normal(size=(n, units + 2)), random.normal(size=(3, units + 2))
    goal_of = random.integers(3, size=n).astype(np.int32)
    movable = random.random((n, units)) < random.choice([0.5, 1.0])
    limit = random.choice([1.0, 3.0, np.inf], size=n)
    distance = np.round(random.random((n, units)), 1)  # with ties
    problem = Problem(rows, goal, goal_of, unit_of, movable, distance, limit, sign=int(random.choice([-1, 1])))
    return Module("not read", Residual(units + 2, seed), int(random.integers(2)), 0.5), problem


def score_of(structure: Module, problem: Problem) -> Any:
    def score(cubes: Any, moved: Any) -> Any:
        rows = torch.tensor(problem.vertex_rows(cubes, moved), dtype=torch.float32)
        with torch.no_grad():
            chance = torch.sigmoid(structure.module(rows).reshape(-1)).numpy().astype(float)
        return problem.sign * ((chance if structure.positive else 1 - chance) - structure.cut)

    return score


def both_ways(structure: Module, problem: Problem) -> tuple[Found, Found]:
    score, tolerance = score_of(structure, problem), 1e-6
    level = on_device.ModuleLevels(structure, problem, tolerance).look
    return (
        levelwise.solve(score, problem, tolerance),
        levelwise.solve(score, problem, tolerance, level=level),
    )


def same(one: Found, other: Found) -> bool:
    fields = ("outcome", "moved", "known", "cost", "lower")
    return all(np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name == "cost") for name in fields)


@pytest.mark.parametrize("vertices", [2**17, 40, 1])
def test_answers_are_those_of_level_by_level(vertices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(on_device.VERTICES, "cpu", vertices)
    outcomes = set()
    for seed in range(6 if vertices > 1 else 1):
        plain, device = both_ways(*random_problem(seed))
        assert same(plain, device)
        outcomes |= set(device.outcome.tolist())
    assert {int(Outcome.FOUND), int(Outcome.NONE)} <= {int(one) for one in outcomes}


def test_where_the_device_has_no_room_the_sets_are_looked_at_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    right, refused = on_device.ModuleLevels._scores, []

    def narrow(self: Any, cubes: Any, lists: Any) -> Any:
        if lists.shape[0] * lists.shape[1] > 8:
            refused.append(lists.shape)
            raise torch.OutOfMemoryError("no room")
        return right(self, cubes, lists)

    monkeypatch.setattr(on_device.ModuleLevels, "_scores", narrow)
    assert same(*both_ways(*random_problem(2)))
    assert refused
    monkeypatch.setattr(on_device.ModuleLevels, "_scores", lambda *_: narrow(None, None, np.zeros((3, 3))))
    with pytest.raises(torch.OutOfMemoryError):
        both_ways(*random_problem(2))


def test_a_twin_that_mixes_wrongly_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of the test above: the last unit is never moved."""
    right = on_device.ModuleLevels._scores

    def wrong(self: Any, cubes: Any, lists: Any) -> Any:
        return right(self, cubes, lists.clamp(max=self._problem.n_units - 2))

    monkeypatch.setattr(on_device.ModuleLevels, "_scores", wrong)
    assert not all(same(*both_ways(*random_problem(seed))) for seed in range(6))


def test_a_level_beyond_the_budget_is_not_begun_and_a_deadline_ends_it() -> None:
    stopped = 0
    for seed in range(6):
        structure, problem = random_problem(seed)
        few = replace(problem, movable=np.ones_like(problem.movable), budget=Budget(nodes=6))
        plain, device = both_ways(structure, few)
        assert same(plain, device)
        stopped += (device.outcome == Outcome.STOPPED).sum()
    assert stopped
    late = both_ways(structure, replace(problem, budget=Budget(deadline=0.0)))[1]
    assert set(late.outcome.tolist()) == {Outcome.STOPPED}
    assert not late.known.any()


def explained(seed: int) -> tuple[fw.Explainer, fw.Explanations]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(60, 5)), columns=list("abcde"))
    decision = fw.Decision(Residual(5, seed), positive=1)
    positive = decision.verdicts(X).positive
    explainer = fw.Explainer(decision, fw.references.single(decision, X, positive.astype(int)))
    return explainer, explainer.explain(X.iloc[:30])


def checks_of(every: list[tuple[fw.Explainer, fw.Explanations]]) -> None:
    for explainer, out in every:
        checks.check_turns(out)
        checks.check_exact(explainer, out)


def test_an_explainer_of_a_module_that_is_not_read_looks_there_and_agrees_with_brute_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    right = on_device.ModuleLevels.look
    monkeypatch.setattr(on_device.ModuleLevels, "look", lambda self, *rest: asked.append(1) or right(self, *rest))
    checks_of([explained(seed) for seed in range(3)])
    assert asked


def test_a_twin_that_overlooks_sets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: nothing that moves the first unit counts as turned."""
    right = on_device.ModuleLevels._scores

    def wrong(self: Any, cubes: Any, lists: Any) -> Any:
        return torch.where((lists == 0).any(dim=2), 1.0, right(self, cubes, lists))

    monkeypatch.setattr(on_device.ModuleLevels, "_scores", wrong)
    every = [explained(seed) for seed in range(3)]
    with pytest.raises(VerificationError):
        checks_of(every)


def test_scores_that_are_no_numbers_are_refused() -> None:
    structure, problem = random_problem(0)
    with torch.no_grad():
        structure.module.last.bias.fill_(float("nan"))
    with pytest.raises(ModelError, match="NaN"):
        on_device.ModuleLevels(structure, problem, 1e-6).look(Found.blank(problem), np.arange(problem.n_cubes), 1)
