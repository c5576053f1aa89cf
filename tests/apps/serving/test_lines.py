"""Keys take turns: whatever one of them sends, another waits for one call at most."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from fewest.apps.serving import ServiceSettings, lines
from fewest.apps.serving.lines import Job, Lines
from fewest.apps.serving.pool import WorkerPool
from fewest.apps.serving.refusals import RefusedError
from fewest.apps.serving.wire import Reply


def job(key: str, body: bytes = b"", **more: Any) -> Job:
    return Job(key, "explain", body, asyncio.get_running_loop().create_future(), **more)


async def never() -> None:
    await asyncio.sleep(3600)


async def taken(line: Lines, calls: int) -> list[list[str]]:
    """Keys of the requests in each of so many calls."""
    unless = asyncio.create_task(never())
    calls_made = [[job.key for job in await line.take(unless)] for _ in range(calls)]
    unless.cancel()
    return calls_made


def test_keys_take_turns_and_never_share_a_call() -> None:
    async def run() -> list[list[str]]:
        line = Lines(60)
        for _ in range(2 * lines.TOGETHER):
            line.add(job("alpha"))
        line.add(job("beta"))
        line.add(job("gamma", b"x" * lines.TOGETHER_BYTES))
        line.add(job("gamma"))
        return await taken(line, 5)

    many = ["alpha"] * lines.TOGETHER
    assert asyncio.run(run()) == [many, ["beta"], ["gamma"], many, ["gamma"]]


def test_requests_asked_again_are_asked_alone_and_other_keys_come_between() -> None:
    async def run() -> list[list[str]]:
        line = Lines(60)
        for _ in range(3):
            line.add(job("alpha", alone=True), first=True)
        line.add(job("alpha"))
        line.add(job("alpha"))
        line.add(job("beta"))
        return await taken(line, 5)

    assert asyncio.run(run()) == [["alpha"], ["beta"], ["alpha"], ["alpha"], ["alpha", "alpha"]]


def test_patience_is_for_all_the_time_that_a_request_waits() -> None:
    async def run() -> tuple[float, str, list[Job]]:
        line = Lines(0.3)
        first = job("alpha")
        line.add(first)
        unless = asyncio.create_task(never())
        await asyncio.sleep(0.2)
        await line.take(unless)
        await asyncio.sleep(0.3)  # in a worker's hands nobody loses patience
        assert not first.reply.done()
        line.add(first, first=True)
        began = asyncio.get_running_loop().time()
        with pytest.raises(RefusedError) as caught:
            await first.reply
        seconds = asyncio.get_running_loop().time() - began
        line.add(job("alpha"))
        left = await line.take(unless)
        unless.cancel()
        return seconds, caught.value.parts["what"], left

    seconds, what, left = asyncio.run(run())
    assert what == "no worker was free in time"
    assert seconds < 0.2
    assert len(left) == 1, "the one that was refused is not asked"


def test_requests_that_are_given_up_take_no_memory() -> None:
    async def run() -> int:
        line = Lines(60)
        waiting = [job("alpha") for _ in range(5)]
        for one in waiting:
            line.add(one)
        for one in waiting[1:]:
            line.leave(one)
            line.leave(one)
        return len(line._of["alpha"])

    assert asyncio.run(run()) == 1


def test_nothing_is_taken_for_a_worker_that_has_ended() -> None:
    async def run() -> tuple[list[Job], list[list[str]]]:
        line = Lines(60)
        line.add(job("alpha"))
        ended = asyncio.create_task(asyncio.sleep(0))
        await ended
        return await line.take(ended), await taken(line, 1)

    assert asyncio.run(run()) == ([], [["alpha"]])


class Hard:
    """A worker that finishes nothing in time: requests that come together use it up, one alone takes this long."""

    seconds = 0.1

    def __init__(self) -> None:
        self.ended = asyncio.create_task(never())
        self.calls: list[int] = []

    async def ask(self, verbs: list[str], bodies: list[bytes], limit: float) -> list[Reply]:
        self.calls.append(len(bodies))
        await asyncio.sleep(self.seconds)
        head = {"again": True} if len(bodies) > 1 else {"status": 200}
        return [Reply(head, b"{}")] * len(bodies)


def test_hard_requests_of_one_key_cost_another_one_call_each() -> None:
    """Forty of one key come together, are asked again one by one, and lose patience; another key notices little."""
    waits: dict[str, list[float]] = {"alpha": [], "beta": []}
    codes: dict[str, list[int]] = {"alpha": [], "beta": []}

    async def one(pool: WorkerPool, key: str) -> None:
        began = time.monotonic()
        try:
            reply, _ = await pool.ask("explain", b"", key)
            codes[key].append(reply.head["status"])
        except RefusedError as refusal:
            codes[key].append(refusal.status)
        waits[key].append(time.monotonic() - began)

    async def run() -> list[int]:
        pool = WorkerPool("a", Path("a.fewest"), ServiceSettings(patience=1.0), lambda *_, **__: None)
        worker: Any = Hard()
        pool._workers[0] = worker
        keeping = asyncio.create_task(pool._supervise(0))
        many = [asyncio.create_task(one(pool, "alpha")) for _ in range(40)]
        for _ in range(5):
            await asyncio.sleep(0.05)
            await one(pool, "beta")
        await asyncio.gather(*many)
        for task in (keeping, worker.ended):
            task.cancel()
        return list(worker.calls)

    calls = asyncio.run(run())
    assert codes["beta"] == [200] * 5
    assert max(waits["beta"]) < 5 * Hard.seconds
    assert 40 in calls
    assert {200, 503} == set(codes["alpha"]), "some are answered, the others hear that no worker was free"
    assert max(waits["alpha"]) < 1.0 + 5 * Hard.seconds
