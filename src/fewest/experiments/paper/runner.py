"""Runs the units of a table that are not finished yet, one after the other or some at a time."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from fewest.errors import FewestError, MissingExtraError, UsageError
from fewest.experiments.paper.base import Record, Table, Tell, Unit, silent
from fewest.experiments.paper.store import Failure, Store

Done = tuple[list[Record], float]


def run(
    table: Table, datasets: Sequence[str], splits: int | Mapping[str, int], store: Store, *, n_jobs: int = 1,
    tell: Tell = silent,
) -> list[Record]:  # fmt: skip
    """Records of all splits of some datasets; those in the store are not computed again.

    Parameters
    ----------
    table : Table
    datasets : sequence of str
        Some of the table's.
    splits : int or mapping
        The first seeds, this many, of every dataset or of each.
    store : Store
        Every unit is put there as soon as it is finished.
    n_jobs : int
        Units at a time, each in a process of its own.
    tell : callable
        Called with a line of text now and then.

    Returns
    -------
    list of Record
        In the order of the datasets and splits, whatever order they were finished in.

    Examples
    --------
    >>> from fewest.experiments.paper import find
    >>> records = run(find("trees", quick=True), ["german"], 1, Store())
    >>> [record.method for record in records]
    ['CART', 'C4.5', 'GOSDT', 'TOpt']
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

    began = time.monotonic()
    try:
        with threadpool_limits(1):
            records = table.cells(unit.dataset, unit.split, tell)
    except Exception as error:
        if not forgiving or isinstance(error, MissingExtraError):
            raise
        records = Failure()
        records.error = error
    return records, time.monotonic() - began


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
