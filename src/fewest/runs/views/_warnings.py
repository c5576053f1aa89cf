"""Warnings about a run, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fewest.results.drawing import Bar

OFTEN = 0.5


def often(bars: Sequence[Bar], explained: int) -> list[str]:
    """A warning for each feature that is in more than half of the explanations.

    Examples
    --------
    >>> often([Bar("age", 95, 0.95), Bar("job", 50, 0.5)], 100)
    ['"age" is in 95 % of the explanations: they may say little about the single case.']
    """
    return [
        f'"{bar.name}" is in {bar.percent} of the explanations: they may say little about the single case.'
        for bar in bars
        if explained and bar.share > OFTEN
    ]


def protected_used(counts: Mapping[str, int]) -> list[str]:
    """A warning for each protected feature that is used.

    Examples
    --------
    >>> protected_used({"age": 1})
    ['1 explanation uses the protected feature "age".']
    """
    return [
        f'{count:,} explanation{"s use" if count != 1 else " uses"} the protected feature "{name}".'
        for name, count in counts.items()
        if count
    ]


def unsigned(names: Sequence[str]) -> list[str]:
    """A warning where nobody answers for references.

    Examples
    --------
    >>> unsigned(["mean"])
    ['Nobody has signed off the reference "mean".']
    """
    if not names:
        return []
    shown = ", ".join(f'"{name}"' for name in names[:5]) + (" and others" if len(names) > 5 else "")
    return [f"Nobody has signed off the reference{'s' if len(names) > 1 else ''} {shown}."]


def stopped(count: int) -> list[str]:
    """A warning where cases were not finished.

    Examples
    --------
    >>> stopped(1), stopped(0)
    (['1 case was stopped by the budget before an end.'], [])
    """
    return [f"{count:,} case{'s were' if count != 1 else ' was'} stopped by the budget before an end."] if count else []
