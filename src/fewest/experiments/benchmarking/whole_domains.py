"""Speed without a typical case: any value of the accepted cases, and every accepted case as a reference."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from fewest import references
from fewest.engine.anyone import AnyoneGoals
from fewest.engine.search import Budget
from fewest.experiments.benchmarking import subjects
from fewest.experiments.benchmarking.measure import Row, at_least, at_most, cpu, skipped, timed
from fewest.experiments.paper.data import data_folder
from fewest.explainer import Explainer
from fewest.results.enough import enough_by_row

TARGETS = {"gbdt": 20, "xgboost": 60, "lightgbm": 60}
MOST_REFERENCES, CASES = 8000, 100
NO_DATA = "the paper's data are not here: set FEWEST_DATA to their folder"


def any_value() -> Iterator[Row]:
    """The search over all values against predict_proba, on FICO; all proved."""
    for kind, limit in TARGETS.items():
        title = f"any value, {kind} 200 trees, fico"
        if data_folder() is None:
            yield skipped(title, f"<= {limit:g}", NO_DATA)
            continue
        subject = subjects.subject("fico", kind)
        X, _, y, _ = subjects.load("fico")
        explainer = Explainer(subject.decision, references.anyone(subject.decision, X, y), n_jobs=1, unseen="allow")
        out, whole = timed(partial(explainer.explain, subject.cases))
        search = _search(explainer, subject.cases)
        final, rows, _ = subject.prepared()
        seconds, predict = cpu(search, repeats=3), cpu(lambda: final.predict_proba(rows))  # noqa: B023
        sizes = out.answers.cost[out.answers.status == 0]
        detail = (
            f"{1e6 * seconds / len(rows):.1f} us/query against {1e6 * predict / len(rows):.2f} us/row, end to end "
            f"{1e6 * whole / len(rows):.0f} us/case, n {len(rows)}, mean {sizes.mean():.2f}, largest {sizes.max():.0f}"
        )
        yield at_most(title, seconds / predict, limit, "x predict_proba", detail)
        yield at_least(f"{title}, proved", float(out.answers.proved.mean()), 1, "share")


def _search(explainer: Explainer, cases: Any) -> Any:
    """The compiled search of these cases alone, as a call."""
    goals = explainer.goals
    if not isinstance(goals, AnyoneGoals):
        raise TypeError("only whole domains are searched for any value")
    task = goals.task(cases, float("inf"), 0)
    return partial(task.sight.search.solve, task.question(cases, task.sight.prepared(cases)), Budget(), 1)


def enough() -> Iterator[Row]:
    """How much of each change is enough, for all answers, against predict_proba of the answers, on FICO."""
    title = "how much is enough against predict_proba of the answers, gbdt, fico"
    if data_folder() is None:
        yield skipped(title, "<= 1", NO_DATA)
        return
    subject = subjects.subject("fico", "gbdt")
    out = subject.explainer(unseen="allow").explain(subject.cases.iloc[:CASES])
    hit = out.answers.moved.any(axis=1)
    turned, moved, predict = out.turned()[hit], out.answers.moved[hit], subject.decision.model.predict_proba
    work = partial(enough_by_row, subject.decision, out.schema, turned, moved, out.profiles)
    _, first = timed(work)
    seconds, asked = cpu(work, repeats=3), cpu(partial(predict, turned))
    detail = (
        f"{1e3 * seconds / len(turned):.2f} ms/answer against {1e3 * asked / len(turned):.3f} ms/row, n {len(turned)}, "
        f"{int(moved.sum())} intervals; laying the model out over the values took {first - seconds:.2f} s once"
    )
    yield at_most(title, seconds / asked, 1, "x predict_proba", detail)


def accepted_cases() -> Iterator[Row]:
    """Accepted cases as references, up to 8,000, against one typical case, end to end."""
    for name in ("fico", "adult"):
        title = f"every accepted case as a reference against single, gbdt, {name}"
        if data_folder() is None:
            yield skipped(title, "<= 30", NO_DATA)
            continue
        subject = subjects.subject(name, "gbdt")
        X, _, y, _ = subjects.load(name)
        one = subject.explainer(unseen="allow")
        refused = subject.decision.refuses(subject.references.schema.conform(X, unseen="allow"))
        rows = np.flatnonzero(~refused & (np.asarray(y) == 0))
        frame = X.iloc[rows].drop_duplicates().iloc[:MOST_REFERENCES]
        everyone = references.accepted(subject.decision, frame, np.zeros(len(frame), dtype=int))
        cases, many = subject.cases.iloc[:CASES], one.with_(references=everyone)
        single = cpu(partial(one.explain, cases), repeats=3)
        whole = cpu(partial(many.explain, cases), repeats=3)
        detail = f"{len(everyone.frame)} references, {1e3 * whole / len(cases):.2f} ms/case, {len(cases)} cases"
        yield at_most(title, whole / single, 30, "x single", detail)
