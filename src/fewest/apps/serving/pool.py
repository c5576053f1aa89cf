"""The workers of one model, and the requests that wait for them.

Each worker has a task that takes what waits, asks the worker, and replaces it when it is lost. Requests that wait
together are asked together: most of a short answer's time goes into the call, not into its rows. One that spoils the
answer of its neighbours (a crash, a hang, all the time used up) is found out by asking each of them again, alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fewest.apps.serving import wire
from fewest.apps.serving.lines import Job, Lines
from fewest.apps.serving.refusals import RefusedError
from fewest.apps.serving.settings import ServiceSettings
from fewest.errors import ModelError

SENT = ("loader", "memory", "start_limit", "max_instances", "max_alternatives", "time_limit", "hard_limit")
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
EventLog = Callable[..., None]  # takes the name of an event and its fields
ADVICE = "send fewer instances; if it comes again, ask the operator"
# What comes of a pipe whose other end has gone, or does not say what it should.
GARBLED = (asyncio.IncompleteReadError, ConnectionError, ValueError, TypeError, KeyError, AttributeError)
ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class WorkerLostError(Exception):
    """A worker did not answer: it ended, or it took too long (``hung``) and was stopped.

    ``unread``: it had gone before it read the requests, so they are not to blame.
    """

    def __init__(self, why: str, *, hung: bool = False, unread: bool = False) -> None:
        super().__init__(why)
        self.hung = hung
        self.unread = unread


@dataclass(frozen=True, eq=False)
class Worker:
    """A process that holds a model, and what this model takes and says."""

    process: Process
    model: dict[str, Any]
    ended: asyncio.Task[int]

    @classmethod
    async def start(cls, path: Path, settings: ServiceSettings) -> Worker:
        """Start a process and wait until its model is ready; `ModelError` if it never is."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "fewest.apps.serving.worker",
            stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True, env={**os.environ, **ONE_CORE},
        )  # fmt: skip
        try:
            async with asyncio.timeout(settings.start_limit):
                assert process.stdin is not None
                assert process.stdout is not None
                sent = {"path": str(path), **{name: getattr(settings, name) for name in SENT}}
                process.stdin.write(wire.json_frame(sent))
                await process.stdin.drain()
                said = json.loads(await wire.receive(process.stdout))
                refusal = None if said["ready"] else ModelError(f"{path.name}: {said['message']}", do=said["do"])
                model = dict(said.get("model", {}))
        except BaseException as error:
            gone = isinstance(error, GARBLED)
            await _end(process, patience=2.0 if gone else 0.0)
            if isinstance(error, TimeoutError):
                what = f"{path.name} was not loaded within {settings.start_limit:g} seconds"
                raise ModelError(what, do="look at the model: can it be loaded at all?") from None
            if gone:
                what = f"the process that loads {path.name} ended: {_how_it_ended(process)}"
                short = process.returncode in (wire.OUT_OF_MEMORY, -signal.SIGKILL)
                do = "raise --memory" if short else "save the explainer again; do not use a file you do not trust"
                raise ModelError(what, do=do) from None
            raise
        if refusal is not None:
            await _end(process)
            raise refusal
        return cls(process, model, asyncio.create_task(process.wait()))

    async def ask(self, verbs: list[str], bodies: list[bytes], seconds: float) -> list[wire.Reply]:
        """Answers to requests, or `WorkerLostError`; a worker that was lost or left in the middle is of no more use."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        unread = True
        try:
            async with asyncio.timeout(seconds):
                self.process.stdin.write(wire.json_frame({"verbs": verbs}))
                self.process.stdin.writelines([wire.frame(body) for body in bodies])
                await self.process.stdin.drain()
                receive = partial(wire.receive, self.process.stdout)
                unread = not await receive()
                return [wire.Reply(dict(json.loads(await receive())), await receive()) for _ in bodies]
        except TimeoutError:
            raise WorkerLostError(f"it took more than {seconds:g} seconds", hung=True, unread=unread) from None
        except GARBLED:
            await _end(self.process, patience=2.0)
            raise WorkerLostError(_how_it_ended(self.process), unread=unread) from None


async def _end(process: Process, patience: float = 0.0) -> None:
    """Kill a process with its whole group, and collect it; one that is ending already gets the time to show how."""
    if patience:
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), patience)
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _how_it_ended(process: Process) -> str:
    """An exit code in words."""
    code = process.returncode
    if code == wire.OUT_OF_MEMORY:
        return "out of memory"
    if code is not None and code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended with code {code}"


@dataclass(eq=False)
class WorkerPool:
    """The workers of one model, which is in a file."""

    name: str
    path: Path
    settings: ServiceSettings
    log: EventLog
    model: dict[str, Any] = field(default_factory=dict)
    request_schema: dict[str, Any] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=lambda: {"ended": 0, "hung": 0})
    busy: int = 0
    _places: Counter[str] = field(default_factory=Counter)
    _workers: dict[int, Worker] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lines = Lines(self.settings.patience)

    @property
    def ready(self) -> int:
        """Workers that hold the model now."""
        return sum(not worker.ended.done() for worker in self._workers.values())

    @property
    def inside(self) -> int:
        """Requests that wait or are answered."""
        return self._places.total()

    async def start(self) -> None:
        """Start all workers; `ModelError` if the model cannot be loaded."""
        # The first one compiles what the others then find compiled.
        for slots in ((0,), range(1, self.settings.workers)):
            workers = await asyncio.gather(*(Worker.start(self.path, self.settings) for _ in slots))
            self._workers.update(zip(slots, workers, strict=True))
        self.model = dict(self._workers[0].model)
        self.request_schema = self.model.pop("request")
        self._tasks = [asyncio.create_task(self._supervise(slot)) for slot in self._workers]
        self.log("model ready", model=self.name, workers=self.ready, notes=self.model.get("notes", []))

    async def close(self) -> None:
        """Stop the workers; what they work on is lost, so wait for requests first."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self._workers.values():
            await _end(worker.process)
        self._workers.clear()

    async def ask(self, verb: str, body: bytes, key: str) -> tuple[wire.Reply, float]:
        """The answer to a request, and the seconds it waited for a worker; each key has places of its own."""
        if self._places[key] >= self.settings.queue + self.settings.workers:
            raise RefusedError(
                503, "the service is busy", "model", f"{self.settings.queue} requests of this key wait already",
                "ask again later", retry_after=1,
            )  # fmt: skip
        job = Job(key, verb, body, asyncio.get_running_loop().create_future())
        self._places[key] += 1
        try:
            self._lines.add(job)
            return await job.reply, job.waited
        finally:
            self._places[key] -= 1
            self._lines.leave(job)
            job.reply.cancel()  # where the client's side was cancelled: nobody waits for it any more

    async def _supervise(self, slot: int) -> None:
        """Keep a worker, whatever happens to its keeping."""
        while True:
            jobs: list[Job] = []
            try:
                await self._keep(slot, jobs)
            except Exception as error:
                self.log("worker not kept", model=self.name, why=type(error).__name__)
                worker = self._workers.pop(slot, None)
                if worker is not None:
                    await _end(worker.process)
                for job in jobs:
                    job.refuse(_ended("it could not be kept"))
                await asyncio.sleep(FIRST_PAUSE)

    async def _keep(self, slot: int, jobs: list[Job]) -> None:
        """A worker's life, and that of those that follow it; ``jobs`` holds what it has in hand."""
        while True:
            worker = self._workers.get(slot) or await self._replace(slot)
            jobs[:] = await self._lines.take(unless=worker.ended)
            self.busy += 1
            try:
                if jobs:
                    await self._work(worker, jobs)
                elif worker.ended.done():
                    raise WorkerLostError(_how_it_ended(worker.process), unread=True)
            except WorkerLostError as lost:
                del self._workers[slot]
                self._explain_loss(lost, jobs)
                await _end(worker.process)
            finally:
                self.busy -= 1

    async def _work(self, worker: Worker, jobs: list[Job]) -> None:
        """Ask a worker; where one request spoiled the answer of others, each is asked again, alone."""
        verbs, bodies = [job.verb for job in jobs], [job.body for job in jobs]
        replies = await worker.ask(verbs, bodies, self.settings.hard_limit)
        spoiled = []
        for job, reply in zip(jobs, replies, strict=True):
            if reply.head.get("again"):
                spoiled.append(job)
            else:
                job.end(reply)
        self._ask_again(spoiled)

    def _ask_again(self, jobs: list[Job], *, alone: bool = True) -> None:
        for job in reversed(jobs):
            if not job.reply.done():
                job.alone |= alone
                job.spared |= not alone
                self._lines.add(job, first=True)

    def _explain_loss(self, lost: WorkerLostError, jobs: list[Job]) -> None:
        """Refuse the request that did it; of several nobody knows which, so each is asked again."""
        self.lost["hung" if lost.hung else "ended"] += 1
        self.log("worker lost", model=self.name, why=str(lost), requests=len(jobs))
        if lost.unread and not any(job.spared for job in jobs):
            self._ask_again(jobs, alone=False)
        elif len(jobs) > 1:
            self._ask_again(jobs)
        elif lost.hung:
            jobs[0].refuse(RefusedError(504, "the model did not answer in time", "model", str(lost), ADVICE))
        else:
            jobs[0].refuse(_ended(str(lost)))

    async def _replace(self, slot: int) -> Worker:
        """Start a worker in place of a lost one, however often it takes."""
        pause = FIRST_PAUSE
        while True:
            try:
                worker = await Worker.start(self.path, self.settings)
            except (ModelError, OSError) as error:
                self.log("worker not started", model=self.name, why=str(error).splitlines()[0], pause=pause)
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE, pause * 2)
                continue
            self._workers[slot] = worker
            self.log("worker started", model=self.name)
            return worker


def _ended(why: str) -> RefusedError:
    return RefusedError(503, "the process that ran the model ended", "model", why, ADVICE, retry_after=2)
