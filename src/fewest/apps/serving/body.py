"""Request bodies: counted while they come in, whatever their headers say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Mapping

from fewest.apps.serving.refusals import RefusedError


def check_headers(headers: Mapping[str, str], limit: int) -> None:
    """Refuse what need not be read at all: the wrong type, and what says of itself that it is too large.

    Examples
    --------
    >>> check_headers({"content-type": "application/json", "content-length": "20"}, limit=10)
    Traceback (most recent call last):
    ...
    fewest.apps.serving.refusals.RefusedError: body: the body is too large (the limit is 10 bytes)
      Try: send fewer instances at once
    """
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json" or headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusedError(
            415, "the body is not declared as JSON", "header Content-Type",
            "only plain application/json is read", "send Content-Type: application/json, not compressed",
        )  # fmt: skip
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and len(length) < 20 and int(length) > limit:
        raise too_large(limit)


async def read_body(chunks: AsyncIterable[bytes], limit: int, seconds: float) -> bytes:
    """The whole body; 413 as soon as it passes the limit, 408 when it takes too long.

    Parameters
    ----------
    chunks : async iterable of bytes
    limit : int
        Bytes.
    seconds : float
    """
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for chunk in chunks:
                size += len(chunk)
                if size > limit:
                    raise too_large(limit)
                parts.append(chunk)
    except TimeoutError:
        raise RefusedError(
            408, "the body did not arrive", "body", f"it took more than {seconds:g} seconds", "send it faster"
        ) from None
    return b"".join(parts)


def too_large(limit: int) -> RefusedError:
    """413; the connection is closed, because the rest of the body is not read."""
    return RefusedError(
        413, "the body is too large", "body", f"the limit is {limit:,} bytes", "send fewer instances at once",
        headers={"Connection": "close"},
    )  # fmt: skip
