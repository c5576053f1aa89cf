"""What alone suffices: a smallest set of a case's own values that forces its outcome, whatever the other features are.

A set suffices where no change of the others, within their domains, changes the outcome. So it meets every set of
features that can change it: the smallest sets that meet all of those found so far are tried until one suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from fewest.results.explanation import Explanation, Status
from fewest.tables.arrays import Bools
from fewest.tables.schema import Schema
from fewest.tables.values import Cells
from fewest.tables.wording import listed, printable, show_measured, show_name

Kind = Literal["smallest", "irreducible", "sufficient", "accepted"]
# Cases and the features that are held -> the answer for each over all values of the others
Ask = Callable[[pd.DataFrame, tuple[str, ...]], Sequence[Explanation]]
ROUNDS = 200  # sets that are tried for one case


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


def sufficient_sets(schema: Schema, cases: pd.DataFrame, ask: Ask) -> list[Sufficient]:
    """A set for each case."""
    first = ask(cases, ())
    return [_of_case(schema, cases.iloc[[k]], ask, answer) for k, answer in enumerate(first)]


def _of_case(schema: Schema, case: pd.DataFrame, ask: Ask, first: Explanation) -> Sufficient:
    cells, features = Cells.of(case), schema.features

    def made(kind: Kind, held: Bools, needed: Bools) -> Sufficient:
        values = tuple(
            (features[j].name, show_measured(cells.value(0, features[j]), features[j].unit))
            for j in np.flatnonzero(held).tolist()
        )
        names = tuple(features[j].name for j in np.flatnonzero(needed).tolist())
        return Sufficient(case.index[0], kind, values, names, first.positive)

    p = len(features)
    none, everything = np.zeros(p, dtype=bool), np.ones(p, dtype=bool)
    if first.status == Status.ALREADY_NEGATIVE:
        return made("accepted", none, none)

    def change(held: Bools) -> Bools | Literal["unknown"] | None:
        """A set of other features that changes the outcome; None where it is proved that there is none."""
        answer = first if not held.any() else ask(case, tuple(np.array(schema.names)[held]))[0]
        if answer.changes:
            return np.isin(schema.names, [one.feature for one in answer.changes])
        proved = answer.status == Status.UNREACHABLE and np.isinf(answer.proof.lower_bound)
        return None if proved else "unknown"

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
