"""ExpO with its weight and spread tuned, and the curve that shows whether its regulariser acts.

On rows held out of the training part every weight and spread is tried; the sparsest model that is about as good as the
one without regulariser is trained once more, on all training rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from sklearn.model_selection import train_test_split

from fewest import references
from fewest.decision import Decision
from fewest.experiments.paper.allopt import MOST_ROWS, SCHEDULE, TRAINED
from fewest.experiments.paper.base import PERFORMANCE, Published, Record, Table, TableColumn, Tell
from fewest.experiments.paper.data import Rows
from fewest.experiments.paper.models import CASES, CLUSTERS, changed_defaults, performance, quietly
from fewest.explainer import Explainer

WEIGHTS = (0.01, 1.0, 100.0)
SPREADS = (0.1, 1.0)
REGULARIZERS = {"Fed": "fidelity", "1DFed": "1d"}
TOLERANCE = 0.01  # of accuracy and AUC on the rows held out, from the model without regulariser
HELD_OUT = 0.25
TUNED = "tuned"


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
        "Lines with C are trained on three quarters of the training part and measured on the rest. Tuned: the least "
        f"mean SEV1 there whose accuracy and AUC are within {TOLERANCE} of C 0, trained on the whole training part and "
        "measured on test rows. Chosen: in what share of the splits.",
        "Where SEV1 does not move from C 0 on, the regulariser does not act on it: around a row the model is "
        "straight already.",
    )

    def settings(self, dataset: str) -> Mapping[str, Any]:
        """Everything that decides the figures beside the data and the split."""
        fixed = {"schedule": SCHEDULE, "weights": WEIGHTS, "spreads": SPREADS, "tolerance": TOLERANCE, "cases": CASES}
        return {**fixed, "held_out": HELD_OUT, "rows": MOST_ROWS.get(dataset), "layout": 1, **changed_defaults()}

    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        """Walk the grid for each model and regulariser, choose, and train again."""
        rows = self.rows(dataset, split)
        most = MOST_ROWS.get(dataset, len(rows.X_train))
        rows = rows._replace(X_train=rows.X_train[:most], y_train=rows.y_train[:most])
        parts = train_test_split(
            rows.X_train, rows.y_train, test_size=HELD_OUT, stratify=rows.y_train, random_state=split
        )
        held = Rows(*parts)
        records: list[Record] = []
        for model in TRAINED:
            for way in REGULARIZERS:
                curve = {}
                for choice in GRID:
                    tell(f"    {dataset}, split {split}: {model} {way} {choice}")
                    curve[choice] = _measured(self.train(model, way, choice, held), held)
                best = choose(curve)
                for choice, figures in curve.items():
                    named = {f"held_{name.removeprefix('test_')}": value for name, value in figures.items()}
                    chosen = {"chosen": float(choice == best)}
                    records.append(Record(dataset, f"{model} {way} {choice}", {**named, **chosen}))
                tuned = _measured(self.train(model, way, best, rows), rows)
                records.append(Record(dataset, f"{model} {way} {TUNED}", tuned))
        return records

    def train(self, model: str, way: str, choice: WeightAndSpread, rows: Rows) -> Any:
        """One model, fitted."""
        from fewest.models.training import ExpOClassifier

        settings = {**SCHEDULE, "model": TRAINED[model], "regularizer": REGULARIZERS[way], "positive": 1,
                    "device": "cpu", **choice._asdict()}  # fmt: skip
        if self.quick:
            settings |= {"warmup_epochs": 3, "epochs": 2, "hidden": (8,)}
        with quietly():
            return ExpOClassifier.from_settings(**settings).fit(rows.X_train, rows.y_train)


def choose(curve: Mapping[WeightAndSpread, Mapping[str, float]]) -> WeightAndSpread:
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
        if all(figures[name] >= none[name] - TOLERANCE for name in ("test_accuracy", "test_auc"))
        and not math.isnan(figures["sev"])
    ]
    return min(good, key=lambda choice: curve[choice]["sev"], default=NONE)


def _measured(model: Any, rows: Rows) -> dict[str, float]:
    """Performance, and SEV1 of the rows that the model decides positive."""
    decision = Decision(model, positive=1)
    with quietly():
        refs = references.single(decision, rows.X_train, rows.y_train, on_positive="allow")
    cases = rows.X_test.iloc[:CASES]
    cases = cases[decision.verdicts(refs.schema.conform(cases, unseen="allow")).positive]
    figures = {**performance(model, rows), "decided": float(len(cases)), "sev": math.nan}
    if len(cases):
        sev = Explainer(decision, refs, n_jobs=1, unseen="allow").explain(cases).sev()
        figures["sev"] = float(sev.mean()) if len(sev) else math.nan
    return figures
