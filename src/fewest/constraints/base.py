"""Constraints: what may change. Each is a small object; together they compile to masks and set rules.

A *move* takes the values of some features from a start row (the case) to a goal row (the reference). Constraints on
single features say which moves are allowed in a given case; the others say which sets of moves are. A feature that has
the goal's value already does not move: it triggers no rule, breaks none, and does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError
from fewest.options import check_number
from fewest.schema import Schema

SEVERAL = ("Immutable", "Linked", "Forbidden")


class Constraint:
    """Base of all constraints; each sub-class overrides the part it is about."""

    def each(self) -> tuple[Constraint, ...]:
        """The constraints it stands for: itself, unless it was given several features that it treats alike."""
        return (self,)

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
        check_names("Linked", *names)
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

    def __post_init__(self) -> None:
        check_names("Implies", self.cause, self.effect)

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
        check_names("Forbidden", *names)
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
        check_number("AtMost", self.most, "pass a number above 0", above=0)


PASS = 'pass Immutable("age"), Only, Range, OneOf, Linked, Implies, Forbidden or AtMost, alone or in a list'


def check_names(kind: str, *names: Any) -> None:
    """Refuse what is not the name of a feature."""
    for name in names:
        if not isinstance(name, str):
            shown = ", ".join(map(repr, name)) if isinstance(name, list | tuple | set) else '"age", "income"'
            do = f"pass the names themselves: {kind}({shown})" if kind in SEVERAL else f"make one {kind} for each"
            raise UsageError(f"{kind} takes names of features, not {name!r}", do=do)
    if not names:
        raise UsageError(f"{kind} needs at least one feature", do=f'e.g. {kind}("income", "job")')


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
                raise UsageError(f"{constraint!r} is not a constraint", do=PASS)
        self._items = tuple(part for constraint in constraints for part in constraint.each())

    @classmethod
    def read(cls, given: Constraints | Constraint | Iterable[Constraint] | None) -> Constraints:
        """Constraints of what a person passes: one alone, several in a list, or none.

        Examples
        --------
        >>> from fewest.constraints import Immutable
        >>> Constraints.read([Immutable("age"), AtMost(3)])
        Constraints(Immutable(name='age'), AtMost(most=3))
        """
        if isinstance(given, Constraints):
            return given
        if given is None or isinstance(given, Constraint):
            return cls(*(() if given is None else (given,)))
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            raise UsageError(f"{given!r} is not a constraint", do=PASS)
        return cls(*given)

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
