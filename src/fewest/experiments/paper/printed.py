"""Figures printed in "Improving Decision Sparsity" (NeurIPS 2024), typed in as they stand there, errors included."""

from __future__ import annotations

import csv
import math
from importlib.resources import files

from fewest.experiments.paper.base import Printed, Published

_TREE_FIGURES = ("train_accuracy", "test_accuracy", "sev_t")

# Table "The model performance with different tree-based methods": training accuracy, test accuracy, mean SEV-T.
# FICO's GOSDT has 1.80 here and 1.08 in the paper's figure.
_TREE_ROWS = {
    ("adult", "CART"): ((0.84, 0.01), (0.84, 0.01), (1.11, 0.01)),
    ("adult", "C4.5"): ((0.85, 0.01), (0.84, 0.00), (1.10, 0.02)),
    ("adult", "GOSDT"): ((0.81, 0.01), (0.81, 0.01), (1.08, 0.01)),
    ("adult", "TOpt"): ((0.82, 0.01), (0.82, 0.01), (1.00, 0.00)),
    ("compas", "CART"): ((0.68, 0.00), (0.65, 0.01), (1.02, 0.01)),
    ("compas", "C4.5"): ((0.68, 0.00), (0.65, 0.01), (1.02, 0.01)),
    ("compas", "GOSDT"): ((0.67, 0.02), (0.65, 0.01), (1.12, 0.02)),
    ("compas", "TOpt"): ((0.66, 0.01), (0.67, 0.01), (1.00, 0.00)),
    ("diabetes", "CART"): ((0.63, 0.01), (0.63, 0.01), (1.00, 0.00)),
    ("diabetes", "C4.5"): ((0.63, 0.01), (0.63, 0.01), (1.00, 0.00)),
    ("diabetes", "GOSDT"): ((0.61, 0.01), (0.60, 0.01), (1.00, 0.00)),
    ("diabetes", "TOpt"): ((0.62, 0.01), (0.63, 0.01), (1.00, 0.00)),
    ("fico", "CART"): ((0.71, 0.01), (0.71, 0.01), (1.10, 0.03)),
    ("fico", "C4.5"): ((0.71, 0.01), (0.71, 0.01), (1.13, 0.05)),
    ("fico", "GOSDT"): ((0.70, 0.01), (0.69, 0.01), (1.80, 0.02)),
    ("fico", "TOpt"): ((0.70, 0.01), (0.71, 0.01), (1.00, 0.00)),
    ("german", "CART"): ((0.75, 0.01), (0.70, 0.01), (1.00, 0.00)),
    ("german", "C4.5"): ((0.75, 0.01), (0.70, 0.01), (1.00, 0.00)),
    ("german", "GOSDT"): ((0.75, 0.01), (0.70, 0.01), (1.00, 0.00)),
    ("german", "TOpt"): ((0.75, 0.01), (0.70, 0.01), (1.00, 0.00)),
    ("headline", "CART"): ((0.78, 0.01), (0.78, 0.00), (1.27, 0.01)),
    ("headline", "C4.5"): ((0.77, 0.01), (0.77, 0.00), (1.16, 0.02)),
    ("headline", "GOSDT"): ((0.76, 0.01), (0.76, 0.02), (1.09, 0.02)),
    ("headline", "TOpt"): ((0.77, 0.00), (0.77, 0.00), (1.00, 0.00)),
    # MIMIC-III is not public: these stand here for completeness.
    ("mimic", "CART"): ((0.89, 0.01), (0.89, 0.01), (1.00, 0.00)),
    ("mimic", "C4.5"): ((0.89, 0.01), (0.89, 0.01), (1.00, 0.00)),
    ("mimic", "GOSDT"): ((0.89, 0.01), (0.89, 0.01), (1.00, 0.00)),
    ("mimic", "TOpt"): ((0.89, 0.01), (0.89, 0.01), (1.00, 0.00)),
}

TREES: Published = {
    key: {name: Printed(*pair) for name, pair in zip(_TREE_FIGURES, row, strict=True)}
    for key, row in _TREE_ROWS.items()
}


def printed(table: str, l_inf: tuple[str, ...]) -> Published:
    """Figures of the tables sev1, sevc and sevcf, under the names of our lines.

    The paper prints one l_inf, a mean in one table and a median in the others: ``l_inf`` says which figures it is.

    Examples
    --------
    >>> str(printed("sev1", ("l_inf",))[("compas", "L2LR")]["sev"])
    '1.26 ± 0.03'
    """
    out: dict[tuple[str, str], dict[str, Printed]] = {}
    with files("fewest.experiments.paper").joinpath("printed.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["table"] == table:
                model, *eps = row["method"].split()
                method = " ".join([model, *(["clusters"] if table != "sev1" else []), *eps])
                figures = {name: _pair(row[name]) for name in row if name not in ("table", "dataset", "method")}
                value = figures.pop("l_inf")
                out[row["dataset"], method] = {**figures, **dict.fromkeys(l_inf, value)}
    return out


def _pair(text: str) -> Printed:
    """``mean sd``, or a mean alone."""
    mean, *sd = map(float, text.split())
    return Printed(mean, sd[0] if sd else math.nan)


# Table "Training Dataset Sizes": observations, features before and after encoding.
_SIZE_ROWS = {
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
    for dataset, sizes in _SIZE_ROWS.items()
}

# Table "SEV- change by moving reference point closer to the decision boundary", FICO: mean SEV, then the share of cases
# with at least 3, 6 and 10 features, in per cent.
_SENSITIVITY_ROWS = {
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
    for method, row in _SENSITIVITY_ROWS.items()
}


def printed_training(table: str) -> Published:
    """Figures of the tables allopt1, alloptc and expo.

    Examples
    --------
    >>> str(printed_training("allopt1")[("fico", "LR")]["sev"])
    '1.10 ± 0.10'
    """
    out: dict[tuple[str, str], dict[str, Printed]] = {}
    with files("fewest.experiments.paper").joinpath("printed_training.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["table"] == table:
                figures = {name: text for name, text in row.items() if name not in ("table", "dataset", "method")}
                out[row["dataset"], row["method"]] = {name: _pair(text) for name, text in figures.items() if text}
    return out
