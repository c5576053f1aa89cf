"""Worker processes, each with an explainer of its own; parts are handed out in order."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from fewest import errors
from fewest.errors import FewestError, ModelError, UsageError
from fewest.runs.cases import RawPart
from fewest.runs.part_worker import PartWork, out_of_time

Done = tuple[int, dict[str, Any]]


def in_process(work: PartWork, parts: Iterator[RawPart], deadline: float = np.inf) -> Generator[Done]:
    """Do one part after the other, here."""
    work.ready()
    for part in parts:
        yield part.number, work.do(part, deadline)


def in_workers(work: PartWork, parts: Iterator[RawPart], n_jobs: int, deadline: float = np.inf) -> Generator[Done]:
    """Do the parts in several processes. An error in one of them ends all."""
    try:
        # A fresh explainer: what was read of the model may hold things that do not travel.
        packed = pickle.dumps(replace(work, explainer=work.explainer.with_()))
    except Exception as error:
        raise UsageError(
            f"the model cannot be sent to other processes ({type(error).__name__}: {error})", do="use --jobs 1"
        ) from error
    context = multiprocessing.get_context("spawn")
    free: list[Connection] = []
    busy: dict[Connection, int] = {}
    processes = []
    try:
        for _ in range(n_jobs):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, packed), daemon=True)
            process.start()
            there.close()
            processes.append(process)
            free.append(here)
        for part in parts:
            while not free:
                yield from _collect(free, busy, deadline)
            connection = free.pop(0)
            connection.send(part)
            busy[connection] = part.number
        while busy:
            yield from _collect(free, busy, deadline)
    except (BrokenPipeError, ConnectionResetError, EOFError) as error:
        raise ModelError(
            "a worker process ended in the middle of its work, most likely for lack of memory",
            do="use fewer --jobs, then run the same command again: what was done is kept",
        ) from error
    finally:
        for connection in (*free, *busy):
            connection.close()
        for process in processes:
            process.kill()
        for process in processes:
            process.join()


def _collect(free: list[Connection], busy: dict[Connection, int], deadline: float) -> Iterator[Done]:
    """Wait for at least one worker, and take what is there."""
    left = deadline - time.monotonic()
    ready = wait(list(busy), None if np.isinf(left) else max(0.0, left))
    if not ready:
        raise out_of_time()
    for connection in ready:
        assert isinstance(connection, Connection)
        answer = connection.recv()
        number = busy.pop(connection)
        free.append(connection)
        if isinstance(answer, tuple):
            raise _again(*answer)
        yield number, answer


def _again(name: str, message: str, do: str | None) -> FewestError:
    """An error of a worker, as it was."""
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, FewestError):
        return kind(message, do)
    return ModelError(f"a worker process failed: {name}: {message}", do="use --jobs 1 to see where")


def _serve(connection: Connection, packed: bytes) -> None:
    """A worker: answer parts until nobody asks any more. When the one who asks is killed, it ends as well."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the one who asks decides when to end
        signal.signal(number, signal.SIG_IGN)
    from threadpoolctl import threadpool_limits

    work: PartWork = pickle.loads(packed)
    with threadpool_limits(1), suppress(EOFError, BrokenPipeError, ConnectionResetError):
        _answer(connection, work)


def _answer(connection: Connection, work: PartWork) -> None:
    is_ready = False
    while True:
        part: RawPart = connection.recv()
        try:
            if not is_ready:
                work.ready()
                is_ready = True
            connection.send(work.do(part))
        except FewestError as error:
            connection.send((type(error).__name__, error.message, error.do))
        except Exception as error:
            connection.send((type(error).__name__, str(error), None))
