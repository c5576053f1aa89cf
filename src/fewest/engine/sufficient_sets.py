"""What alone suffices: a smallest set of a case's own values that forces its outcome, whatever the other features are.

A set suffices where no change of the others, within their domains, changes the outcome. So it meets every set of
features that can change it: the smallest sets that meet all of those found so far are tried until one suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from fewest.constraints import Constraints, Immutable, Range
from fewest.references import Anyone
from fewest.references.domains import MOST_VALUES
from fewest.results.explanation import Explanation, Status
from fewest.tables.arrays import Bools, Floats
from fewest.tables.closeness import ordered_numbers
from fewest.tables.schema import Schema
from fewest.tables.values import Cells
from fewest.tables.wording import listed, printable, show_measured, show_name

Kind = Literal["smallest", "irreducible", "sufficient", "accepted"]
# Cases and more constraints -> the answer for each over all values that are left
Ask = Callable[..., Sequence[Explanation]]
Change = Callable[[Bools], "Bools | Literal['unknown'] | None"]
ROUNDS = 200  # sets that are tried for one case
BRANCHES = 20_000  # branches that are tried for the next set


@dataclass(frozen=True)
class Sufficient:
    """A set of a case's own values that forces the outcome.

    Attributes
    ----------
    label : object
        Index label of the case.
    kind : str
        ``smallest``: proved that no set with fewer features suffices; ``irreducible``: proved that none of its features
        can be left out; ``sufficient``: neither, the search was stopped; ``accepted``: the model did not decide against
        the case.
    values : tuple of (feature, value in words)
        In column order. That they suffice is proved for all kinds.
    needed : tuple of str
        Features that are in every sufficient set: changing one of them alone can change the outcome.
    positive : str
        Name of the outcome that is forced.
    ranges : tuple of (feature, low, high)
        Numbers that were widened: every value between these two forces the outcome as well, together with all other
        values and ranges; proved.
    never : tuple of str or None
        Features that are in no sufficient set from which nothing can be left out; None where not all were looked at.

    Examples
    --------
    >>> print(Sufficient("A", "smallest", (("debt", "90"),), ("debt",), "refused"))
    debt 90 alone leads to refused, whatever the other features are; no set with fewer features does.
    """

    label: Any
    kind: Kind
    values: tuple[tuple[str, str], ...]
    needed: tuple[str, ...]
    positive: str
    ranges: tuple[tuple[str, float, float], ...] = ()
    never: tuple[str, ...] | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(name for name, _ in self.values)

    def __str__(self) -> str:
        outcome = printable(self.positive)
        if self.kind == "accepted":
            return f"The model did not predict {outcome} here: there is nothing to force."
        if not self.values:
            return f"Every case leads to {outcome}, whatever its features are."
        parts = listed([f"{show_name(name)} {value}" for name, value in self.values])
        text = f"{parts} alone lead{'s' if len(self.values) == 1 else ''} to {outcome}, whatever the other features are"
        if self.kind == "smallest":
            return f"{text}; no set with fewer features does."
        if self.kind == "irreducible":
            return f"{text}; none of them can be left out."
        return f"{text}; a smaller set may do, the search was stopped."


def sufficient_sets(
    references: Anyone, cases: pd.DataFrame, ask: Ask, constraints: Constraints, widen: bool, every: bool
) -> list[Sufficient]:
    """A set for each case; numbers that constraints are about are not widened: not all their values are asked for."""
    schema = references.schema
    named = {getattr(item, "name", None) for item in constraints}
    bound = set(schema.names) if None in named else named
    out = []
    for k, answer in enumerate(ask(cases)):
        case = cases.iloc[[k]]
        one, change = _of_case(schema, case, ask, answer)
        if widen and one.kind != "accepted":
            one = _widened(references, case, ask, one, bound)
        if every and one.kind != "accepted":
            one = replace(one, never=_in_none(schema.names, change))
        out.append(one)
    return out


def _of_case(schema: Schema, case: pd.DataFrame, ask: Ask, first: Explanation) -> tuple[Sufficient, Change]:
    cells, features = Cells.of(case), schema.features

    def made(kind: Kind, held: Bools, needed: Bools) -> tuple[Sufficient, Change]:
        values = tuple(
            (features[j].name, show_measured(cells.value(0, features[j]), features[j].unit))
            for j in np.flatnonzero(held).tolist()
        )
        names = tuple(features[j].name for j in np.flatnonzero(needed).tolist())
        return Sufficient(case.index[0], kind, values, names, first.positive), change

    def change(held: Bools) -> Bools | Literal["unknown"] | None:
        """A set of other features that changes the outcome; None where it is proved that there is none."""
        answer = first if not held.any() else ask(case, Immutable(*np.array(schema.names)[held]))[0]
        if answer.changes:
            return np.isin(schema.names, [one.feature for one in answer.changes])
        return None if _is_forced(answer) else "unknown"

    p = len(features)
    none, everything = np.zeros(p, dtype=bool), np.ones(p, dtype=bool)
    if first.status == Status.ALREADY_NEGATIVE:
        return made("accepted", none, none)
    needed = np.array([isinstance(change(everything & (np.arange(p) != j)), np.ndarray) for j in range(p)])
    known = [np.arange(p) == j for j in np.flatnonzero(needed).tolist()]
    size = 0
    for _ in range(ROUNDS):
        while (held := _meeting(known, none, size)) is None:
            size += 1
        found = change(held)
        if found is None:
            return made("smallest", held, needed)
        if isinstance(found, str):
            break
        known.append(found)
    held, sure = everything.copy(), True
    for j in range(p):
        less = held & (np.arange(p) != j)
        found = change(less)
        held = less if found is None else held
        sure &= not isinstance(found, str)
    return made("irreducible" if sure else "sufficient", held, needed)


def _meeting(known: list[Bools], held: Bools, size: int) -> Bools | None:
    """A set of up to ``size`` more features that meets all known ones, together with those held."""
    missed = next((one for one in known if not (one & held).any()), None)
    if missed is None:
        return held
    if size == 0:
        return None
    for j in np.flatnonzero(missed).tolist():
        found = _meeting(known, held | (np.arange(len(held)) == j), size - 1)
        if found is not None:
            return found
    return None


def _is_forced(answer: Explanation) -> bool:
    """Whether it is proved that nothing that is left changes the outcome."""
    return answer.status == Status.UNREACHABLE and bool(np.isinf(answer.proof.lower_bound))


def _widened(references: Anyone, case: pd.DataFrame, ask: Ask, one: Sufficient, bound: Set[Any]) -> Sufficient:
    """The same with intervals in place of numbers, one feature after the other, as far as the outcome stays forced."""
    schema, ranges = references.schema, dict[str, Range]()

    def forced(wider: Range) -> bool:
        free = {**ranges, wider.name: wider}
        held = [name for name in one.features if name not in free]
        return _is_forced(ask(case, *([Immutable(*held)] if held else []), *free.values())[0])

    for name in one.features:
        feature, number = schema.features[schema.index(name)], references.domains[schema.index(name)].number
        if name in bound or not feature.is_numeric or not 0 < len(number) < MOST_VALUES:
            continue
        own = float(ordered_numbers(feature, case)[0])
        if not number[0] <= own <= number[-1]:  # the values from there to the domain are not in it
            continue
        below, above = number[number < own][::-1], number[number > own]
        low = _furthest(below, own, lambda end, own=own: forced(Range(name, end, own)))  # type: ignore[misc]  # noqa: B023
        high = _furthest(above, own, lambda end, low=low: forced(Range(name, low, end)))  # type: ignore[misc]  # noqa: B023
        if low < high:
            ranges[name] = Range(name, low, high)
    values = tuple(
        (name, _between(schema, ranges[name]) if name in ranges else value) for name, value in one.values
    )  # fmt: skip
    return replace(one, values=values, ranges=tuple((name, item.low, item.high) for name, item in ranges.items()))


def _furthest(ends: Floats, own: float, holds: Callable[[float], bool]) -> float:
    """The last of these ends, from the nearest on, with which it still holds; the case's own value where none does."""
    first, last = 0, len(ends)
    while first < last:
        middle = (first + last + 1) // 2
        first, last = (middle, last) if holds(float(ends[middle - 1])) else (first, middle - 1)
    return float(ends[first - 1]) if first else own


