"""ExpO with its weight and spread tuned, and the curve that shows whether its regulariser acts.

On the folds of the training part that All-Opt's C1 is chosen on, every weight and spread is tried; the sparsest that is
about as good as no regulariser is trained once more, on all training rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fewest import references
from fewest.decision import Decision
from fewest.experiments.paper.allopt import OTHER_WALK, QUICK_TRAINED, SCHEDULE, TRAINED, WALKS
from fewest.experiments.paper.base import PERFORMANCE, Published, Record, Table, TableColumn, Tell
from fewest.experiments.paper.data import Rows
from fewest.experiments.paper.models import CASES, CLUSTERS, changed_defaults, performance, quietly
from fewest.explainer import Explainer

WEIGHTS = (0.01, 1.0, 100.0)
SPREADS = (0.1, 1.0)
REGULARIZERS = {"Fed": "fidelity", "1DFed": "1d"}
TUNED = "tuned"
MOST_ROWS = 2_000  # thirty nets are trained with their neighbours sampled: on all rows of Adult that takes an hour


class WeightAndSpread(NamedTuple):
    """A weight and a spread of the regulariser."""

    c: float
    spread: float

    def __str__(self) -> str:
        return f"C {self.c:g} spread {self.spread:g}" if self.c else "C 0"


NONE = WeightAndSpread(0.0, SPREADS[0])
GRID = (NONE, *(WeightAndSpread(c, spread) for spread in SPREADS for c in WEIGHTS))


class ExpoCurveTable(Table):
    """SEV1 and accuracy over ExpO's weight and spread on rows held out, and the chosen ones on test rows."""

    name: ClassVar[str] = "expo_curve"
    stored_as: ClassVar[str] = "expo_curve"
    title: ClassVar[str] = "ExpO over its weight and spread, and tuned"
    datasets: ClassVar[tuple[str, ...]] = tuple(CLUSTERS)
    methods: ClassVar[tuple[str, ...]] = tuple(
        f"{model} {way} {line}" for model in TRAINED for way in REGULARIZERS for line in (*map(str, GRID), TUNED)
    )
    columns: ClassVar[tuple[TableColumn, ...]] = (
        TableColumn("held_accuracy", "held-out acc."),
        TableColumn("held_auc", "held-out AUC"),
        TableColumn("held_decided", "held-out cases decided positive", 1),
        TableColumn("held_sev", "held-out mean SEV1"),
        TableColumn("chosen", "chosen", 2),
        *PERFORMANCE,
        TableColumn("decided", "cases decided positive", 1),
        TableColumn("sev", "mean SEV1"),
    )
    published: ClassVar[Published] = {}
    notes: ClassVar[tuple[str, ...]] = (
        "Lines with C are measured on rows held out of the training part, the same that All-Opt's C1 is chosen on: "
        "folds (German 4, COMPAS 3, FICO 2), or a fifth. Tuned: the least mean SEV1 there whose accuracy and AUC are "
        "within 0.01 (Adult, Diabetes: 0.0075) of C 0, trained on the whole training part and measured on test rows. "
        "Chosen: in what share of the splits.",
        f"Every line is trained on the first {MOST_ROWS:,} training rows of the split, where there are more.",
        "Where SEV1 does not move from C 0 on, the regulariser does not act on it: around a row the model is "
        "straight already.",
    )

    def settings(self, dataset: str) -> Mapping[str, Any]:
        """Everything that decides the figures beside the data and the split."""
        fixed = {"schedule": SCHEDULE, "weights": WEIGHTS, "spreads": SPREADS, "cases": CASES, "layout": 2}
        walk = WALKS.get(dataset, OTHER_WALK)
        held = {
            "tolerance": walk.tolerance,
            "held_out": walk.validation,
            "rows": None if dataset == "german" else MOST_ROWS,
        }
        return {**fixed, **held, **({"models": tuple(QUICK_TRAINED)} if self.quick else {}), **changed_defaults()}

    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        """Walk the grid for each model and regulariser, choose, and train again."""
        rows = self.rows(dataset, split)
        rows = rows._replace(X_train=rows.X_train[:MOST_ROWS], y_train=rows.y_train[:MOST_ROWS])
        records: list[Record] = []
        grid = (GRID[0], GRID[-1]) if self.quick else GRID
        for model in QUICK_TRAINED if self.quick else TRAINED:
            for way in REGULARIZERS:
                folds = []
                for number, fold in enumerate(self.folds(dataset, rows), start=1):
                    tell(f"    {dataset}, split {split}: {model} {way}, rows held out {number}")
                    trained = self.train(model, way, grid, fold)
                    folds.append([_measured(each, fold) for each in trained])
                curve = {choice: pooled(each) for choice, each in zip(grid, zip(*folds, strict=True), strict=True)}
                best = choose(curve, WALKS.get(dataset, OTHER_WALK).tolerance)
                for choice, figures in curve.items():
                    named = {f"held_{name.removeprefix('test_')}": value for name, value in figures.items()}
                    chosen = {"chosen": float(choice == best)}
                    records.append(Record(dataset, f"{model} {way} {choice}", {**named, **chosen}))
                tell(f"    {dataset}, split {split}: {model} {way} {best}")
                (tuned,) = self.train(model, way, [best], rows)
                records.append(Record(dataset, f"{model} {way} {TUNED}", _measured(tuned, rows)))
        return records

    def folds(self, dataset: str, rows: Rows) -> Iterator[Rows]:
        """The training part, in the parts that All-Opt's C1 is chosen on; one when quick."""
        from fewest.models.training.search import held_out

        X, y = rows.X_train, np.asarray(rows.y_train)
        for used, held in held_out(0.25 if self.quick else WALKS.get(dataset, OTHER_WALK).validation, y):
            yield Rows(X.iloc[used], X.iloc[held], y[used], y[held])

    def train(self, model: str, way: str, choices: Sequence[WeightAndSpread], rows: Rows) -> Iterator[Any]:
        """A model for each choice, fitted; their warm-up is the same."""
        from fewest.models.training import ExpOClassifier
        from fewest.models.training.one_warm_up import fit_each

        settings = {**SCHEDULE, "model": TRAINED[model], "regularizer": REGULARIZERS[way], "positive": 1,
                    "device": "cpu"}  # fmt: skip
        if self.quick:
            settings |= {"warmup_epochs": 3, "epochs": 2, "hidden": (8,)}
        with quietly():
            estimator = ExpOClassifier.from_settings(**settings)
            yield from fit_each(estimator, rows.X_train, rows.y_train, [choice._asdict() for choice in choices])


