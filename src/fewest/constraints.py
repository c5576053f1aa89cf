"""Constraints: what may change. Each is a small object; together they compile to masks and set rules.

A *move* takes the values of some features from a start row (the case) to a goal row (the reference). Constraints on
single features say which moves are allowed in a given case; the others say which sets of moves are. A feature that has
the goal's value already does not move: it triggers no rule, breaks none, and does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from fewest.errors import UsageError, check_number, check_word
from fewest.tables.arrays import Bools, Floats
from fewest.tables.cards import Rows, ShownAsCard
from fewest.tables.closeness import as_numbers, ordered_numbers
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema

SEVERAL = ("Immutable", "Linked", "Forbidden")


class Constraint:
    """Base of all constraints; each sub-class overrides the part it is about."""

    def each(self) -> tuple[Constraint, ...]:
        """The constraints it stands for: itself, unless it was given several features that it treats alike."""
        return (self,)

    def features(self) -> tuple[str, ...]:
        """Names of the features it speaks of: those that its fields hold."""
        held = [getattr(self, field, ()) for field in ("name", "names", "cause", "effect")]
        return tuple(name for part in held for name in ((part,) if isinstance(part, str) else part))

    def permits(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> Bools | None:
        """Which rows may move `features()[0]` from start to goal (n,); None where it does not restrict moves."""
        return None


@dataclass(frozen=True)
class Immutable(Constraint):
    """The feature never changes; several names are several such constraints.

    Examples
    --------
    >>> Immutable("age").name
    'age'
    >>> from fewest.constraints import Constraints
    >>> Constraints(Immutable("age", "sex"))
    Constraints(Immutable(name='age'), Immutable(name='sex'))
    """

    name: str

    def __init__(self, name: str | None = None, *more: str) -> None:
        names = () if name is None else (name, *more)
        check_names("Immutable", *names)
        # One name is what everything else sees: `Constraints` keeps several one by one.
        object.__setattr__(self, "name", names[0] if len(names) == 1 else names)

    def each(self) -> tuple[Constraint, ...]:
        """One constraint for each name."""
        return (self,) if isinstance(self.name, str) else tuple(Immutable(name) for name in self.name)

    def permits(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> Bools:
        """No row may move it."""
        return np.zeros(len(start), dtype=bool)


@dataclass(frozen=True)
class Only(Constraint):
    """The feature changes in one direction only: numbers, dates and ordered categories.

    Examples
    --------
    >>> Only("income", "up").direction
    'up'
    """

    name: str
    direction: Literal["up", "down"]

    def __post_init__(self) -> None:
        check_names("Only", self.name)
        check_word("direction", self.direction, ("up", "down"))

    def permits(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> Bools:
        """Rows whose goal lies in the direction; a missing value on either side has no direction and stays."""
        feature = schema.features[schema.index(self.name)]
        a, b = (_ranks(frame, feature) for frame in (start, goal))
        return np.asarray(b >= a if self.direction == "up" else b <= a)


@dataclass(frozen=True)
class Range(Constraint):
    """The feature may only move to a value inside [low, high].

    Examples
    --------
    >>> Range("age", 18, 75).high
    75
    """

    name: str
    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        check_names("Range", self.name)
        if not self.low <= self.high:
            raise UsageError(f"the range {self.low}..{self.high} is empty", do="pass low <= high")

    def permits(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> Bools:
        """Rows whose goal lies in the range."""
        feature = schema.features[schema.index(self.name)]
        if not feature.is_numeric:
            raise UsageError(f'"{self.name}" is not a number', do="use OneOf for categories")
        values = as_numbers(goal[feature.columns[0]], feature)
        return np.asarray((values >= self.low) & (values <= self.high))


@dataclass(frozen=True)
class OneOf(Constraint):
    """The feature may only move to one of these levels.

    Examples
    --------
    >>> OneOf("housing", ["own", "rent"]).levels
    ('own', 'rent')
    """

    name: str
    levels: Sequence[Any]

    def __post_init__(self) -> None:
        check_names("OneOf", self.name)
        if isinstance(self.levels, str):
            raise UsageError(f"OneOf needs a list of levels, not {self.levels!r}", do=f'pass ["{self.levels}"]')
        object.__setattr__(self, "levels", tuple(self.levels))

    def permits(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> Bools:
        """Rows whose goal level is among them."""
        feature = schema.features[schema.index(self.name)]
        if feature.kind == "indicators":
            inside = [goal[column].to_numpy(dtype=float) == 1 for column in feature.columns if column in self.levels]
            return np.asarray(np.any(inside, axis=0)) if inside else np.zeros(len(goal), dtype=bool)
        return np.asarray(goal[feature.columns[0]].isin(list(self.levels)))


def _ranks(frame: pd.DataFrame, feature: Feature) -> Floats:
    """Values as numbers that can be compared."""
    if (
        feature.is_numeric
        or feature.kind in ("datetime", "boolean")
        or (feature.kind == "category" and feature.ordered)
    ):
        return ordered_numbers(feature, frame)
    raise UsageError(
        f'"{feature.name}" has no order, so it cannot go only up or down',
        do="use Immutable or OneOf, or make it an ordered category",
    )


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


KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (AtMost, Forbidden, Immutable, Implies, Linked, OneOf, Only, Range)
}


class Constraints(ShownAsCard):
    """A collection of constraints.

    Examples
    --------
    >>> from fewest.constraints import Immutable, Only
    >>> len(Constraints(Immutable("age"), Only("income", "up"))), len(Constraints([Immutable("age")]))
    (2, 1)
    """

    def __init__(self, *constraints: Constraint | list[Constraint]) -> None:
        every = [part for given in constraints for part in (given if isinstance(given, list) else [given])]
        for constraint in every:
            if not isinstance(constraint, Constraint):
                raise UsageError(f"{constraint!r} is not a constraint", do=PASS)
        self._items = tuple(part for constraint in every for part in constraint.each())

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

    def _card_rows(self) -> tuple[Sequence[str], Rows]:
        kinds = [(type(item).__name__, repr(item).partition("(")[2].removesuffix(")")) for item in self._items]
        return ("constraint", "of"), kinds

    def to_plain(self) -> list[dict[str, Any]]:
        """As plain values, for files; an open end of a range is null.

        Examples
        --------
        >>> Constraints(Immutable("age"), Range("income", low=0)).to_plain()
        [{'kind': 'Immutable', 'name': 'age'}, {'kind': 'Range', 'name': 'income', 'low': 0, 'high': None}]
        """
        odd = [item for item in self._items if not is_dataclass(item)]
        if odd:
            raise UsageError(f"the constraint {odd[0]!r} cannot be written down", do="use the constraints of fewest")
        parts = [(type(item).__name__, fields(item)) for item in self._items]  # type: ignore[arg-type]
        return [
            {"kind": kind, **{part.name: plain(getattr(item, part.name)) for part in known}}
            for item, (kind, known) in zip(self._items, parts, strict=True)
        ]

    @classmethod
    def from_plain(cls, content: Iterable[Mapping[str, Any]]) -> Constraints:
        """What `to_plain` gave, as constraints again; a kind that is not known is a `UsageError`.

        Examples
        --------
        >>> Constraints.from_plain([{"kind": "Linked", "names": ["a", "b"]}])
        Constraints(Linked(names=('a', 'b')))
        """
        out = []
        for item in content:
            kind = KINDS.get(str(item["kind"]))
            if kind is None:
                raise UsageError(f"there is no constraint {item['kind']!r}", do="use a newer fewest")
            values = {name: value for name, value in item.items() if name != "kind" and value is not None}
            out.append(kind(*values["names"]) if "names" in values else kind(**values))
        return cls(*out)

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

    def leave(self, schema: Schema, feature: Feature, values: pd.DataFrame) -> Bools:
        """Which values of a feature (one per row) the constraints on it leave, whatever the case has."""
        kept = np.ones(len(values), dtype=bool)
        for item in self._items:
            if feature.name in item.features():
                # A value that goes to itself: what is left is what depends on the value alone.
                permits = item.permits(schema, values, values)
                kept &= True if permits is None else permits
        return kept

    def permitted(self, schema: Schema, start: pd.DataFrame, goal: pd.DataFrame) -> Bools:
        """Which features each row may move (n, p), by the constraints on single features."""
        out = np.ones((len(start), len(schema)), dtype=bool)
        for item in self._items:
            mask = item.permits(schema, start, goal)
            if mask is not None:
                out[:, schema.index(item.features()[0])] &= mask
        return out