def _between(schema: Schema, item: Range) -> str:
    feature = schema.features[schema.index(item.name)]
    low, high = (int(end) if feature.kind == "integer" else end for end in (item.low, item.high))
    return f"{show_measured(low, '')} to {show_measured(high, feature.unit)}"


def _in_none(names: tuple[str, ...], change: Change) -> tuple[str, ...] | None:
    """Features that are in no irreducible sufficient set, all of which are looked at; None where that was stopped.

    Every set that meets all changes known so far and holds no known sufficient one is tried, until there is none.
    """
    p = len(names)
    changes: list[Bools] = []
    enough: list[Bools] = []
    for _ in range(ROUNDS):
        held = _next(changes, enough, np.zeros(p, dtype=bool), np.zeros(p, dtype=bool), [BRANCHES])
        if isinstance(held, str):
            return None
        if held is None:
            some = np.any(enough, axis=0)
            return tuple(name for name, inside in zip(names, some, strict=True) if not inside)
        found = change(held)
        if isinstance(found, str):
            return None
        if found is not None:
            changes.append(found)
            continue
        for j in np.flatnonzero(held).tolist():
            less = held & (np.arange(p) != j)
            found = change(less)
            if isinstance(found, str):
                return None
            held = less if found is None else held
        enough.append(held)
    return None


def _next(
    changes: list[Bools], enough: list[Bools], held: Bools, left_out: Bools, tries: list[int]
) -> Bools | Literal["stopped"] | None:
    """A set that meets all changes and holds none of the sufficient ones; None where there is no such set."""
    tries[0] -= 1
    if tries[0] < 0:
        return "stopped"
    if any(not (one & ~held).any() for one in enough):
        return None
    missed = next((one for one in changes if not (one & held).any()), None)
    if missed is None:
        return held
    left_out = left_out.copy()
    for j in np.flatnonzero(missed & ~left_out).tolist():
        found = _next(changes, enough, held | (np.arange(len(held)) == j), left_out, tries)
        if found is not None:
            return found
        left_out[j] = True
    return None
