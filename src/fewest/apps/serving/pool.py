"""The workers of one model, and the requests that wait for them.

Each worker has a task that takes what waits, asks the worker, and replaces it when it is lost. Requests that wait
together are asked together: most of a short answer's time goes into the call, not into its rows. One that spoils the
answer of its neighbours (a crash, a hang, all the time used up) is found out by asking each of them again, alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fewest.apps.serving.process import Worker, WorkerLostError
from fewest.apps.serving.refusals import RefusedError
from fewest.apps.serving.settings import ServiceSettings
from fewest.apps.serving.wire import Reply
from fewest.errors import ModelError

TOGETHER = 64
TOGETHER_BYTES = 200_000
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
ADVICE = "send fewer instances; if it comes again, tell the operator"


@dataclass(eq=False)
class Job:
    """A request that waits."""

    verb: str
    body: bytes
    reply: asyncio.Future[Reply]
    since: float = field(default_factory=time.monotonic)
    waited: float = 0.0

    def refuse(self, refusal: RefusedError) -> None:
        """End it without an answer, unless it has ended already."""
        if not self.reply.done():
            self.reply.set_exception(refusal)

    def end(self, reply: Reply) -> None:
        """End it with an answer."""
        if not self.reply.done():
            self.reply.set_result(reply)


class WorkerPool:
    """The workers of one model.

    Parameters
    ----------
    name : str
    path : Path
        File of the explainer.
    settings : Settings
    log : callable
        Takes an event's name and its fields.
    """

    def __init__(self, name: str, path: Path, settings: ServiceSettings, log: Callable[..., None]) -> None:
        self.name = name
        self.path = path
        self.settings = settings
        self.log = log
        self.model: dict[str, Any] = {}
        self.lost: dict[str, int] = {"ended": 0, "hung": 0}
        self.inside = 0
        self.busy = 0
        self._waiting: asyncio.Queue[Job] = asyncio.Queue()
        self._workers: dict[int, Worker] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def ready(self) -> int:
        """Workers that hold the model now."""
        return len(self._workers)

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._workers.values()]

    async def start(self) -> None:
        """Start all workers; `ModelError` if the model cannot be loaded."""
        # The first one compiles what the others then find compiled.
        for slots in ((0,), range(1, self.settings.workers)):
            workers = await asyncio.gather(*(Worker.start(self.path, self.settings) for _ in slots))
            self._workers.update(zip(slots, workers, strict=True))
        self.model = self._workers[0].model
        self._tasks = [asyncio.create_task(self._keep(slot)) for slot in self._workers]
        self.log("model ready", model=self.name, workers=self.ready, notes=self.model.get("notes", []))

    async def close(self) -> None:
        """Stop the workers; what they work on is lost, so wait for requests first."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self._workers.values():
            await worker.stop()
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

    async def ask(self, verb: str, body: bytes) -> tuple[Reply, float]:
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
                await worker.stop()
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
        """Tell the one whose request it was; of several nobody knows, so each is asked again."""
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
