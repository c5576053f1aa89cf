"""Every name that the reference page lists is there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text("utf-8")
NAMES = [
    name if name.startswith("fewest.") else f"fewest.{name}"
    for name in re.findall(r"^\.\. auto(?:class|function|method)::\s*(\S+)", PAGE, re.MULTILINE)
]


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
