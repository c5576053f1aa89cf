"""The way of one row, from where it is read of a CSV file to the report: packages that hand it on, and modules.

    python benchmarks/one_row.py

Modules stand where they are called first. What the engine, the writing of the folder and the report ask stands behind
them: the model, the references, the columns of the answers. `errors` and `tables` are left out: all others use them.
Compiled kernels do not show: `engine.search` calls them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import fewest as fw

USED_BY_ALL = ("errors", "tables")
ASKING = ("engine", "runs.parts", "runs.folder", "reporting")
READ_AT = ("fewest.runs.part_worker", "do")


class Step:
    """A package that the row is handed to: its modules in the order of their first calls, and the packages it asks."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.modules: dict[str, None] = {}
        self.asked: dict[str, None] = {}


def modules_running(frame: FrameType | None) -> Iterator[str]:
    """The module of each running function, the innermost first."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "").removeprefix("fewest.")
        if frame.f_globals.get("__name__", "").startswith("fewest.") and package_of(name) not in USED_BY_ALL:
            yield name
        frame = frame.f_back


def package_of(module: str) -> str:
    return module.split(".")[0]


def way_of(explainer: fw.Explainer, folder: Path) -> list[Step]:
    """The steps of the row in this folder."""
    steps: list[Step] = []
    seen: set[tuple[str, str]] = set()
    is_read = False

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal is_read
        is_read = is_read or (frame.f_globals.get("__name__"), frame.f_code.co_name) == READ_AT
        if is_read and event == "call" and (running := list(modules_running(frame))):
            note(running)

    def note(running: list[str]) -> None:
        module, asking = running[0], [name for name in running if name.startswith(ASKING)]
        package = package_of(asking[-1] if asking else module)
        if (package, module) in seen:
            return
        seen.add((package, module))
        if not steps or steps[-1].package != package:
            steps.append(Step(package))
        if package_of(module) == package:
            steps[-1].modules.setdefault(module.removeprefix(f"{package}."))
        else:
            steps[-1].asked.setdefault(package_of(module))

    sys.setprofile(watch)
    try:
        page = explain_and_report(explainer, folder)
    finally:
        sys.setprofile(None)
    assert "<html" in page
    return steps


def explain_and_report(explainer: fw.Explainer, folder: Path) -> str:
    run = fw.runs.explain_files(explainer, folder / "case.csv", folder / "run", n_jobs=1)
    return str(fw.reporting.html(run))


def credit_explainer() -> tuple[fw.Explainer, Any]:
    """A linear credit model and one case that it refuses."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    data = fw.datasets.load("german")
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000))
    decision = fw.Decision(model.fit(data.X, data.labels), positive="bad")
    explainer = fw.Explainer(decision, fw.references.single(decision, data.X, data.labels), n_jobs=1)
    return explainer, data.X[decision.refuses(data.X)].iloc[[0]]


def main() -> list[Step]:
    explainer, refused = credit_explainer()
    with tempfile.TemporaryDirectory() as before, tempfile.TemporaryDirectory() as place:
        for folder in (before, place):
            refused.to_csv(Path(folder) / "case.csv", index=False)
        explain_and_report(explainer, Path(before))  # so that nothing is imported any more
        return way_of(explainer, Path(place))


if __name__ == "__main__":
    for step in main():
        asked = f"   asks {' '.join(step.asked)}" if step.asked else ""
        print(f"{step.package:12s}", " ".join(step.modules) + asked)
