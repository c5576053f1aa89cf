"""The way of one row, as docs/architecture.md draws it."""

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "one_row.py"


def entered(packages: list[str]) -> list[str]:
    """The packages in the order in which they are entered, without those that verify in between."""
    way: list[str] = []
    for package in packages:
        if package != "decision" and way[-1:] != [package]:
            way.append(package)
    return way


def test_a_row_enters_no_package_again_after_it_left_it_but_to_verify() -> None:
    steps = runpy.run_path(str(SCRIPT))["main"]()
    assert entered([step.package for step in steps]) == ["runs", "explainer", "engine", "results", "runs", "reporting"]
    assert {"decision", "references", "constraints"} <= set(next(s for s in steps if s.package == "engine").asked)


def test_a_package_that_is_entered_again_shows() -> None:
    assert entered(["runs", "engine", "decision", "engine", "results", "engine"]) == [
        "runs",
        "engine",
        "results",
        "engine",
    ]
