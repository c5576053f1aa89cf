"""Connections, counted and timed: whoever sends nothing, or does not take an answer, is cut off.

It is the client's turn while a head or a body is due, or an answer waits to be taken; each turn has an end that bytes
which trickle in do not move. Where there are too many connections, the one whose turn has lasted longest makes room.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from fewest.apps.serving.pool import EventLog
from fewest.apps.serving.settings import ServiceSettings

OWN_FILES = 64  # files a service needs beside its connections
ANSWERED = 2.0  # seconds in which a body that is late gets its 408 before the connection is cut
IDLE = 5  # seconds that a connection may rest between two requests


class Connections:
    """The connections of a service: how many there may be, and those whose clients are to do something."""

    def __init__(self, settings: ServiceSettings, log: EventLog) -> None:
        self.most = settings.connections
        self.log = log
        patience = settings.patience
        self.seconds = {
            "head": settings.head_limit, "body": patience + ANSWERED, "answer": patience,
            "next request": max(patience, IDLE + settings.head_limit),
        }  # fmt: skip
        self.waiting: dict[TimedConnection, None] = {}  # the longest wait first

    def make(self, **given: Any) -> TimedConnection:
        """A connection, as uvicorn asks for it."""
        return TimedConnection(self, **given)

    def make_room(self, present: int) -> None:
        """Cut off the one that is waited for longest, where there are too many."""
        if present > self.most and self.waiting:
            next(iter(self.waiting)).cut("too many connections")


class TimedConnection(H11Protocol):
    """A connection that ends when its client lets the service wait."""

    def __init__(self, among: Connections, **given: Any) -> None:
        super().__init__(**given)
        self.among = among
        self._turn: tuple[object, str] | None = None
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it, and wait for the first head."""
        super().connection_made(transport)
        self._wind()
        self.among.make_room(len(self.connections))

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        super().data_received(data)
        self._wind()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._wind()

    def pause_writing(self) -> None:
        """Wait until the answer is taken."""
        super().pause_writing()
        self._wind()

    def resume_writing(self) -> None:
        """Go on, now that it is."""
        super().resume_writing()
        self._wind()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._stop()
        super().connection_lost(exc)

    def cut(self, why: str) -> None:
        """End it at once, whatever is still to be sent."""
        self.among.log("connection cut", rationed=True, why=why)
        self._stop()
        self.transport.abort()

    def _due(self) -> str | None:
        """What the client is to do; None while it is the service's turn."""
        if self.flow.write_paused:
            return "answer"
        if self.cycle is None:
            return "head"
        if self.conn.their_state is h11.SEND_BODY:
            return "body"
        return "next request" if self.cycle.response_complete else None

    def _wind(self) -> None:
        due = self._due()
        turn = None if due is None or self.transport.is_closing() else (self.cycle, due)
        if turn == self._turn and turn is not None:
            return
        self._stop()
        if turn is not None and due is not None:
            self._turn = turn
            self.among.waiting[self] = None
            self._clock = self.loop.call_later(self.among.seconds[due], self.cut, f"waited too long for: {due}")

    def _stop(self) -> None:
        self._turn = None
        self.among.waiting.pop(self, None)
        if self._clock is not None:
            self._clock.cancel()


def fitting(wanted: int) -> int:
    """How many of the connections wanted the system can hold, once its limit on open files is raised as far as it goes.

    Half of the files are left for connections that are being taken or closed.
    """
    with suppress(ImportError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        if soft != resource.RLIM_INFINITY:
            return max(1, min(wanted, (soft - OWN_FILES) // 2))
    return wanted
