"""What the tables measure of a model and of its explanations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from fewest import credibility
from fewest.credibility import Credibility
from fewest.decision import Decision
from fewest.errors import FewestWarning, PositiveReferenceError
from fewest.experiments.paper.data import Rows
from fewest.explainer import Explainer
from fewest.references import References
from fewest.results.explanations import Explanations
from fewest.tables.schema import Schema

CASES = 1000  # the authors explain the positives among the first thousand test rows
Densities = tuple[Credibility, Credibility]


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings of references that are decided positive: tables count them, nothing else is to be done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewestWarning)
        yield


def accepted(make: Callable[..., References], *given: Any, **settings: Any) -> References | None:
    """References whose centres the model accepts; None where it accepts none."""
    try:
        with quietly():
            return make(*given, **settings)
    except PositiveReferenceError:
        return None


def densities_of(decision: Decision, rows: Rows, components: int) -> Densities:
    """The authors' mixture, and the one that does not punish a rare level with -1e5."""
    table, labels = rows.X_train, rows.y_train
    return (
        credibility.mixture(decision, table, labels, paper=True, n_components=components),
        credibility.mixture(decision, table, labels, n_components=components),
    )


def performance(model: Any, rows: Rows) -> dict[str, float]:
    """Accuracy at one half and AUC, on training and on test rows."""
    from sklearn.metrics import roc_auc_score

    figures = {}
    for part, X, y in (("train", rows.X_train, rows.y_train), ("test", rows.X_test, rows.y_test)):
        score = model.predict_proba(X)[:, 1]
        figures[f"{part}_accuracy"] = float(np.mean((score >= 0.5) == (y == 1)))
        figures[f"{part}_auc"] = float(roc_auc_score(y, score))
    return figures


def explain(decision: Decision, refs: References, rows: Rows, densities: Densities) -> dict[str, float]:
    """Figures of one way to explain."""
    explainer = Explainer(decision, refs, n_jobs=1, unseen="allow")
    cases = rows.X_test.iloc[:CASES]
    cases = cases[decision.verdicts(refs.schema.conform(cases, unseen="allow")).positive]
    if len(cases) == 0:
        return {}
    explainer.look_inside(cases)
    out = explainer.explain(cases)
    return {**_sparsity(out), **_closeness(out), **_credibility(out, densities), "possible": _possible(out)}


def _explained(out: Explanations) -> Any:
    return out.answers.moved.any(axis=1)


def _sparsity(out: Explanations) -> dict[str, float]:
    sev, counts = out.sev(), out.counts()
    used = out.summary().get("flexibility used", math.nan)
    return {
        "sev": float(sev.mean()) if len(sev) else math.nan,
        "unreachable": float(counts["UNREACHABLE"]),
        "stopped": float(counts["BUDGET"]),
        "flexibility_used": float(used),
        "milliseconds": 1e3 * out.seconds / len(out),
    }


def _closeness(out: Explanations) -> dict[str, float]:
    from fewest.results.metrics import closeness

    near = closeness(out)
    return {"l_inf": near.mean_l_inf, "l_inf_median": near.median_l_inf, "gower": near.mean_gower}


def _credibility(out: Explanations, densities: Densities) -> dict[str, float]:
    turned = out.turned()[_explained(out)]
    return likelihoods(turned, densities) if len(turned) else {}


def likelihoods(rows: pd.DataFrame, densities: Densities) -> dict[str, float]:
    """Mean and median log-likelihood of rows under both mixtures."""
    authors, sane = (density.log_density(rows) for density in densities)
    return {
        "log_likelihood": float(authors.mean()),
        "log_likelihood_median": float(np.median(authors)),
        "sane_log_likelihood": float(sane.mean()),
        "sane_log_likelihood_median": float(np.median(sane)),
    }


def _possible(out: Explanations) -> float:
    """Share of explanations with a known level in every category and whole numbers where only these occur."""
    turned = out.turned()[_explained(out)]
    fine = np.ones(len(turned), dtype=bool)
    for feature in out.schema.features:
        moved = out.answers.moved[_explained(out), out.schema.index(feature.name)]
        fine &= ~moved | _typed(turned, out.schema, feature.name)
    return float(fine.mean()) if len(fine) else math.nan


def _typed(turned: pd.DataFrame, schema: Schema, name: str) -> Any:
    feature = schema.features[schema.index(name)]
    cells = turned[feature.columns[0]]
    if feature.kind == "category":
        return cells.isin(list(feature.levels)).to_numpy()
    if feature.kind == "integer":
        return cells.to_numpy(dtype=float) % 1 == 0
    return np.ones(len(turned), dtype=bool)
