"""Tables of SEV1, SEV-cluster and SEV-cluster+F: sparsity, closeness, credibility and time of four models.

The three share their models, so one unit measures all of them; each table shows its own lines.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fewest import credibility, references
from fewest.credibility import Credibility
from fewest.decision import Decision
from fewest.errors import FewestWarning, PositiveReferenceError
from fewest.explainer import Explainer
from fewest.explanations import Explanations
from fewest.paper.base import Column, Published, Record, Tell
from fewest.paper.data import Rows, load_split
from fewest.paper.models import CLUSTERS, MODELS, fit
from fewest.paper.published import printed
from fewest.references import References
from fewest.schema import MAX_DECIMALS, Schema

CASES = 1000  # the authors explain the positives among the first thousand test rows
FLEXIBILITY = (0.05, 0.10, 0.20)
QUICK_ROWS = 400


@dataclass(frozen=True)
class PointsTable:
    """What the three tables share.

    Parameters
    ----------
    folder : path, optional
        Where the paper's data are.
    quick : bool
        Few rows and small models: to see that everything runs, not to compare.
    """

    stored_as: ClassVar[str] = "points"
    datasets: ClassVar[tuple[str, ...]] = tuple(CLUSTERS)
    columns: ClassVar[tuple[Column, ...]] = (
        Column("train_accuracy", "train acc."),
        Column("test_accuracy", "test acc."),
        Column("train_auc", "train AUC"),
        Column("test_auc", "test AUC"),
        Column("sev", "mean SEV"),
        Column("unreachable", "not possible", 1),
        Column("l_inf", "mean l_inf", 2),
        Column("l_inf_median", "median l_inf", 2),
        Column("gower", "mean Gower", 3),
        Column("log_likelihood", "mean log-lik. (paper's mixture)", 1),
        Column("log_likelihood_median", "median", 1),
        Column("sane_log_likelihood", "mean log-lik. (regularised)", 1),
        Column("sane_log_likelihood_median", "median", 1),
        Column("possible", "possible values", 3),
        Column("flexibility_used", "flexibility used"),
        Column("milliseconds", "ms per case", 3),
    )
    notes: ClassVar[tuple[str, ...]] = (
        "l_inf is over numbers, in standard deviations, noughts kept; the paper prints a mean for SEV1 and a median "
        "for SEV-cluster under one heading, over values that are not nought.",
        "The reference has its columns in the right order here, whole numbers where the column has whole numbers, and "
        "one level per category; the authors' code moves one-hot columns to the end.",
        "Encoder, references and densities learn from training rows only.",
    )

    folder: str | Path | None = None
    quick: bool = False

    def settings(self, dataset: str) -> Mapping[str, Any]:
        """Everything that decides the figures beside the data and the split."""
        count, m = CLUSTERS[dataset]
        return {"models": MODELS, "n_clusters": count, "m": m, "flexibility": FLEXIBILITY, "cases": CASES, "layout": 3}

    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        """Fit the four models on one split and explain with all references."""
        rows = load_split(dataset, split, self.folder)
        if self.quick:
            rows = Rows(*(part[:QUICK_ROWS] for part in rows))
        records: list[Record] = []
        densities: tuple[Credibility, Credibility] | None = None
        for kind in MODELS:
            tell(f"    {dataset}, split {split}: {kind}")
            model = fit(kind, dataset, rows.X_train, rows.y_train, self.quick)
            decision = Decision(model, positive=1)
            if densities is None:  # they know the accepted rows, not the model
                densities = _densities(decision, rows, CLUSTERS[dataset][0])
            fixed = _performance(model, rows)
            for label, refs in _references(decision, rows, dataset):
                figures = {} if refs is None else _explain(decision, refs, rows, densities)
                records.append(Record(dataset, label.format(kind=kind), {**fixed, **figures}))
        return records


class Sev1Table(PointsTable):
    """SEV1: one mean/mode reference; "unrounded" leaves the mean of whole numbers a fraction, as the authors do.

    Examples
    --------
    >>> Sev1Table().published[("compas", "L2LR")]["sev"].mean
    1.26
    """

    name: ClassVar[str] = "sev1"
    title: ClassVar[str] = "SEV1 under different models"
    methods: ClassVar[tuple[str, ...]] = tuple(f"{kind}{how}" for kind in MODELS for how in ("", " unrounded"))
    published: ClassVar[Published] = printed("sev1", ("l_inf",))


class SevClusterTable(PointsTable):
    """SEV-cluster: the reference of the case's cluster.

    Examples
    --------
    >>> SevClusterTable().published[("fico", "L2LR clusters")]["sev"].mean
    2.21
    """

    name: ClassVar[str] = "sevc"
    title: ClassVar[str] = "SEV-cluster under different models"
    methods: ClassVar[tuple[str, ...]] = tuple(f"{kind} clusters" for kind in MODELS)
    published: ClassVar[Published] = printed("sevc", ("l_inf_median",))


class SevFlexibleTable(PointsTable):
    """SEV-cluster with flexible references.

    Examples
    --------
    >>> SevFlexibleTable().published[("fico", "L2LR clusters 0.05")]["sev"].mean
    2.3
    """

    name: ClassVar[str] = "sevcf"
    title: ClassVar[str] = "SEV-cluster+F under different models"
    methods: ClassVar[tuple[str, ...]] = tuple(f"{kind} clusters {eps:.2f}" for kind in MODELS for eps in FLEXIBILITY)
    published: ClassVar[Published] = printed("sevcf", ("l_inf_median",))


def _references(decision: Decision, rows: Rows, dataset: str) -> Iterator[tuple[str, References | None]]:
    """Method names, with a place for the model's, and their references; None where the model accepts no centre."""
    yield "{kind}", references.single(decision, rows.X_train, rows.y_train, on_positive="allow")
    loose = _unrounded(Schema.infer(rows.X_train))
    yield "{kind} unrounded", references.single(
        decision, rows.X_train, rows.y_train, schema=loose, on_positive="allow"
    )
    count, m = CLUSTERS[dataset]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewestWarning)  # a centre decided positive is dropped: nothing to be done
            centres = references.clusters(decision, rows.X_train, rows.y_train, n_clusters=count, m=m)
    except PositiveReferenceError:
        centres = None
    yield "{kind} clusters", centres
    for eps in FLEXIBILITY:
        yield f"{{kind}} clusters {eps:.2f}", None if centres is None else centres.flexible(eps)


