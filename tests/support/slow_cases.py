"""Parameters of which some run with `make test` and the others with `make test-slow`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_slow(values: Iterable[Any], ordinary: Collection[Any]) -> list[Any]:
    """All values as parameters of a test; those that are not named as ordinary have the mark `slow`."""
    return [value if value in ordinary else pytest.param(value, marks=pytest.mark.slow) for value in values]


def few_or_all(few: int, every: int) -> list[Any]:
    """How many random settings a test takes: a few with `make test`, all of them with `make test-slow`."""
    return mostly_slow((few, every), (few,))
