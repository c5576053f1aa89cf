"""The zoo finds nothing wrong where nothing is, and notices what is: an oracle or an answer that was tampered with."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
import zoo
import zoo_oracle
from zoo_models import MODELS
from zoo_tables import MAKERS, Table

MODEL = "line, standard, one-hot"


@pytest.fixture(scope="module")
def table() -> Table:
    whole = MAKERS["breast_cancer"]()
    return replace(whole, X=whole.X.iloc[:, :5])


def line(table: Table) -> dict[str, Any]:
    return zoo.one_pair(table, MODEL, 2)


@pytest.mark.slow
def test_a_pair_is_compared_and_right(table: Table) -> None:
    found = line(table)
    assert found["counts"]["compared"] > 40
    assert found["counts"]["lists said to be complete"] > 20
    assert found["wrong"] == []


def test_an_oracle_told_of_one_feature_less_is_reported(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Table.features.fget
    assert whole is not None
    monkeypatch.setattr(Table, "features", property(lambda self: dict(list(whole(self).items())[:2])))
    assert line(table)["wrong"]


@pytest.fixture(scope="module")
def compared(table: Table) -> list[tuple[Any, ...]]:
    """Every answer of a pair, with what it is compared with."""
    kept: list[tuple[Any, ...]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zoo, "wrong", lambda *all_of_it: kept.append(all_of_it))
        line(table)
    return kept


@pytest.mark.parametrize(
    "broken",
    [
        lambda a: replace(a, changes=a.changes[:-1]),
        lambda a: replace(a, sev=a.sev + 1),
        lambda a: replace(a, cost=a.cost + 1),
        lambda a: replace(a, status=fw.Status("UNREACHABLE")),
        lambda a: replace(a, alternatives=a.alternatives[1:] + a.alternatives[:1] * 2),
        lambda a: replace(a, changes=tuple(replace(c, after=c.before) for c in a.changes)),
        lambda a: replace(a, proof=replace(a.proof, minimal=False)),
    ],
    ids=["a change dropped", "another SEV", "another cost", "unreachable", "listed twice", "another value",
         "not proved"],
)  # fmt: skip
def test_a_patched_answer_is_reported(compared: list[tuple[Any, ...]], broken: Callable[[Any], Any]) -> None:
    named = [zoo_oracle.wrong(broken(answer), *others) for answer, *others in compared if answer.status == "EXPLAINED"]
    assert sum(problem is not None for problem in named) > 20


def test_a_list_that_is_not_complete_though_it_is_said_to_be_is_reported(compared: list[tuple[Any, ...]]) -> None:
    cut = [(replace(answer, alternatives=answer.alternatives[:1]), *others) for answer, *others in compared]
    claimed = [one for one in cut if one[0].all_listed and one[-1].name == "plain"]
    assert any("said to be listed" in str(zoo_oracle.wrong(*one)) for one in claimed)


def test_the_command_ends_with_6_where_something_is_wrong_and_goes_on_from_its_log(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(MAKERS, "breast_cancer", lambda: table)
    monkeypatch.setattr(zoo, "wrong", lambda *_: "not right")
    arguments = ["--table", "breast_cancer", "--model", MODEL, "--cases", "1", "--log", str(tmp_path / "log")]
    assert zoo.main(arguments) == zoo.WRONG
    first = capsys.readouterr().out
    assert "WRONG" in first
    assert zoo.main(arguments) == zoo.WRONG
    again = capsys.readouterr().out
    assert "WRONG" not in again
    assert again.splitlines()[-1] == first.splitlines()[-1]


def test_the_oracle_reads_constraints_as_they_are_documented() -> None:
    """A cube whose score is positive until both a and b have moved, or d alone."""
    case, goal = pd.DataFrame({"a": [1], "b": [1], "c": [1], "d": [1]}), pd.DataFrame({name: [0] for name in "abcd"})
    score = lambda rows: np.where((rows["a"] + rows["b"] == 0) | (rows["d"] == 0), 0.0, 1.0)  # noqa: E731
    cube = zoo_oracle.Cube.of(case, goal, {name: [name] for name in "abcd"}, score)

    def sets(*rules: Any, **more: Any) -> set[str]:
        found = zoo_oracle.truth(cube, zoo_oracle.Question(constraints=rules, **more), 0.5)
        return {"".join(sorted(names)) for names in found.sets} or {found.status}

    assert sets() == {"d"}
    assert sets(fw.Immutable("d")) == {"ab"}
    assert sets(fw.Only("d", "up")) == {"ab"}
    assert sets(fw.Only("d", "down")) == {"d"}
    assert sets(fw.Range("d", 1, 2)) == {"ab"}
    assert sets(fw.OneOf("d", [1])) == {"ab"}
    assert sets(fw.Linked("d", "c")) == {"ab", "cd"}
    assert sets(fw.Linked("d", "c"), fw.Linked("c", "b")) == {"bcd"}
    assert sets(fw.Implies("d", "c"), fw.Implies("a", "c")) == {"cd"}
    assert sets(fw.Forbidden("d")) == {"ab"}
    assert sets(fw.Forbidden("d"), fw.AtMost(1)) == {"UNREACHABLE"}
    assert sets(weights={"d": 2.0}) == {"ab", "d"}
    assert sets(density=lambda rows: rows["d"], floor=0.5) == {"ab"}
    assert sets(density=lambda rows: rows["d"] * 0, floor=0.5) == {"NOT_CREDIBLE"}
    assert sets(plus=True) == {"ad", "bd"}


def test_there_are_enough_models_and_tables() -> None:
    assert len(MODELS) >= 60
    assert len(MAKERS) >= 6
