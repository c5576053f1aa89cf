"""One unit that breaks does not end a run: it is told, listed, and left open; the others are still measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from fewest.errors import MissingExtraError
from fewest.experiments.paper.base import Record, Table, Tell, Unit
from fewest.experiments.paper.store import Store


class Failure(list[Record]):
    """No records, and why; it travels between processes as what a unit returned."""

    error: Exception


@dataclass(frozen=True)
class GuardedModel:
    """A table whose units return a `Failure` where they would raise, so that the others are still measured.

    Examples
    --------
    >>> from fewest.experiments.paper import find
    >>> Guarded(find("trees")).name
    'trees'
    """

    table: Table

    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        """Figures of all methods, or a `Failure`; a missing package ends the table at once."""
        try:
            return self.table.cells(dataset, split, tell)
        except MissingExtraError:
            raise
        except Exception as error:
            failure = Failure()
            failure.error = error
            return failure

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "table":  # asked for while a copy in another process is being made
            raise AttributeError(name)
        return getattr(self.table, name)


def guarded(table: Table) -> Table:
    """The table, guarded.

    Examples
    --------
    >>> from fewest.experiments.paper import find
    >>> guarded(find("trees")).methods
    ('CART', 'C4.5', 'GOSDT', 'TOpt')
    """
    return cast("Table", GuardedModel(table))


class Sieve(Store):
    """A store that lets failures fall through: they are told and listed, and open again in the next run.

    Parameters
    ----------
    store : Store
        Where finished units go.
    failed : dict
        Unit -> error; those listed already are not tried.
    tell : callable

    Examples
    --------
    >>> from fewest.experiments.paper import find
    >>> sieve, failure = Sieve(Store(), {}, print), Failure()
    >>> failure.error = ValueError("no rows")
    >>> sieve.put(find("trees"), Unit("german", 3), failure)
    german, split 3 failed: ValueError: no rows
    >>> list(sieve.failed)
    [Unit(dataset='german', split=3)]
    """

    def __init__(self, store: Store, failed: dict[Unit, Exception], tell: Tell) -> None:
        super().__init__()
        self.store, self.failed, self.tell = store, failed, tell

    def get(self, table: Table, unit: Unit) -> tuple[Record, ...] | None:
        """As the store behind it; nothing, but finished, for a unit that has failed."""
        return () if unit in self.failed else self.store.get(table, unit)

    def put(self, table: Table, unit: Unit, records: Sequence[Record]) -> None:
        """Keep a finished unit; list a failed one."""
        if isinstance(records, Failure):
            self.failed[unit] = records.error
            self.tell(f"{unit} failed: {type(records.error).__name__}: {records.error}")
        else:
            self.store.put(table, unit, records)
