"""Runs the units of a table that are not finished yet, and keeps those that are.

A finished unit is one line of JSON, appended at once, so that a killed run goes on where it was. With a
`ForgivingStore` a unit that breaks does not end a run: it is listed and left open; the others are measured.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from fewest import __version__
from fewest.errors import DataError, FewestError, MissingExtraError, UsageError
from fewest.experiments.paper.base import Record, Table, Tell, Unit, fingerprint, silent

Key = tuple[str, int, str, str]
Done = tuple[list[Record], float]


class UnitRecords(list[Record]):
    """Records of a unit, and the seconds they took on one core."""

    seconds: float = math.nan


class Failure(UnitRecords):
    """No records, and why; it travels between processes as what a unit returned."""

    error: Exception


class Store:
    """Finished units in memory."""

    forgiving: ClassVar[bool] = False

    def __init__(self) -> None:
        self._units: dict[Key, tuple[Record, ...]] = {}
        self._seconds: dict[Key, float] = {}

    def get(self, table: Table, unit: Unit) -> tuple[Record, ...] | None:
        """Records of a unit; None unless it was finished under the same settings, data and version."""
        return self._units.get(_key(table, unit))

    def put(self, table: Table, unit: Unit, records: Sequence[Record]) -> None:
        """Keep a finished unit."""
        key = _key(table, unit)
        self._units[key] = tuple(records)
        self._seconds[key] = getattr(records, "seconds", math.nan)

    def seconds(self, table: Table, unit: Unit) -> float:
        """What a finished unit took on one core; NaN where that was not kept."""
        return self._seconds.get(_key(table, unit), math.nan)


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
                self._seconds[key] = float(entry.get("seconds", math.nan))
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
        if math.isfinite(self.seconds(table, unit)):
            entry["seconds"] = round(self.seconds(table, unit))
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

    def seconds(self, table: Table, unit: Unit) -> float:
        """As the store behind it."""
        return self.store.seconds(table, unit)


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


def run_table(
    table: Table, datasets: Sequence[str], splits: int | Mapping[str, int], store: Store, *, n_jobs: int = 1,
    tell: Tell = silent,
) -> list[Record]:  # fmt: skip
    """Records of all splits of some datasets; those in the store are not computed again.

    ``splits`` are the first seeds, this many, of every dataset or of each. Every unit is put into the store as soon as
    it is finished; ``n_jobs`` units at a time are measured, each in a process of its own. Records come in the order of
    the datasets and splits, whatever order they were finished in.

    Examples
    --------
    >>> from fewest.experiments.paper import find
    >>> records = run_table(find("trees", quick=True), ["german"], 1, Store())
    >>> [record.method for record in records]
    ['CART', 'C4.5', 'GOSDT', 'TOpt', 'TOpt paper']
    """
    count = splits if isinstance(splits, Mapping) else dict.fromkeys(datasets, splits)
    if min([n_jobs, *count.values()]) < 1:
        raise UsageError(f"{splits} splits and {n_jobs} jobs make no run", do="ask for at least one of each")
    for dataset in datasets:
        if dataset not in table.datasets:
            raise UsageError(
                f'the table "{table.name}" has no dataset "{dataset}"', do=f"choose from {', '.join(table.datasets)}"
            )
    units = [Unit(dataset, split) for dataset in datasets for split in range(count[dataset])]
    # Asking for all of them first also finds out, before an hour has gone by, whether a dataset is not here.
    open_units = [unit for unit in units if store.get(table, unit) is None]
    if len(open_units) < len(units):
        tell(f"{len(units) - len(open_units)} of {len(units)} units are finished already")
    work: Iterator[tuple[Unit, Done]]
    if n_jobs == 1:
        work = ((unit, compute_unit(table, unit, tell, store.forgiving)) for unit in open_units)
    else:
        work = _at_a_time(table, open_units, n_jobs, store.forgiving)
    for number, (unit, (records, seconds)) in enumerate(work, start=1):
        store.put(table, unit, records)
        tell(f"{table.name}  {number}/{len(open_units)}  {unit}: {seconds:.1f} s")
    return [record for unit in units for record in store.get(table, unit) or ()]


def _at_a_time(table: Table, units: Sequence[Unit], n_jobs: int, forgiving: bool) -> Iterator[tuple[Unit, Done]]:
    with _workers(min(n_jobs, max(1, len(units)))) as pool:
        todo = {pool.submit(compute_unit, table, unit, _tell_stderr, forgiving): unit for unit in units}
        for future in as_completed(todo):
            try:
                done = future.result()
            except BrokenProcessPool as error:
                raise FewestError(
                    "a process was killed from outside, most often because memory ran out",
                    do="run the same command with fewer --jobs; finished units are kept",
                ) from error
            yield todo[future], done


def compute_unit(table: Table, unit: Unit, tell: Tell, forgiving: bool) -> Done:
    """The records of a unit, or its `Failure`, and the seconds on one core; a missing package ends the table."""
    from threadpoolctl import threadpool_limits

    if find_spec("torch") is not None:
        import torch  # noqa: F401  (it counts its threads when it is imported: a limit from before would not reach it)
    began = _seconds()
    try:
        with threadpool_limits(1):
            records = UnitRecords(table.cells(unit.dataset, unit.split, tell))
    except Exception as error:
        if not forgiving or isinstance(error, MissingExtraError):
            raise
        records = Failure()
        records.error = error
    records.seconds = _seconds() - began
    return records, records.seconds


def _seconds() -> float:
    """What this process and those it waited for have computed: on a busy machine a clock says something else."""
    return sum(os.times()[:4])


@contextmanager
def _workers(n_jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the run, however it ends."""
    # A forked copy of a process with threads can hang; a fresh one cannot.
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    # Ctrl-C reaches every process of a terminal; the parent alone decides what it means.
    pool = ProcessPoolExecutor(
        n_jobs, mp_context=context, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _tell_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
