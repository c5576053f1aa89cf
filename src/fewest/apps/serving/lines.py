"""Requests that wait for a worker: a line for each key, and the keys take turns.

They never share a call either: what one key sends costs the others one turn at most.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any

from fewest.apps.serving import wire
from fewest.apps.serving.refusals import RefusedError

TOGETHER = 128
TOGETHER_BYTES = 200_000


@dataclass(eq=False)
class Job:
    """A request that waits; ``alone``: it must not share a call again; ``spared``: it has met a dead worker once."""

    key: str
    verb: str
    body: bytes
    reply: asyncio.Future[wire.Reply]
    alone: bool = False
    spared: bool = False
    waited: float = 0.0
    since: float = 0.0
    timer: asyncio.TimerHandle | None = None

    def wait(self, patience: float) -> None:
        """Wait for a worker, for as long as is left of the patience."""
        loop = asyncio.get_running_loop()
        self.since = loop.time()
        self.timer = loop.call_later(patience - self.waited, lambda: self.refuse(_no_worker(patience)))

    @property
    def waits(self) -> bool:
        """Whether it is in a line."""
        return self.timer is not None

    def take(self) -> None:
        """Stop waiting: a worker has it, or nobody needs it."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self.waited += asyncio.get_running_loop().time() - self.since

    def refuse(self, refusal: RefusedError) -> None:
        """End it without an answer, unless it has ended already."""
        if not self.reply.done():
            self.reply.set_exception(refusal)

    def end(self, reply: wire.Reply) -> None:
        """End it with an answer."""
        if not self.reply.done():
            self.reply.set_result(reply)


class Lines:
    """Requests that wait, in a line for each key; ``patience`` is for all the time that one of them waits."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._of: dict[str, deque[Job]] = {}
        self._turns: asyncio.Queue[str] = asyncio.Queue()  # each key that has a line, once

    def add(self, job: Job, *, first: bool = False) -> None:
        """Let a request wait at the end of its key's line, or as the first there."""
        if job.key not in self._of:
            self._of[job.key] = deque()
            self._turns.put_nowait(job.key)
        (self._of[job.key].appendleft if first else self._of[job.key].append)(job)
        job.wait(self.patience)

    def leave(self, job: Job) -> None:
        """Let a request go that still waits, if it does."""
        if job.waits:
            job.take()
            self._of[job.key].remove(job)

    async def take(self, unless: asyncio.Task[Any]) -> list[Job]:
        """The requests to ask together: what the next key has waiting, up to a size; none once ``unless`` is done."""
        turn = asyncio.create_task(self._turns.get())
        try:
            await asyncio.wait({turn, unless}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not turn.done():
                turn.cancel()
            elif unless.done():
                self._turns.put_nowait(turn.result())
        if unless.done():
            return []
        key = turn.result()
        line, jobs, size = self._of.pop(key), list[Job](), 0
        while line and len(jobs) < TOGETHER and size < TOGETHER_BYTES:
            if jobs and (line[0].alone or jobs[0].alone):
                break
            jobs.append(line.popleft())
            jobs[-1].take()
            size += len(jobs[-1].body)
        if line:
            self._of[key] = line
            self._turns.put_nowait(key)
        return [job for job in jobs if not job.reply.done()]


def _no_worker(patience: float) -> RefusedError:
    why = f"the limit is {patience:g} seconds"
    return RefusedError(503, "no worker was free in time", "model", why, "ask again later", retry_after=2)
