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
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fewest.apps.serving import wire
from fewest.apps.serving.refusals import RefusedError
from fewest.apps.serving.settings import ServiceSettings
from fewest.errors import ModelError

SENT = ("loader", "memory", "start_limit", "max_instances", "max_alternatives", "time_limit", "hard_limit")
TOGETHER = 64
TOGETHER_BYTES = 200_000
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
EventLog = Callable[..., None]  # takes the name of an event and its fields
ADVICE = "send fewer instances; if it comes again, ask the operator"
ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class WorkerLostError(Exception):
    """A worker did not answer: it ended, or it took too long (``hung``) and was stopped."""

    def __init__(self, why: str, hung: bool = False) -> None:
        super().__init__(why)
        self.hung = hung


@dataclass(frozen=True, eq=False)
class Worker:
    """A process that holds a model, and what this model takes and says."""

    process: Process
    model: dict[str, Any]

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
        except BaseException as error:
            gone = isinstance(error, asyncio.IncompleteReadError | ConnectionError)
            await _end(process, patience=2.0 if gone else 0.0)
            if isinstance(error, TimeoutError):
                what = f"{path.name} was not loaded within {settings.start_limit:g} seconds"
                raise ModelError(what, do="look at the model: can it be loaded at all?") from None
            if gone:
                what = f"the process that loads {path.name} ended: {_how_it_ended(process)}"
                raise ModelError(what, do="raise --memory, or save the explainer again") from None
            raise
        if not said["ready"]:
            await _end(process)
            raise ModelError(f"{path.name}: {said['message']}", do=said["do"])
        return cls(process, said["model"])

    async def ask(self, verbs: list[str], bodies: list[bytes], seconds: float) -> list[wire.Reply]:
        """Answers to requests, or `WorkerLostError`; a worker that was lost or left in the middle is of no more use."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                self.process.stdin.write(wire.json_frame({"verbs": verbs}))
                self.process.stdin.writelines([wire.frame(body) for body in bodies])
                await self.process.stdin.drain()
                receive = partial(wire.receive, self.process.stdout)
                return [wire.Reply(dict(json.loads(await receive())), await receive()) for _ in bodies]
        except TimeoutError:
            raise WorkerLostError(f"it took more than {seconds:g} seconds", hung=True) from None
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, TypeError):
            await _end(self.process, patience=2.0)
            raise WorkerLostError(_how_it_ended(self.process)) from None


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
class Job:
    """A request that waits."""

    verb: str
    body: bytes
    reply: asyncio.Future[wire.Reply]
    since: float = field(default_factory=time.monotonic)
    waited: float = 0.0

    def refuse(self, refusal: RefusedError) -> None:
        """End it without an answer, unless it has ended already."""
        if not self.reply.done():
            self.reply.set_exception(refusal)

    def end(self, reply: wire.Reply) -> None:
        """End it with an answer."""
        if not self.reply.done():
            self.reply.set_result(reply)


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
    inside: int = 0
    busy: int = 0
    _waiting: asyncio.Queue[Job] = field(default_factory=asyncio.Queue)
    _workers: dict[int, Worker] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def ready(self) -> int:
        """Workers that hold the model now."""
        return len(self._workers)

    async def start(self) -> None:
        """Start all workers; `ModelError` if the model cannot be loaded."""
        # The first one compiles what the others then find compiled.
        for slots in ((0,), range(1, self.settings.workers)):
            workers = await asyncio.gather(*(Worker.start(self.path, self.settings) for _ in slots))
            self._workers.update(zip(slots, workers, strict=True))
        self.model = dict(self._workers[0].model)
        self.request_schema = self.model.pop("request")
        self._tasks = [asyncio.create_task(self._keep(slot)) for slot in self._workers]
        self.log("model ready", model=self.name, workers=self.ready, notes=self.model.get("notes", []))

    async def close(self) -> None:
        """Stop the workers; what they work on is lost, so wait for requests first."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self._workers.values():
            await _end(worker.process)
        self._workers.clear()

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place among the requests of this model, taken before the body is read: memory stays bounded."""
        if self.inside >= self.settings.queue + self.settings.workers:
            raise RefusedError(
                503, "the service is busy", "model", f"{self.settings.queue} requests wait already", "ask again later",
                retry_after=1,
            )  # fmt: skip
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    async def ask(self, verb: str, body: bytes) -> tuple[wire.Reply, float]:
        """The answer to a request, and the seconds it waited for a worker."""
        loop = asyncio.get_running_loop()
        job = Job(verb, body, loop.create_future())
        timer = loop.call_later(self.settings.patience, self._lose_patience, job)
        self._waiting.put_nowait(job)
        try:
            return await job.reply, job.waited
        finally:
            timer.cancel()
            job.reply.cancel()  # where the client's side was cancelled: nobody waits for it any more

    def _lose_patience(self, job: Job) -> None:
        if job.waited == 0:
            job.refuse(
                RefusedError(
                    503, "no worker was free in time", "model", f"the limit is {self.settings.patience:g} seconds",
                    "ask again later", retry_after=2,
                )
            )  # fmt: skip

    async def _keep(self, slot: int) -> None:
        """A worker's life, and that of those that follow it."""
        again: list[Job] = []
        while True:
            worker = self._workers.get(slot) or await self._replace(slot, again)
            jobs = [again.pop()] if again else await self._next()
            self.busy += 1
            try:
                again += await self._work(worker, jobs)
            except WorkerLostError as lost:
                del self._workers[slot]
                again += self._explain_loss(lost, jobs)
                await _end(worker.process)
            finally:
                self.busy -= 1

    async def _next(self) -> list[Job]:
        """The requests to ask together: those that wait now, up to a size."""
        jobs: list[Job] = []
        size = 0
        while not jobs or (len(jobs) < TOGETHER and size < TOGETHER_BYTES and not self._waiting.empty()):
            job = await self._waiting.get()
            if not job.reply.done():
                job.waited = max(1e-6, time.monotonic() - job.since)
                jobs.append(job)
                size += len(job.body)
        return jobs

    async def _work(self, worker: Worker, jobs: list[Job]) -> list[Job]:
        """Ask a worker; those that should be asked again, alone."""
        verbs, bodies = [job.verb for job in jobs], [job.body for job in jobs]
        replies = await worker.ask(verbs, bodies, self.settings.hard_limit)
        again = []
        for job, reply in zip(jobs, replies, strict=True):
            if reply.head.get("again"):
                again.append(job)
            else:
                job.end(reply)
        return again

    def _explain_loss(self, lost: WorkerLostError, jobs: list[Job]) -> list[Job]:
        """Refuse the request that did it; of several nobody knows which, so each is asked again."""
        self.lost["hung" if lost.hung else "ended"] += 1
        self.log("worker lost", model=self.name, why=str(lost), requests=len(jobs))
        if len(jobs) > 1:
            return jobs
        if lost.hung:
            jobs[0].refuse(RefusedError(504, "the model did not answer in time", "model", str(lost), ADVICE))
        else:
            jobs[0].refuse(_ended(str(lost)))
        return []

    async def _replace(self, slot: int, jobs: list[Job]) -> Worker:
        """Start a worker in place of a lost one, however often it takes; jobs do not wait for the second try."""
        pause = FIRST_PAUSE
        while True:
            try:
                worker = await Worker.start(self.path, self.settings)
            except (ModelError, OSError) as error:
                self.log("worker not started", model=self.name, why=str(error).splitlines()[0], pause=pause)
                while jobs:
                    jobs.pop().refuse(_ended("it could not be started again"))
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE, pause * 2)
                continue
            self._workers[slot] = worker
            self.log("worker started", model=self.name)
            return worker


def _ended(why: str) -> RefusedError:
    return RefusedError(503, "the process that ran the model ended", "model", why, ADVICE, retry_after=2)
