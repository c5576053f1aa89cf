"""Every name that the reference page lists is there, and every public name is listed."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text("utf-8")
BLOCKS = re.findall(r"^\.\. autosummary::\n(?:   :.*\n)*\n((?:   \S+\n)+)", PAGE, re.MULTILINE)
NAMES = [f"fewest.{name}" for block in BLOCKS for name in block.split()]
PACKAGES = (
    "", ".references", ".credibility", ".datasets", ".reporting", ".reporting.plots", ".runs", ".persistence",
    ".models.trees", ".models.rashomon", ".models.training", ".experiments.paper", ".experiments.peers",
    ".apps.serving",
)  # fmt: skip
WITHOUT_LISTS = (".checks", ".errors", ".results.metrics")
HELPERS = {"check_word", "check_count", "check_number"}  # checks of options, for the package itself


def found(name: str) -> Any:
    """What a dotted name stands for, the longest part that is a module imported first."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            thing = getattr(thing, part)
        return thing
    raise LookupError(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_listed_name_is_there_and_described(name: str) -> None:
    assert found(name).__doc__


def test_a_name_that_went_is_noticed() -> None:
    with pytest.raises(AttributeError):
        found("fewest.datasets.Listed")


def public(package: str) -> set[str]:
    """Names of classes and functions that a package shows."""
    module = import_module(f"fewest{package}")
    if package in WITHOUT_LISTS:
        own = {name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__}
        return {name for name in own if not name.startswith("_") and name[0].isalpha()} - HELPERS
    return {name for name in module.__all__ if callable(getattr(module, name)) and name != "main"}


@pytest.mark.parametrize("package", [*PACKAGES, *WITHOUT_LISTS])
def test_every_public_name_is_listed(package: str) -> None:
    listed = [found(name) for name in NAMES]
    missing = [
        name for name in public(package) if not any(found(f"fewest{package}.{name}") is thing for thing in listed)
    ]
    assert missing == []


def test_the_lists_are_found() -> None:
    """Negative control of the test above: an empty list would prove nothing."""
    assert len(NAMES) > 150
    assert {"FewestError", "DataError"} <= public(".errors")
    assert "References" in public(".references")


def test_the_pages_that_are_written_from_the_code_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make docs` needs them; it takes minutes until it asks for them."""
    typer = pytest.importorskip("typer")
    pytest.importorskip("fastapi")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs" / "_ext"))
    made = import_module("made_pages")
    assert "/v1/models/credit:explain" in made.openapi()["paths"]
    shown = "\n".join(made.commands(typer.main.get_command(import_module("fewest.apps.cli._main").app)))
    assert all(
        f"### `fewest {name}`" in shown for name in ("explain", "letters", "compare", "build", "references sign")
    )