def _unrounded(schema: Schema) -> Schema:
    """The schema with whole numbers taken for numbers: what is typical need not exist then."""
    features = tuple(
        replace(feature, kind="number", decimals=MAX_DECIMALS) if feature.kind == "integer" else feature
        for feature in schema.features
    )
    whole = {name for feature in schema.features if feature.kind == "integer" for name in feature.columns}
    dtypes = {name: np.dtype(float) if name in whole else dtype for name, dtype in schema.dtypes.items()}
    return Schema(features, dtypes)


def _densities(decision: Decision, rows: Rows, components: int) -> tuple[Credibility, Credibility]:
    """The authors' mixture, and the one that does not punish a rare level with -1e5."""
    table, labels = rows.X_train, rows.y_train
    return (
        credibility.mixture(decision, table, labels, paper=True, n_components=components),
        credibility.mixture(decision, table, labels, n_components=components),
    )


def _performance(model: Any, rows: Rows) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    figures = {}
    for part, X, y in (("train", rows.X_train, rows.y_train), ("test", rows.X_test, rows.y_test)):
        score = model.predict_proba(X)[:, 1]
        figures[f"{part}_accuracy"] = float(np.mean((score >= 0.5) == (y == 1)))
        figures[f"{part}_auc"] = float(roc_auc_score(y, score))
    return figures


def _explain(
    decision: Decision, refs: References, rows: Rows, densities: tuple[Credibility, Credibility]
) -> dict[str, float]:
    """Figures of one way to explain."""
    explainer = Explainer(decision, refs, threads=1, unseen="allow")
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
    from fewest.metrics import closeness

    near = closeness(out)
    return {"l_inf": near.mean_l_inf, "l_inf_median": near.median_l_inf, "gower": near.mean_gower}


def _credibility(out: Explanations, densities: tuple[Credibility, Credibility]) -> dict[str, float]:
    turned = out.turned()[_explained(out)]
    if len(turned) == 0:
        return {}
    authors, sane = (density.log_density(turned) for density in densities)
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
