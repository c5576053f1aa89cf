"""Parameters of which some run with `make test` and the others with `make test-slow`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import Any

import pytest


def mostly_slow(values: Iterable[Any], ordinary: Collection[Any]) -> list[Any]:
    """All values as parameters of a test; those that are not named as ordinary have the mark `slow`."""
    return [value if value in ordinary else pytest.param(value, marks=pytest.mark.slow) for value in values]


def pairs(some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """All pairs as parameters of a test; each value is in one that has no mark `slow`, and few are."""
    longest = max(len(some), len(others))
    ordinary = {(k % len(some), k % len(others)) for k in range(longest)}
    return [
        pytest.param(one, other, marks=() if (i, j) in ordinary else pytest.mark.slow)
        for (i, one), (j, other) in product(enumerate(some), enumerate(others))
    ]


def few_or_all(few: int, every: int) -> list[Any]:
    """How many random settings a test takes: a few with `make test`, all of them with `make test-slow`."""
    return mostly_slow((few, every), (few,))
