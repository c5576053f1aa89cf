"""A worker process, from the server's side: started, asked, and stopped."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Any

from fewest.apps.serving import limits, wire
from fewest.apps.serving.settings import ServiceSettings
from fewest.errors import ModelError

ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class WorkerLostError(Exception):
    """A worker did not answer: it ended, or it took too long and was stopped.

    Attributes
    ----------
    hung : bool
        Whether it was stopped for taking too long.
    """

    def __init__(self, why: str, hung: bool = False) -> None:
        super().__init__(why)
        self.hung = hung


class Worker:
    """A process that holds a model.

    Parameters
    ----------
    process : Process
    model : dict
        What the model takes and says.
    """

    def __init__(self, process: Process, model: dict[str, Any]) -> None:
        self.process = process
        self.model = model

    @classmethod
    async def start(cls, path: Path, settings: ServiceSettings) -> Worker:
        """Start a process and wait until its model is ready; `ModelError` if it never is."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "fewest.apps.serving.worker",
            stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True, env={**os.environ, **ONE_CORE},
        )  # fmt: skip
        try:
            async with asyncio.timeout(settings.start_limit):
                said = await _begin(process, path, settings)
        except BaseException as error:
            gone = isinstance(error, asyncio.IncompleteReadError | ConnectionError)
            await _end(process, patience=2.0 if gone else 0.0)
            if isinstance(error, TimeoutError):
                what = f"{path.name} was not loaded within {settings.start_limit:g} seconds"
                raise ModelError(what, do="look at the model: can it be loaded at all?") from None
            if gone:
                what = f"the process that loads {path.name} ended: {how_it_ended(process)}"
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
                return [await _reply(self.process.stdout) for _ in bodies]
        except TimeoutError:
            raise WorkerLostError(f"it took more than {seconds:g} seconds", hung=True) from None
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, TypeError):
            await _end(self.process, patience=2.0)
            raise WorkerLostError(how_it_ended(self.process)) from None

    async def stop(self) -> None:
        """End the process, and whatever it has started."""
        await _end(self.process)


async def _begin(process: Process, path: Path, settings: ServiceSettings) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    names = ("loader", "memory", "start_limit", "max_instances", "max_alternatives", "time_limit", "hard_limit")
    process.stdin.write(wire.json_frame({"path": str(path), **{name: getattr(settings, name) for name in names}}))
    await process.stdin.drain()
    return json.loads(await wire.receive(process.stdout))


async def _reply(stream: asyncio.StreamReader) -> wire.Reply:
    return wire.Reply(dict(json.loads(await wire.receive(stream))), await wire.receive(stream))


async def _end(process: Process, patience: float = 0.0) -> None:
    """Kill a process with its whole group, and collect it; one that is ending already gets the time to tell how."""
    if patience:
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), patience)
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def how_it_ended(process: Process) -> str:
    """An exit code in words."""
    code = process.returncode
    if code == limits.OUT_OF_MEMORY:
        return "out of memory"
    if code is not None and code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended with code {code}"
