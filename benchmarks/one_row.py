"""The way of one row: every package it goes through, from a CSV file to the report, as the calls show it.

    python benchmarks/one_row.py

A package is entered by a call from outside it, and left when that call returns. `errors` and `tables` are the words
all others use and are left out. Numba's kernels do not show: they are called by `fewest.engine.search`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import fewest as fw

VOCABULARY = ("errors", "tables")


class Trace:
    """Modules in the order of their first call, and how often each package was entered."""

    def __init__(self) -> None:
        self.stack: list[str | None] = []
        self.modules: dict[str, None] = {}
        self.entered: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            name = frame.f_globals.get("__name__", "")
            package = name.split(".")[1] if name.startswith("fewest.") and frame.f_code.co_name != "<module>" else None
            if package in VOCABULARY:
                package = None
            if package is not None:
                self.modules.setdefault(name)
                if package not in self.stack:
                    self.entered.append(package)
            self.stack.append(package)
        elif event == "return" and self.stack:
            self.stack.pop()


def trace(folder: Path) -> Trace:
    """Explain a table of one row and write its report, watched."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    data = fw.datasets.load("german")
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000))
    decision = fw.Decision(model.fit(data.X, data.labels), positive="bad")
    explainer = fw.Explainer(decision, fw.references.single(decision, data.X, data.labels), n_jobs=1)
    refused = data.X[decision.verdicts(data.X).positive].iloc[[0]]
    refused.to_csv(folder / "case.csv", index=False)
    watched = Trace()
    sys.setprofile(watched)
    try:
        run = fw.runs.explain_files(explainer, folder / "case.csv", folder / "run", n_jobs=1)
        page = fw.reporting.html(run)
    finally:
        sys.setprofile(None)
    assert "<html" in str(page)
    return watched


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        found = trace(Path(place))
    for name in found.modules:
        print(name)
    print("packages in order:", " > ".join(found.entered))
