"""The way of one row: the modules it goes through, from a CSV file to the report, in the order of their first call.

    python benchmarks/one_row.py

`errors` and `tables` are left out: all others use them. Compiled kernels do not show: `engine.search` calls them.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import fewest as fw

USED_BY_ALL = ("errors", "tables")


def explain_and_report(explainer: fw.Explainer, folder: Path) -> str:
    run = fw.runs.explain_files(explainer, folder / "case.csv", folder / "run", n_jobs=1)
    return str(fw.reporting.html(run))


def modules_called(explainer: fw.Explainer, folder: Path) -> list[str]:
    """Modules of fewest in the order of their first call."""
    found: dict[str, None] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("fewest.") and name.split(".")[1] not in USED_BY_ALL:
            found.setdefault(name)

    sys.setprofile(watch)
    try:
        page = explain_and_report(explainer, folder)
    finally:
        sys.setprofile(None)
    assert "<html" in page
    return list(found)


def credit_explainer() -> tuple[fw.Explainer, Any]:
    """A linear credit model and one case that it refuses."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    data = fw.datasets.load("german")
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000))
    decision = fw.Decision(model.fit(data.X, data.labels), positive="bad")
    explainer = fw.Explainer(decision, fw.references.single(decision, data.X, data.labels), n_jobs=1)
    return explainer, data.X[decision.verdicts(data.X).positive].iloc[[0]]


if __name__ == "__main__":
    explainer, refused = credit_explainer()
    with tempfile.TemporaryDirectory() as before, tempfile.TemporaryDirectory() as place:
        for folder in (before, place):
            refused.to_csv(Path(folder) / "case.csv", index=False)
        explain_and_report(explainer, Path(before))  # so that nothing is imported any more
        modules = modules_called(explainer, Path(place))
    for package, names in groupby(modules, lambda name: name.split(".")[1]):
        print(f"{package:12s}", " ".join(name.removeprefix(f"fewest.{package}.") for name in names))