def pooled(folds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Figures over all folds: means, the number of cases, and their mean SEV.

    Examples
    --------
    >>> a, b = {"test_auc": 0.8, "decided": 10.0, "sev": 1.0}, {"test_auc": 0.7, "decided": 30.0, "sev": 2.0}
    >>> pooled([a, b])
    {'test_auc': 0.75, 'decided': 40.0, 'sev': 1.75}
    """
    out = {name: float(np.mean([fold[name] for fold in folds])) for name in folds[0]}
    count = [fold["decided"] for fold in folds if not math.isnan(fold["sev"])]
    sev = [fold["sev"] for fold in folds if not math.isnan(fold["sev"])]
    mean = float(np.average(sev, weights=count)) if sev else math.nan
    return {**out, "decided": float(sum(fold["decided"] for fold in folds)), "sev": mean}


def choose(curve: Mapping[WeightAndSpread, Mapping[str, float]], tolerance: float = 0.01) -> WeightAndSpread:
    """The least SEV among those that are about as good as no regulariser; the earlier one among equals.

    Examples
    --------
    >>> figures = {"test_accuracy": 0.8, "test_auc": 0.8, "sev": 1.5}
    >>> mild, strong = WeightAndSpread(1.0, 0.1), WeightAndSpread(100.0, 0.1)
    >>> choose({NONE: figures, mild: {**figures, "sev": 1.4}, strong: {**figures, "sev": 1.0, "test_auc": 0.7}}) == mild
    True
    """
    none = curve[NONE]
    good = [
        choice
        for choice, figures in curve.items()
        if all(figures[name] >= none[name] - tolerance for name in ("test_accuracy", "test_auc"))
        and not math.isnan(figures["sev"])
    ]
    return min(good, key=lambda choice: curve[choice]["sev"], default=NONE)


def _measured(model: Any, rows: Rows) -> dict[str, float]:
    """Performance, and SEV1 of the rows that the model decides positive."""
    decision = Decision(model, positive=1)
    with quietly():
        refs = references.single(decision, rows.X_train, rows.y_train, on_positive="allow")
    cases = rows.X_test.iloc[:CASES]
    cases = cases[decision.refuses(refs.schema.conform(cases, unseen="allow"))]
    figures = {**performance(model, rows), "decided": float(len(cases)), "sev": math.nan}
    if len(cases):
        sev = Explainer(decision, refs, n_jobs=1, unseen="allow").explain(cases).sev.dropna()
        figures["sev"] = float(sev.mean()) if len(sev) else math.nan
    return figures
