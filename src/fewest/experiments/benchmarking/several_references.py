"""The sparsest of eight references against the single one, end to end: the price of choosing where a case is led."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Iterator
from functools import partial

from fewest import references
from fewest.errors import FewestWarning
from fewest.experiments.benchmarking import subjects
from fewest.experiments.benchmarking.measure import REPEATS, Row, at_most, skipped, timed
from fewest.experiments.paper.data import Rows, data_folder
from fewest.results.explanations import Explanations

CLUSTERS, LIMIT = 8, 1.6
LONG_ENOUGH = 0.05  # seconds


def sparsest() -> Iterator[Row]:
    """Four datasets and three models, both sides in turn: CPU of explain with eight clusters over that with one."""
    for name in ("compas", "german", "adult", "fico"):
        for kind in ("l2lr", "gbdt", "mlp"):
            title = f"sparsest of {CLUSTERS} against one reference, {kind}, {name}"
            if name != "german" and data_folder() is None:
                yield skipped(title, f"<= {LIMIT:g}", "the paper's data are not here: set FEWEST_DATA to their folder")
                continue
            yield _row(title, subjects.subject(name, kind), subjects.load(name))


def _row(title: str, subject: subjects.Subject, rows: Rows) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewestWarning)  # clusters without an accepted row
        eight = references.clusters(
            subject.decision, rows.X_train, rows.y_train, n_clusters=CLUSTERS, assignment="sparsest"
        )
    one = subject.explainer(unseen="allow")
    few, many = (partial(each.explain, subject.cases) for each in (one, one.with_(references=eight)))
    alone, best = few(), many()
    loops = max(1, int(LONG_ENOUGH / max(timed(few)[1], 1e-6)))
    both = [(timed(few, loops)[1] / loops, timed(many, loops)[1] / loops) for _ in range(REPEATS)]
    mine, all_eight = (statistics.median(seconds) for seconds in zip(*both, strict=True))
    n = len(subject.cases)
    detail = (
        f"{1e6 * all_eight / n:.1f} us/case against {1e6 * mine / n:.1f}, n {n}, {len(eight)} references, "
        f"mean SEV {_mean(best):.2f} against {_mean(alone):.2f}"
    )
    return at_most(title, all_eight / mine, LIMIT, "x one reference", detail)


def _mean(out: Explanations) -> float:
    return float(out.answers.cost[out.answers.proved].mean())
