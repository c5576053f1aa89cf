"""Tables of SEV1, SEV-cluster and SEV-cluster+F: sparsity, closeness, credibility and time of four models.

The three share their models, so one unit measures all of them; each table shows its own lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from fewest import references
from fewest.decision import Decision
from fewest.experiments.paper.base import LIKELIHOOD, PERFORMANCE, Published, Record, Table, TableColumn, Tell
from fewest.experiments.paper.data import Rows
from fewest.experiments.paper.measures import CASES, Densities, accepted, densities_of, explain, performance
from fewest.experiments.paper.models import CLUSTERS, MODELS, changed_defaults, fit
from fewest.experiments.paper.printed_figures import printed
from fewest.references import References
from fewest.tables.schema import MAX_DECIMALS, Schema

FLEXIBILITY = (0.05, 0.10, 0.20)


class PointsTable(Table):
    """What the three tables share."""

    stored_as: ClassVar[str] = "points"
    datasets: ClassVar[tuple[str, ...]] = tuple(CLUSTERS)
    columns: ClassVar[tuple[TableColumn, ...]] = (
        *PERFORMANCE,
        TableColumn("sev", "mean SEV"),
        TableColumn("unreachable", "not possible", 1),
        TableColumn("l_inf", "mean l_inf", 2),
        TableColumn("l_inf_median", "median l_inf", 2),
        TableColumn("gower", "mean Gower", 3),
        *LIKELIHOOD,
        TableColumn("possible", "possible values", 3),
        TableColumn("flexibility_used", "flexibility used"),
        TableColumn("milliseconds", "ms per case", 3),
    )
    notes: ClassVar[tuple[str, ...]] = (
        "l_inf is over numbers, in standard deviations, zeros kept; the paper prints a mean for SEV1 and a median "
        "for SEV-cluster under one heading, over values that are not zero.",
        "The reference has its columns in the right order here, whole numbers where the column has whole numbers, and "
        "one level per category; the authors' code moves one-hot columns to the end.",
        "Encoder, references and densities learn from training rows only.",
    )

    def settings(self, dataset: str) -> Mapping[str, Any]:
        """Everything that decides the figures beside the data and the split."""
        count, m = CLUSTERS[dataset]
        return {"models": MODELS, "n_clusters": count, "m": m, "flexibility": FLEXIBILITY, "cases": CASES, "layout": 3,
                **changed_defaults()}  # fmt: skip

    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        """Fit the four models on one split and explain with all references."""
        rows = self.rows(dataset, split)
        records: list[Record] = []
        densities: Densities | None = None
        for kind in MODELS:
            tell(f"    {dataset}, split {split}: {kind}")
            model = fit(kind, dataset, rows.X_train, rows.y_train, self.quick)
            decision = Decision(model, positive=1)
            if densities is None:  # they know the accepted rows, not the model
                densities = densities_of(decision, rows, CLUSTERS[dataset][0])
            fixed = performance(model, rows)
            for label, refs in _references(decision, rows, dataset):
                figures = {} if refs is None else explain(decision, refs, rows, densities)
                records.append(Record(dataset, label.format(kind=kind), {**fixed, **figures}))
        return records


class Sev1Table(PointsTable):
    """SEV1: one mean/mode reference; "unrounded" leaves the mean of whole numbers a fraction, as the authors do."""

    name: ClassVar[str] = "sev1"
    title: ClassVar[str] = "SEV1 under different models"
    methods: ClassVar[tuple[str, ...]] = tuple(f"{kind}{how}" for kind in MODELS for how in ("", " unrounded"))
    published: ClassVar[Published] = printed("sev1", "l_inf")


class SevClusterTable(PointsTable):
    """SEV-cluster as this package does it: of all clusters' references, the one that needs the fewest features."""

    name: ClassVar[str] = "sevc"
    title: ClassVar[str] = "SEV-cluster under different models"
    methods: ClassVar[tuple[str, ...]] = tuple(f"{kind} clusters" for kind in MODELS)
    published: ClassVar[Published] = printed("sevc", "l_inf_median")


class SevFlexibleTable(PointsTable):
    """SEV-cluster with flexible references."""

    name: ClassVar[str] = "sevcf"
    title: ClassVar[str] = "SEV-cluster+F under different models"
    methods: ClassVar[tuple[str, ...]] = tuple(f"{kind} clusters {eps:.2f}" for kind in MODELS for eps in FLEXIBILITY)
    published: ClassVar[Published] = printed("sevcf", "l_inf_median")


def _references(decision: Decision, rows: Rows, dataset: str) -> Iterator[tuple[str, References | None]]:
    """Method names, with a place for the model's, and their references; None where the model accepts no centre."""
    yield "{kind}", references.single(decision, rows.X_train, rows.y_train, on_positive="allow")
    loose = unrounded(Schema.infer(rows.X_train))
    yield "{kind} unrounded", references.single(decision, rows.X_train, rows.y_train, schema=loose, on_positive="allow")
    count, m = CLUSTERS[dataset]
    centres = accepted(references.clusters, decision, rows.X_train, rows.y_train, n_clusters=count, m=m)
    yield "{kind} clusters", centres
    for eps in FLEXIBILITY:
        yield f"{{kind}} clusters {eps:.2f}", None if centres is None else centres.flexible(eps)


def unrounded(schema: Schema) -> Schema:
    """The schema with whole numbers taken for numbers: what is typical need not exist then."""
    features = tuple(
        replace(feature, kind="number", decimals=MAX_DECIMALS) if feature.kind == "integer" else feature
        for feature in schema.features
    )
    whole = {name for feature in schema.features if feature.kind == "integer" for name in feature.columns}
    dtypes = {name: np.dtype(float) if name in whole else dtype for name, dtype in schema.dtypes.items()}
    return Schema(features, dtypes)
