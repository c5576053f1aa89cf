"""Public invariants: run any model, references and constraints through them.

The oracle here is deliberately literal: it builds every vertex as a raw row, asks the user's own model, and reads the
constraints word by word. It shares no code with the searches it is held against.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from fewest.constraints import Forbidden, Implies, Linked
from fewest.errors import VerificationError
from fewest.explainer import Explainer
from fewest.results.explanation import Explanation, Status
from fewest.results.explanations import Explanations
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import written

MAX_VERTICES = 1 << 14


@dataclass(frozen=True)
class Truth:
    """What brute force says of one case and one reference."""

    # Least cost of a set that changes the outcome; None where none does, or none was found within ``searched``
    cost: float | None
    sets: frozenset[frozenset[str]]  # All sets of that cost
    searched: float  # All sets that cost less than this were looked at; inf for all sets there are


def brute_force(
    explainer: Explainer, case: pd.DataFrame, reference: pd.DataFrame, max_vertices: int = MAX_VERTICES
) -> Truth:
    """The answer for one case and one reference by asking the model about one set of features after the other.

    Parameters
    ----------
    explainer : Explainer
        Whose decision, constraints, weights, direction and credibility are used; its search is not.
    case, reference : one-row frames
        In the schema's columns.
    max_vertices : int
        Give up after this many vertices.

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> explainer = fw.Explainer(decision, fw.references.single(decision, X, y))
    >>> brute_force(explainer, X.iloc[[2]], explainer.references.frame).cost
    1.0
    """
    best: float | None = None
    sets: list[frozenset[str]] = []
    for asked, (cost, names) in enumerate(_sets_by_cost(explainer, case, reference)):
        if best is not None and cost > best * (1 + 1e-9):
            return Truth(best, frozenset(sets), best)
        if best is None and asked >= max_vertices:
            return Truth(None, frozenset(), cost)
        if _turned(explainer, case, reference, names):
            best = cost
            sets.append(names)
    return Truth(best, frozenset(sets), float("inf") if best is None else best)


def _turned(explainer: Explainer, case: pd.DataFrame, reference: pd.DataFrame, names: frozenset[str]) -> bool:
    """Whether the model, asked about this one row alone, decides the other way, and the row is credible."""
    plus = explainer.direction == "plus"
    row, source = (reference.copy(), case) if plus else (case.copy(), reference)
    for feature in explainer.schema.features:
        if feature.name in names:
            for column in feature.columns:
                row[column] = source[column].array
    score = explainer.decision.score(row)[0]
    turned = bool(score >= explainer.decision.cut) if plus else bool(score < explainer.decision.cut)
    dense = explainer.credibility
    return turned and (dense is None or bool(dense.log_density(row)[0] >= dense.floor))


def _sets_by_cost(
    explainer: Explainer, case: pd.DataFrame, reference: pd.DataFrame
) -> Iterator[tuple[float, frozenset[str]]]:
    """All allowed sets of features that differ, cheapest first."""
    schema, constraints = explainer.schema, explainer.constraints
    groups = _groups(explainer)
    different = [f.name for f in schema.features if _differs(f, case, reference)]
    permitted = constraints.permitted(schema, case, reference.set_index(case.index))[0]
    held = {name for name in different if not permitted[schema.index(name)]}
    units = sorted({groups[name] for name in different}, key=lambda unit: min(schema.index(name) for name in unit))
    units = [unit for unit in units if not unit & held]
    weight = {name: explainer.weights.get(name, 1.0) for name in schema.names}

    def allowed(chosen: tuple[frozenset[str], ...]) -> bool:
        moved = frozenset().union(*chosen) & set(different)
        for edge in constraints.of(Implies):
            if edge.cause in moved and edge.effect in different and edge.effect not in moved:
                return False
        return not any(set(item.names) <= moved for item in constraints.of(Forbidden))

    def cost(chosen: tuple[frozenset[str], ...]) -> float:
        return float(sum(weight[name] for unit in chosen for name in unit if name in different))

    choices: Iterator[tuple[frozenset[str], ...]] = (
        chosen for k in range(1, len(units) + 1) for chosen in combinations(units, k)
    )
    if explainer.weights or any(len(unit) > 1 for unit in units):
        choices = iter(sorted(choices, key=cost))
    for chosen in choices:
        if allowed(chosen) and cost(chosen) <= constraints.most * (1 + 1e-9):
            yield cost(chosen), frozenset(name for unit in chosen for name in unit if name in different)


def _groups(explainer: Explainer) -> dict[str, frozenset[str]]:
    """Feature -> everything that moves with it."""
    group = {name: frozenset({name}) for name in explainer.schema.names}
    for link in explainer.constraints.of(Linked):
        joined = frozenset().union(*(group[name] for name in link.names))
        for name in joined:
            group[name] = joined
    return group


def _differs(feature: Feature, case: pd.DataFrame, reference: pd.DataFrame) -> bool:
    for column in feature.columns:
        a, b = case[column].iloc[0], reference[column].iloc[0]
        if pd.isna(a) != pd.isna(b) or (not pd.isna(a) and a != b):
            return True
    return False


def distance(schema: Schema, case: pd.DataFrame, reference: pd.DataFrame, names: frozenset[str]) -> float:
    """How far a set of changes takes a case: standard deviations for numbers, one for anything else."""
    total = 0.0
    for feature in schema.features:
        if feature.name not in names:
            continue
        a, b = case[feature.columns[0]].iloc[0], reference[feature.columns[0]].iloc[0]
        if feature.is_numeric and not (pd.isna(a) or pd.isna(b)):
            total += abs(float(a) - float(b)) / feature.scale
        elif feature.kind == "datetime" and not (pd.isna(a) or pd.isna(b)):
            total += abs(float(a.value) - float(b.value)) / feature.scale
        else:
            total += 1.0
    return total


def _case(explanations: Explanations, answer: Explanation) -> pd.DataFrame:
    """The case of an answer, a table of one row."""
    numbers = np.arange(len(explanations)) if explanations.rows is None else explanations.rows
    return explanations.frame.iloc[np.flatnonzero(numbers == answer.row)[:1]]


def rebuilt(explanations: Explanations, answer: Explanation) -> pd.DataFrame:
    """The row an answer speaks of, rebuilt from its displayed values alone."""
    row = _case(explanations, answer).copy()
    if explanations.plus:
        base = explanations.references.names.index(str(answer.reference))
        row = explanations.references.frame.iloc[[base]].copy()
    for change in answer.changes:
        for column, value in written(explanations.schema, change.feature, change.after).items():
            row[column] = pd.Series([value], index=row.index).astype(row[column].dtype)
    return row


def check_turns(explanations: Explanations) -> int:
    """Every answer with a set changes the outcome when its displayed values are scored alone; how many there were."""
    decision = explanations.references.decision
    count = 0
    for answer in explanations:
        if not answer.changes:
            continue
        count += 1
        score = decision.score(rebuilt(explanations, answer))[0]
        turned = score >= decision.cut if explanations.plus else score < decision.cut
        if not turned:
            raise VerificationError(f"row {answer.row}: the answer does not change the outcome (score {score})")
    return count


def check_exact(explainer: Explainer, explanations: Explanations, max_vertices: int = MAX_VERTICES) -> int:
    """Status, cost, set, ranking and alternatives agree with brute force; how many cases were decided by it.

    Only for references assigned ``nearest`` or single ones: each case is held against the reference it was given.
    """
    decided = 0
    for answer in explanations:
        case = _case(explanations, answer)
        if explainer.decision.score(case)[0] < explainer.decision.cut:
            _require(answer.status == Status.ALREADY_NEGATIVE, answer, "the model did not refuse this case")
            continue
        _require(answer.status != Status.ALREADY_NEGATIVE, answer, "the model refused this case")
        number = explanations.references.names.index(str(answer.reference))
        reference = explanations.references.frame.iloc[[number]]
        truth = brute_force(explainer, case, reference, max_vertices)
        _compare(explainer, answer, case, reference, truth)
        decided += truth.cost is not None or np.isinf(truth.searched)
    return decided


def _compare(
    explainer: Explainer, answer: Explanation, case: pd.DataFrame, reference: pd.DataFrame, truth: Truth
) -> None:
    """One answer against the truth."""
    if answer.status == Status.NOT_CREDIBLE:
        _compare_plain(explainer, answer, case, reference, truth)
        return
    if truth.cost is None:
        if np.isinf(truth.searched):
            beyond = answer.proof.lower_bound >= min(explainer.constraints.most, 1e300)
            _require(beyond or answer.status == Status.BUDGET, answer, "more could be proved")
            _require(not answer.changes, answer, "nothing turns this case, yet an answer was given")
            _require(answer.status in (Status.UNREACHABLE, Status.BUDGET), answer, "nothing turns this case")
        return
    _require(answer.proof.lower_bound <= truth.cost * (1 + 1e-9), answer, "the lower bound is above the truth")
    if answer.status == Status.BUDGET:
        return
    _require(answer.status == Status.EXPLAINED, answer, f"there is an answer of cost {truth.cost}")
    shown = frozenset(change.feature for change in answer.changes)
    least = answer.cost is not None and abs(answer.cost - truth.cost) <= 1e-9 * truth.cost
    _require(least, answer, f"the least cost is {truth.cost}")
    _require(answer.sev == len(shown), answer, "SEV is not the number of changes")
    _require(shown in truth.sets, answer, f"the sets of least cost are {sorted(map(sorted, truth.sets))}")
    far = {names: distance(explainer.schema, case, reference, names) for names in truth.sets}
    _require(far[shown] <= min(far.values()) * (1 + 1e-9) + 1e-9, answer, "a set as small lies closer")
    if answer.alternatives:
        listed = {frozenset(change.feature for change in changes) for changes in answer.alternatives}
        _require(listed == truth.sets, answer, f"alternatives {sorted(map(sorted, listed))} are not all")


def _compare_plain(
    explainer: Explainer, answer: Explanation, case: pd.DataFrame, reference: pd.DataFrame, truth: Truth
) -> None:
    """An answer that is said not to be credible: nothing credible turns the case, and nothing smaller does at all."""
    _require(truth.cost is None, answer, f"there is a credible answer of cost {truth.cost}")
    plain = brute_force(explainer.with_(credibility=None), case, reference)
    if plain.cost is None:
        _require(not np.isinf(plain.searched), answer, "nothing turns this case")
    elif answer.proof.minimal:
        names = frozenset(change.feature for change in answer.changes)
        _require(names in plain.sets, answer, f"the sets of least cost are {sorted(map(sorted, plain.sets))}")


def _require(holds: bool, answer: Explanation, why: str) -> None:
    if not holds:
        raise VerificationError(
            f"row {answer.row}: {answer.status.value}, cost {answer.cost}, "
            f"{[change.feature for change in answer.changes]}: {why}"
        )


def check_batches(explainer: Explainer, X: pd.DataFrame) -> None:
    """A row's answer is the same alone, in any batch, in any order of rows and columns."""
    whole = explainer.explain(X).to_frame()
    backwards = explainer.explain(X.iloc[::-1]).to_frame().iloc[::-1]
    turned_columns = explainer.explain(X[X.columns[::-1]]).to_frame()
    parts = pd.concat([explainer.explain(X.iloc[k : k + 7]).to_frame() for k in range(0, len(X), 7)])
    alone = pd.concat([explainer.explain(X.iloc[[k]]).to_frame() for k in range(min(len(X), 12))])
    for name, these, other in (
        ("reversed rows", whole, backwards),
        ("reversed columns", whole, turned_columns),
        ("parts of 7", whole, parts),
        ("rows alone", whole.iloc[:12], alone),
    ):
        if not _same(these, other):
            raise VerificationError(f"the answers change with {name}")


def _same(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    return bool(a.astype(object).map(repr).equals(b.astype(object).map(repr)))


def run(explainer: Explainer, X: Any, max_vertices: int = MAX_VERTICES) -> dict[str, int]:
    """Run all checks on some cases; a `VerificationError` says which answer breaks which one.

    Returns
    -------
    dict
        How many answers changed the outcome, and how many were held against brute force.
    """
    frame = explainer.schema.conform(X, unseen=explainer.unseen)
    explanations = explainer.explain(frame)
    turned = check_turns(explanations)
    single = len(explainer.references) == 1 or explainer.references.assignment != "sparsest"
    exact = check_exact(explainer, explanations, max_vertices) if single else 0
    check_batches(explainer, frame.iloc[:40])
    return {"turned": turned, "held against brute force": exact}
