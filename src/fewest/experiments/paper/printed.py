"""Figures printed in "Improving Decision Sparsity" (NeurIPS 2024), typed in as they stand there, errors included."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from importlib.resources import files

from fewest.experiments.paper.base import Printed, Published

Figures = dict[str, Printed]


def _typed_in(file: str, table: str = "") -> Iterator[tuple[str, str, Figures]]:
    """Dataset, method and figures of the lines of a file, or of those of one table in it."""
    with files("fewest.experiments.paper").joinpath(file).open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            of, dataset, method = row.pop("table", ""), row.pop("dataset"), row.pop("method")
            if of == table:
                yield dataset, method, {name: _pair(text) for name, text in row.items() if text}


def _pair(text: str) -> Printed:
    """``mean sd``, or a mean alone."""
    mean, *sd = map(float, text.split())
    return Printed(mean, sd[0] if sd else math.nan)


def printed(table: str, l_inf: str) -> Published:
    """Figures of the tables sev1, sevc and sevcf, under the names of our lines.

    The paper prints one l_inf, a mean in one table and a median in the others: ``l_inf`` says which figure it is.
    """
    out: dict[tuple[str, str], Figures] = {}
    for dataset, method, figures in _typed_in("printed.csv", table):
        model, *eps = method.split()
        ours = " ".join([model, *(["clusters"] if table != "sev1" else []), *eps])
        value = figures.pop("l_inf")
        out[dataset, ours] = {**figures, l_inf: value}
    return out


def printed_training(table: str) -> Published:
    """Figures of the tables allopt1, alloptc and expo."""
    return {(dataset, method): found for dataset, method, found in _typed_in("printed_training.csv", table)}


# FICO's GOSDT has 1.80 here and 1.08 in the paper's figure. MIMIC-III is not public: its lines are for completeness.
TREES: Published = {(dataset, method): found for dataset, method, found in _typed_in("printed_trees.csv")}

# All of a logistic regression.
COUNTERFACTUALS: Published = {
    (dataset, f"L2LR {method}"): {name: found[name] for name in ("l_inf", "features", "log_likelihood_median")}
    for dataset, method, found in _typed_in("printed_cf.csv")
}

# Table "Training Dataset Sizes": observations, features before and after encoding.
_SIZES = {
    "compas": (6_907, 7, 7),
    "adult": (32_561, 14, 107),
    "mimic": (48_786, 14, 14),
    "diabetes": (101_766, 33, 101),
    "german": (1_000, 20, 59),
    "fico": (10_459, 23, 23),
    "headline": (41_752, 12, 17),
}
SIZES: Published = {
    (dataset, "table"): {
        name: Printed(float(size), math.nan) for name, size in zip(("rows", "features", "encoded"), sizes, strict=True)
    }
    for dataset, sizes in _SIZES.items()
}

# Table "SEV- change by moving reference point closer to the decision boundary", FICO: mean SEV, then the share of cases
# with at least 3, 6 and 10 features, in per cent.
_SENSITIVITY = {
    "L2LR r": (2.76, 2.82, 0.0, 0.0),
    "L2LR r'": (4.95, 89.23, 32.3, 0.0),
    "L1LR r": (2.46, 1.00, 0.0, 0.0),
    "L1LR r'": (4.57, 56.87, 21.27, 0.0),
}
SENSITIVITY: Published = {
    ("fico", method): {
        name: Printed(value, math.nan)
        for name, value in zip(("sev", "at_least_3", "at_least_6", "at_least_10"), row, strict=True)
    }
    for method, row in _SENSITIVITY.items()
}
