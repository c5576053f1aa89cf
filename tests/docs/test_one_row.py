"""The way of one row, as docs/architecture.md draws it."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def one_row() -> ModuleType:
    spec = importlib.util.spec_from_file_location("one_row", ROOT / "benchmarks" / "one_row.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entered(packages: list[str]) -> list[str]:
    """The packages in the order in which they are entered, without those that verify in between."""
    way: list[str] = []
    for package in packages:
        if package != "decision" and way[-1:] != [package]:
            way.append(package)
    return way


def test_a_row_enters_no_package_again_after_it_left_it_but_to_verify(one_row: ModuleType) -> None:
    steps = one_row.main()
    assert entered([step.package for step in steps]) == ["runs", "explainer", "engine", "results", "runs", "reporting"]
    assert {"decision", "references", "constraints"} <= set(next(s for s in steps if s.package == "engine").asked)


def test_a_package_that_is_entered_again_shows() -> None:
    assert entered(["runs", "engine", "decision", "engine", "results", "engine"]) == [
        "runs",
        "engine",
        "results",
        "engine",
    ]
