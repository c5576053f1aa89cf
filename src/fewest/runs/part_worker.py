"""The work on one part, in this process or in workers: rows in, its files and their figures out."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import time
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest import errors
from fewest.errors import DataError, DoubtError, FewestError, FewestWarning, ModelError, TimeLimitError, UsageError
from fewest.explainer import Explainer
from fewest.references import Anyone
from fewest.results import decimals
from fewest.results.answers import Answers
from fewest.results.explanations import Explanations
from fewest.runs.cases import Cases, RawPart, within
from fewest.runs.folder import write_part
from fewest.runs.parts import as_arrow, as_parquet, certificates, row_hashes, write_cases

Done = tuple[int, dict[str, Any]]
SHORTENED = 10_000  # first rows of a run that are shown with few decimals: the model is asked about them once more


@dataclass(frozen=True)
class PartWork:
    """Everything that answering a part takes; it can be sent to another process."""

    explainer: Explainer
    cases: Cases
    # (n, columns): The rows on which the model's inside is tried: the same ones for every part, so that answers
    # depend on nothing else
    head: pd.DataFrame
    folder: Path
    chunk_rows: int  # Rows that are explained at once
    alternatives: int = 0
    keep_cases: bool = True  # Whether the cases' own values are written beside the answers

    def ready(self) -> None:
        """Look inside the model, at the head of the data."""
        self.explainer.look_inside(self.head)

    def do(self, part: RawPart, deadline: float = np.inf) -> dict[str, Any]:
        """Explain the rows of a part and write its files; what the journal says of them."""
        frame = self.cases.typed(part)
        known = part.first, row_hashes(self.explainer.schema, frame), self.cases.labels(part)
        out = self._explain(frame, deadline)
        decimals.ask(out, range(max(0, min(len(out), SHORTENED - part.first))))
        answered, tally = out.answered(*known), out.tally.to_dict()
        table = as_arrow(answered)
        files = [
            ("table", "parquet", as_parquet(table)),
            ("certificates", "certificates.parquet", as_parquet(certificates(table))),
        ]
        if self.keep_cases:
            files.append(("cases", *write_cases(out.schema, frame)))
        written = write_part(self.folder, part.number, files)
        return {"first": part.first, "rows": len(frame), **written, **tally}

    def _explain(self, frame: pd.DataFrame, deadline: float) -> Explanations:
        found: list[Explanations] = []
        # Answers over all values are numbered by the rows they lead to, which are those of one call.
        rows = len(frame) if isinstance(self.explainer.references, Anyone) else self.chunk_rows
        for first in range(0, len(frame), max(1, rows)):
            left = deadline - time.monotonic()
            if left <= 0:
                raise out_of_time()
            chunk = frame.iloc[first : first + rows]
            found.append(explained(self.explainer, chunk, self.alternatives, left if np.isfinite(left) else None))
        # Answers that were cut short by the clock are worth nothing here: they would be others next time.
        if time.monotonic() >= deadline or not found:
            raise out_of_time()
        answers = Answers.blank(len(frame), len(self.explainer.schema))
        for k, out in enumerate(found):
            answers.put(np.arange(k * rows, k * rows + len(out)), out.answers)
        return replace(found[-1], frame=frame, answers=answers)


def explained(
    explainer: Explainer, frame: pd.DataFrame, alternatives: int, time_limit: float | None = None
) -> Explanations:
    """The answers to some rows of a larger table, refused where they cast doubt on those that went before them."""
    with placed(frame):
        before = explainer.doubt
        out = explainer.explain(frame, alternatives=alternatives, time_limit=time_limit)
        if explainer.doubt is not None and before is None:
            raise DoubtError(explainer.doubt, do='use Explainer(..., structure="opaque"): the model\'s own scores')
        return out


def out_of_time() -> TimeLimitError:
    """The end of a run that can be resumed."""
    return TimeLimitError(
        "the time limit was reached before all rows were done", do="run the same command again: what was done is kept"
    )


@contextmanager
def placed(frame: pd.DataFrame) -> Iterator[None]:
    """Say in which rows of the data something went wrong; warnings were given once, for the head."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewestWarning)
            yield
    except (DataError, ModelError) as error:
        raise type(error)(f"{within(frame)}: {error.message}", error.do) from error


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
    is_ready = False
    with threadpool_limits(1), suppress(EOFError, BrokenPipeError, ConnectionResetError):
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
