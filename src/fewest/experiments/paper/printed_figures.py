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


def _published(file: str, table: str = "", line: str = "{}") -> Published:
    return {(dataset, line.format(method)): found for dataset, method, found in _typed_in(file, table)}


def printed_training(table: str) -> Published:
    """Figures of the tables allopt1, alloptc and expo."""
    return _published("printed_training.csv", table)


# FICO's GOSDT has 1.80 here and 1.08 in the paper's figure. MIMIC-III is not public: its lines are for completeness.
TREES = _published("printed_other.csv", "trees")
# Observations, features before and after encoding.
SIZES = _published("printed_other.csv", "sizes")
# FICO: mean SEV, then the share of cases with at least 3, 6 and 10 features, in per cent.
SENSITIVITY = _published("printed_other.csv", "sensitivity")
COUNTERFACTUALS = _published("printed_cf.csv", line="L2LR {}")  # all of a logistic regression
