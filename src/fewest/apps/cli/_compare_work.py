"""``fewest compare``: two runs case by case, and a gate for what a training may change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd

from fewest.apps.cli._files import check_place, read_table, save
from fewest.apps.cli._text import clean
from fewest.errors import DataError, DriftError, UsageError
from fewest.reporting.views import as_csv
from fewest.results.drawing import percent
from fewest.runs import Run, compare
from fewest.runs.comparison import called

if TYPE_CHECKING:
    from fewest.apps.cli._main import CompareRequest


def _labels(request: CompareRequest) -> pd.Series[Any] | None:
    """What became of the cases, where a table says so."""
    if request.labels is None:
        return None
    table = read_table(request.labels)
    if request.target not in table.columns:
        named = "which column?" if request.target is None else f'{request.labels.name} has no column "{request.target}"'
        raise UsageError(f"--labels: {named}", do="pass --target COL")
    return table[request.target]


def run(request: CompareRequest) -> int:
    """Compare; what changed is written before the gate closes."""
    if request.out is not None:
        check_place(request.out, (".csv",), "the cases that changed are a table")
    first, second = Run.open(request.first), Run.open(request.second)
    both = compare(first, second, labels=_labels(request))
    names = [folder for folder, _ in called(first, second)]
    if request.out is not None:
        save(request.out, as_csv(both.cases).decode())
    if request.as_json:
        figures = {name: dict(zip(names, values, strict=True)) for name, *values in both.figures}
        counted = {
            "matched": both.matched, "by": both.by, "only": both.only, "refused": both.refused,
            "accepted": both.accepted, "explained": both.explained, "other_reasons": both.other_reasons,
            "reason_drift": both.reason_drift, "figures": figures, "features": both.features.to_dict("index"),
        }  # fmt: skip
        print(json.dumps({"first": names[0], "second": names[1], **counted}, indent=1, ensure_ascii=False))
    else:
        print(clean(f"First run: {names[0]}. Second run: {names[1]}.\n{both!r}"))
    if request.fail_over is None:
        return 0
    if not both.explained:
        raise DataError("no case is explained in both runs: nothing is known of reasons", do="compare other runs")
    if both.reason_drift > request.fail_over:
        raise DriftError(
            f"{both.other_reasons:,} of {both.explained:,} cases explained in both have other reasons: "
            f"{percent(both.reason_drift)}, more than {percent(request.fail_over)}",
            do="look at them with --out FILE.csv, or with `fewest explore RUN --with RUN`; or allow more",
        )
    return 0
