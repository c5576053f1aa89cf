"""Constraints: what may change. Each is a small object; together they compile to masks and set rules.

A *move* takes the values of some features from a start row (the case) to a goal row (the reference). Constraints on
single features say which moves are allowed in a given case; the others say which sets of moves are. A feature that has
the goal's value already does not move: it triggers no rule, breaks none, and does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError
from fewest.schema import Schema


class Constraint:
    """Base of all constraints; each sub-class overrides the part it is about."""

    def features(self) -> tuple[str, ...]:
        """Names of the features it speaks of."""
        return ()

    def permits(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> npt.NDArray[np.bool_] | None:
        """Which rows may move `features()[0]` from start to goal (n,); None where it does not restrict moves."""
        return None


@dataclass(frozen=True)
class Linked(Constraint):
    """These features move together or not at all (e.g. a total and its part).

    In a case where one of them has the reference's value already, the others move together without it. That one does
    not count, and rules about it (`Implies`, `Forbidden`, `Immutable`, ...) do not apply there, just as if it were not
    linked. Links that share a feature are one link: ``Linked("a", "b")`` and ``Linked("b", "c")`` mean
    ``Linked("a", "b", "c")``.

    Examples
    --------
    >>> Linked("education", "education_num").names
    ('education', 'education_num')
    """

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        if len(set(names)) < 2:
            raise UsageError("Linked needs at least two different features", do='e.g. Linked("height", "weight")')
        object.__setattr__(self, "names", names)

    def features(self) -> tuple[str, ...]:
        """Names of the features it speaks of."""
        return self.names


@dataclass(frozen=True)
class Implies(Constraint):
    """A causal edge: if ``cause`` moves, ``effect`` must move as well (unless it has the goal's value already).

    Examples
    --------
    >>> Implies("education", "income").effect
    'income'
    """

    cause: str
    effect: str

    def features(self) -> tuple[str, ...]:
        """Names of the features it speaks of."""
        return (self.cause, self.effect)


@dataclass(frozen=True)
class Forbidden(Constraint):
    """These features may not all move in the same answer.

    Examples
    --------
    >>> Forbidden("income", "job").names
    ('income', 'job')
    """

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        if not names:
            raise UsageError("Forbidden needs at least one feature", do='e.g. Forbidden("income", "job")')
        object.__setattr__(self, "names", names)

    def features(self) -> tuple[str, ...]:
        """Names of the features it speaks of."""
        return self.names


@dataclass(frozen=True)
class AtMost(Constraint):
    """An answer may change at most this many features (or cost at most this, where features have weights).

    Examples
    --------
    >>> AtMost(3).most
    3
    """

    most: float

    def __post_init__(self) -> None:
        if not self.most > 0:
            raise UsageError(f"AtMost({self.most}) allows nothing", do="pass a number above 0")


class Constraints:
    """A collection of constraints.

    Examples
    --------
    >>> from fewest.constraints import Immutable, Only
    >>> len(Constraints(Immutable("age"), Only("income", "up")))
    2
    """

    def __init__(self, *constraints: Constraint) -> None:
        for constraint in constraints:
            if not isinstance(constraint, Constraint):
                raise UsageError(f"{constraint!r} is not a constraint", do="pass Immutable, Only, Range, Linked, ...")
        self._items = constraints

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"Constraints({', '.join(map(repr, self._items))})"

    def of(self, kind: type[Any]) -> Iterable[Any]:
        """The constraints of one kind."""
        return (item for item in self._items if isinstance(item, kind))

    def check(self, schema: Schema) -> None:
        """Refuse names the schema does not know."""
        for item in self._items:
            for name in item.features():
                schema.index(name)

    @property
    def most(self) -> float:
        """The tightest `AtMost`; inf without one."""
        return min((item.most for item in self.of(AtMost)), default=float("inf"))

    def permitted(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> npt.NDArray[np.bool_]:
        """Which features each row may move (n, p), by the constraints on single features."""
        out = np.ones((len(start), len(schema)), dtype=bool)
        for item in self._items:
            mask = item.permits(schema, start, goal)
            if mask is not None:
                out[:, schema.index(item.features()[0])] &= mask
        return out
