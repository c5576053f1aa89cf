"""Table "The model performance with different tree-based methods": CART, C4.5, GOSDT and TOpt, with mean SEV-T."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fewest import references
from fewest.decision import Decision
from fewest.experiments.paper.base import Published, Record, Table, TableColumn, Tell, printed
from fewest.experiments.paper.data import Rows
from fewest.experiments.paper.models import changed_defaults
from fewest.explainer import Explainer
from fewest.results.explanation import Status

DEPTH = 4
TIME_LIMIT = 600
QUICK: tuple[dict[str, Any], dict[str, Any]] = ({"regularization": 0.02, "guess_estimators": 20}, {"bound": 0.05})

GREEDY = {"max_depth": DEPTH}  # the authors' depth
# The searched trees, chosen on three hold-outs of the training rows of split 0, never on test rows. Both kinds pay the
# same price per leaf; ``bound`` makes sets of hundreds to a million trees of more than two leaves within a minute.
SEARCHED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # At 0.01 the set has a hundred trees, none of them with more than five leaves, and they are less accurate.
    "adult": ({"regularization": 0.005}, {"bound": 0.05}),
    # 1.00 costs accuracy here; with the thresholds of trees of depth two, which are more than those of stumps, less.
    "compas": ({"regularization": 0.007, "guess_depth": 2}, {"bound": 0.03}),
    # At 0.01 and 0.05 the set has little more than a hundred trees.
    "diabetes": ({"regularization": 0.005}, {"bound": 0.03}),
    # Over the thresholds of 50 stumps GOSDT needs most of a minute; those of 30 are no worse.
    "fico": ({"regularization": 0.005, "guess_estimators": 30}, {"bound": 0.03}),
    # Stumps guess four thresholds here, which make some thirty trees.
    "german": ({"regularization": 0.01, "guess_depth": 2}, {"bound": 0.05}),
    # At 0.01 two leaves are optimal and the set has eight trees.
    "headline": ({"regularization": 0.005}, {"bound": 0.05}),
}


# The paper's thresholds, of 50 stumps, and the authors' price and bound; they set no depth.
PAPERS = {"regularization": 0.02, "guess_estimators": 50, "guess_depth": 1, "bound": 0.01}
SHOWN = {"TOpt": "TOpt, ours (default)", "TOpt paper": "TOpt, paper's settings"}
# Not tuned: of MIMIC-III, and of a table of yours.
OTHER_TREES: tuple[dict[str, Any], dict[str, Any]] = ({"regularization": 0.01}, {"bound": 0.05})


def _beside_both() -> Published:
    """The printed figures; those of TOpt beside both of its lines."""
    known = printed("printed_other.csv", "trees")
    return {**known, **{(name, "TOpt paper"): figures for (name, method), figures in known.items() if method == "TOpt"}}


class TreesTable(Table):
    """Accuracy and mean SEV-T of four kinds of tree; SEV-T is over test rows that the tree decides positive."""

    name: ClassVar[str] = "trees"
    stored_as: ClassVar[str] = "trees"
    title: ClassVar[str] = "The model performance with different tree-based methods"
    datasets: ClassVar[tuple[str, ...]] = (
        "adult", "compas", "diabetes", "fico", "german", "headline", "mimic", "mimic_demo",
    )  # fmt: skip
    methods: ClassVar[tuple[str, ...]] = ("CART", "C4.5", "GOSDT", "TOpt", "TOpt paper")
    columns: ClassVar[tuple[TableColumn, ...]] = (
        TableColumn("train_accuracy", "train accuracy"),
        TableColumn("test_accuracy", "test accuracy"),
        TableColumn("decided", "cases decided positive", 1),
        TableColumn("sev_t", "mean SEV-T"),
        TableColumn("unreachable", "not possible", 1),
        TableColumn("leaves", "leaves", 1),
        TableColumn("trees", "trees in set", 0),
        TableColumn("larger_trees", "of more than 2 leaves", 0),
        TableColumn("fewest_leaves", "leaves from", 1),
        TableColumn("most_leaves", "to", 1),
    )
    # FICO's GOSDT has 1.80 here and 1.08 in the paper's figure. MIMIC-III, which is not public, is there as well.
    published: ClassVar[Published] = _beside_both()
    quick_rows: ClassVar[int] = 1500
    notes: ClassVar[tuple[str, ...]] = (
        "SEV-T counts original features, over the test rows that the tree decides positive; a split whose tree decides "
        "nobody positive has no SEV-T, and counts with zero cases.",
        "CART is gini and C4.5 is Quinlan's, both of depth 4. TOpt is chosen on training rows. GOSDT and TOpt search "
        "the same binary tests with the same price per leaf; TOpt with the paper's settings has thresholds of stumps, "
        f"a price of 0.02 a leaf and a bound of 0.01, but depth {DEPTH} as all others: see the settings.",
    )
    differences: ClassVar[tuple[str, ...]] = (
        "The authors count split conditions on encoded columns.",
        "The authors' CART is an entropy tree and their C4.5 a gini tree of depth 4, rows of their table swapped.",
        "TOpt is chosen by test accuracy in the authors' code.",
    )

    def settings(self, dataset: str) -> Mapping[str, Any]:
        """Parameters of the four estimators."""
        both, topt = QUICK if self.quick else SEARCHED.get(dataset, OTHER_TREES)
        return {
            "CART": GREEDY,
            "C4.5": GREEDY,
            "GOSDT": {**both, "max_depth": DEPTH, "time_limit": TIME_LIMIT},
            "TOpt": {**both, **topt, "max_depth": DEPTH, "time_limit": TIME_LIMIT},
            "TOpt paper": {**PAPERS, "max_depth": DEPTH, "time_limit": TIME_LIMIT},
            **changed_defaults(),
        }

    def shown(self, method: str) -> str:
        """Whose settings a line of TOpt has."""
        return SHOWN.get(method, method)

    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        """Fit and measure the four trees on one split."""
        from fewest.models.rashomon import TOptClassifier
        from fewest.models.trees import C45Classifier, CARTClassifier, GOSDTClassifier

        kinds = {"CART": CARTClassifier, "C4.5": C45Classifier, "GOSDT": GOSDTClassifier, "TOpt": TOptClassifier,
                 "TOpt paper": TOptClassifier}  # fmt: skip
        rows, settings, records = self.rows(dataset, split), self.settings(dataset), []
        for method, kind in kinds.items():
            tell(f"    {dataset}, split {split}: {method}")
            model: Any = kind(**settings[method]).fit(rows.X_train, rows.y_train)
            records.append(Record(dataset, method, {**measure(model, rows), **_set_figures(model)}))
        return records


def measure(model: Any, rows: Rows) -> dict[str, float]:
    """Accuracy of a tree fitted on the training rows, and SEV-T of the test rows that it decides positive."""
    figures = {
        "train_accuracy": float(np.mean(model.predict(rows.X_train) == rows.y_train)),
        "test_accuracy": float(np.mean(model.predict(rows.X_test) == rows.y_test)),
        "leaves": float(len(model.tree_.leaves)),
    }
    if model.tree_.positive[model.tree_.leaves].all():
        # Without a negative leaf there is nothing to change to: the outcome is counted, not folded into a mean.
        everybody = float(len(rows.X_test))
        return {**figures, "sev_t": math.nan, "decided": everybody, "unreachable": everybody}
    decision = Decision(model, positive=1)
    leaves = references.leaves(decision, rows.X_train, rows.y_train)
    out = Explainer(decision, leaves, n_jobs=1, unseen="allow").explain(rows.X_test)
    counts, sev = out.counts(), out.sev.dropna()
    return {
        **figures,
        "sev_t": float(sev.mean()) if len(sev) else math.nan,
        "decided": float(len(out) - counts[Status.ALREADY_NEGATIVE]),
        "unreachable": float(counts[Status.UNREACHABLE]),
    }


def _set_figures(model: Any) -> dict[str, float]:
    """Size of the Rashomon set a model was chosen from, if there is one."""
    if not hasattr(model, "n_trees_"):
        return {}
    names = ("trees", "larger_trees", "fewest_leaves", "most_leaves")
    larger = model.front_.loc[model.front_["leaves"] > 2, "trees"].sum()
    return dict(zip(names, map(float, (model.n_trees_, larger, *model.leaf_range_)), strict=True))
