"""The paper's data and models against a plain search, level by level, on the user's own model."""

from __future__ import annotations

from itertools import combinations

import pandas as pd
import pytest
from paper_data import paper_data as paper_data
from slow_cases import mostly_slow

import fewest as fw
from fewest import checks
from fewest.experiments.benchmarking import subjects
from fewest.experiments.paper import data_folder

KINDS = ("l2lr", "l1lr", "gbdt", "mlp", "histgb", "xgboost", "lightgbm", "forest8")
CASES = 25
LARGEST = 4  # levels the plain search can afford


def levels(
    decision: fw.Decision, schema: fw.Schema, case: pd.DataFrame, goal: pd.DataFrame, size: int
) -> list[set[str]]:
    """All sets of a size that turn the model, asked in one batch of plainly built rows."""
    before, after = case.iloc[0].to_dict(), goal.iloc[0].to_dict()
    names = [name for name in schema.names if before[name] != after[name]]
    sets = [set(chosen) for chosen in combinations(names, size)]
    if not sets:
        return []
    rows = {
        name: pd.Series([after[name] if name in chosen else before[name] for chosen in sets], dtype=case[name].dtype)
        for name in schema.names
    }
    turned = decision.score(pd.DataFrame(rows)) < decision.cut
    return [chosen for chosen, is_turned in zip(sets, turned, strict=True) if is_turned]


@pytest.mark.parametrize("kind", mostly_slow(KINDS, ("l2lr", "gbdt", "mlp", "xgboost")))
@pytest.mark.parametrize("name", mostly_slow(("german", "compas", "adult", "headline"), ("german",)))
def test_answers_on_the_papers_data_are_smallest(name: str, kind: str) -> None:
    if name != "german" and data_folder() is None:
        pytest.skip("the paper's data are not here (FEWEST_DATA)")
    if kind in ("xgboost", "lightgbm"):
        pytest.importorskip(kind)
    subject = subjects.subject(name, kind)
    cases = subject.cases.iloc[:CASES]
    out = subject.explainer(unseen="allow").explain(cases)
    assert out.strategies[1] != "levelwise", "the model was not read"
    assert checks.check_turns(out) == out.counts()["EXPLAINED"]
    schema, goal = subject.references.schema, subject.references.frame
    for answer in out:
        case = cases.iloc[[answer.row]]
        most = LARGEST if answer.sev is None else min(answer.sev, LARGEST)
        for size in range(1, most + 1):
            found = levels(subject.decision, schema, case, goal, size)
            if size == answer.sev:
                assert {change.feature for change in answer.changes} in found
            else:
                assert not found
