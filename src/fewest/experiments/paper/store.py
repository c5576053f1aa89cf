"""Where finished units are kept: one line of JSON each, appended at once, so that a killed run goes on where it was.

With a `ForgivingStore` a unit that breaks does not end a run: it is listed and left open; the others are measured.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from fewest import __version__
from fewest.errors import DataError, UsageError
from fewest.experiments.paper.base import Record, Table, Tell, Unit, fingerprint

Key = tuple[str, int, str, str]


class Failure(list[Record]):
    """No records, and why; it travels between processes as what a unit returned."""

    error: Exception


class Store:
    """Finished units in memory.

    Examples
    --------
    >>> from fewest.experiments.paper import find
    >>> store, table, unit = Store(), find("trees"), Unit("german", 0)
    >>> store.put(table, unit, [Record("german", "CART", {"sev_t": 1.0})])
    >>> [record.method for record in store.get(table, unit) or ()], store.get(table, Unit("german", 1)) is None
    (['CART'], True)
    """

    forgiving: ClassVar[bool] = False

    def __init__(self) -> None:
        self._units: dict[Key, tuple[Record, ...]] = {}

    def get(self, table: Table, unit: Unit) -> tuple[Record, ...] | None:
        """Records of a unit; None unless it was finished under the same settings, data and version."""
        return self._units.get(_key(table, unit))

    def put(self, table: Table, unit: Unit, records: Sequence[Record]) -> None:
        """Keep a finished unit."""
        self._units[_key(table, unit)] = tuple(records)


class FileStore(Store):
    """Finished units in ``FOLDER/NAME.jsonl`` as well; the folder is made if it is not there.

    Examples
    --------
    >>> import tempfile
    >>> from fewest.experiments.paper import find
    >>> folder, table, unit = tempfile.mkdtemp(), find("trees"), Unit("german", 0)
    >>> FileStore(folder, "trees").put(table, unit, [Record("german", "CART", {"sev_t": 1.0})])
    >>> len(FileStore(folder, "trees").get(table, unit) or ())
    1
    """

    def __init__(self, folder: str | Path, name: str) -> None:
        super().__init__()
        self.path = make_folder(folder) / f"{name}.jsonl"
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            # A run that was killed while it wrote leaves half a line; what is appended next must not continue it.
            os.truncate(self.path, whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                entry = json.loads(line)
                key = (entry["dataset"], entry["split"], entry["fingerprint"], entry["version"])
                self._units[key] = tuple(_record(entry["dataset"], part) for part in entry["records"])
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(
                    f"{self.path.name}, line {number}: this is not a record of a run", do="remove the line, or the file"
                ) from error

    def put(self, table: Table, unit: Unit, records: Sequence[Record]) -> None:
        """Keep a finished unit, and write it down before anything else happens."""
        super().put(table, unit, records)
        dataset, split, settings, version = _key(table, unit)
        entry = {
            "dataset": dataset, "split": split, "fingerprint": settings, "version": version,
            "records": [{"method": r.method, "figures": _plain(r.figures)} for r in records],
        }  # fmt: skip
        line = json.dumps(entry, allow_nan=False, ensure_ascii=False) + "\n"
        # One write of one line to a file opened for appending: another process sees all of it or nothing.
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(handle, line.encode("utf-8"))
            os.fsync(handle)
        finally:
            os.close(handle)


class ForgivingStore(Store):
    """A store in front of another: failures are reported and listed, and open again in the next run.

    Units listed in ``failed`` already are not tried.
    """

    forgiving = True

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


def make_folder(folder: str | Path) -> Path:
    """The folder that ``--out`` names, made if it is not there."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {folder}: a folder cannot be made here", do="name another one") from error
    return Path(folder)


def _key(table: Table, unit: Unit) -> Key:
    return unit.dataset, unit.split, fingerprint(table, unit.dataset), __version__


def _plain(figures: Any) -> dict[str, float | None]:
    """Figures as JSON can hold them: what is not finite becomes null."""
    return {name: float(value) if math.isfinite(value) else None for name, value in figures.items()}


def _record(dataset: str, part: Any) -> Record:
    figures = {str(name): math.nan if value is None else float(value) for name, value in part["figures"].items()}
    return Record(dataset, str(part["method"]), figures)
