"""Clients that mean harm by being slow, and one that asks beside them."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

BODY = json.dumps({"instances": [{"debt": 90, "age": 50, "rate": 1}]}).encode()


def head(key: str, length: int = len(BODY), verb: str = "predict") -> bytes:
    """The head of a request for the model `a`."""
    return (
        f"POST /v1/models/a:{verb} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def idle(port: int, count: int) -> list[socket.socket]:
    """Connections that send nothing, or half a head."""
    made = []
    for number in range(count):
        connection = socket.create_connection(("127.0.0.1", port), timeout=10)
        with suppress(OSError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" if number % 2 else b"")
        made.append(connection)
    return made


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has closed it, whatever it sent before."""
    connection.setblocking(False)
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@dataclass
class Asked:
    """What a client met."""

    codes: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    @property
    def good(self) -> float:
        """Share of the requests with an answer within two seconds."""
        return sum(took <= 2 for took in self.seconds) / max(1, self.codes.total())


async def ask(port: int, key: str, asked: Asked) -> None:
    """One request over a connection of its own; 0 where there is no answer."""
    began = time.monotonic()
    code = 0
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, IndexError):
        async with asyncio.timeout(30):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(head(key) + BODY)
                code = int((await reader.readline()).split()[1])
            finally:
                writer.transport.abort()
    asked.codes[code] += 1
    if code == 200:
        asked.seconds.append(time.monotonic() - began)


async def beside(port: int, slow_key: str, key: str, *, seconds: float, slow_a_second: float, pause: float) -> Asked:
    """What one key meets while another sends bodies that never end."""
    asked = Asked()
    end = time.monotonic() + seconds

    async def stall() -> None:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(seconds):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(head(slow_key, 900_000) + b"{")
                    await reader.read()
                finally:
                    writer.transport.abort()

    async def attack() -> None:
        stalls = []
        while time.monotonic() < end:
            stalls.append(asyncio.create_task(stall()))
            # A burst within the key's limits, then a quarter of its rate.
            await asyncio.sleep(1 / slow_a_second if len(stalls) > 190 else 0.01)
        for one in stalls:
            one.cancel()
        await asyncio.gather(*stalls, return_exceptions=True)

    async def honest() -> None:
        while time.monotonic() < end:
            await ask(port, key, asked)
            await asyncio.sleep(pause)

    await asyncio.gather(attack(), honest())
    return asked
