"""Messages between the server and a worker: bytes with their length before them; JSON inside, never pickle."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import IO, Any, NamedTuple

LENGTH = struct.Struct(">I")
LARGEST = 256_000_000
OUT_OF_MEMORY = 12  # exit code of a worker that ran out of it


class Reply(NamedTuple):
    """What a worker says to one request: a small head for the server, and the body (JSON) for the client.

    The head holds ``status`` with figures for logs and metrics, or ``again`` where the request should be asked alone.
    """

    head: dict[str, Any]
    body: bytes


def frame(content: bytes) -> bytes:
    """Bytes with their length before them."""
    return LENGTH.pack(len(content)) + content


def json_frame(content: dict[str, Any]) -> bytes:
    """A JSON object as a frame."""
    return frame(json.dumps(content, allow_nan=False).encode())


def read(stream: IO[bytes]) -> bytes:
    """The next frame; EOFError when the other side has gone."""
    (length,) = LENGTH.unpack(_exactly(stream, LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content


async def receive(stream: asyncio.StreamReader) -> bytes:
    """The next frame, from the server's side; ``IncompleteReadError`` when the worker has gone."""
    (length,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
    if length > LARGEST:
        raise asyncio.IncompleteReadError(b"", length)
    return await stream.readexactly(length)
