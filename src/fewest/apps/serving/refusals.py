"""Requests that get no answer: one shape for every error; and bodies, counted while they come in."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterable, Mapping

from fewest.errors import FewestError

PARTS = ("what", "where", "why", "do")


class RefusedError(FewestError):
    """A request that gets no answer, and what its client reads instead.

    What is wrong, in which part of the request, for what reason, what helps; and seconds after which to ask again.
    """

    def __init__(
        self, status: int, what: str, where: str, why: str, do: str, *,
        retry_after: float | None = None, headers: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(f"{where}: {what} ({why})", do)
        self.status = status
        self.parts = dict(zip(PARTS, (what, where, why, do), strict=True))
        self.retry_after = retry_after
        self.headers = headers or {}

    @classmethod
    def from_body(cls, status: int, body: bytes) -> RefusedError:
        """A refusal that a worker wrote as JSON."""
        content = json.loads(body)["error"]
        return cls(status, *(str(content.get(part, "")) for part in PARTS))

    def body(self, **more: str) -> bytes:
        """The error as JSON."""
        return json.dumps({"error": {**self.parts, **more}}).encode()

    def response(self, request_id: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the response."""
        headers = {"content-type": "application/json", **{name.lower(): text for name, text in self.headers.items()}}
        if self.retry_after is not None:
            headers["retry-after"] = str(max(1, math.ceil(self.retry_after)))
        return self.status, headers, self.body(request_id=request_id)


def check_headers(headers: Mapping[str, str], limit: int) -> None:
    """Refuse what need not be read at all: the wrong type, and what declares itself as too large."""
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json" or headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusedError(
            415, "the body is not declared as JSON", "header Content-Type",
            "only plain application/json is read", "send Content-Type: application/json, not compressed",
        )  # fmt: skip
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and len(length) < 20 and int(length) > limit:
        raise _too_large(limit)


async def read_body(chunks: AsyncIterable[bytes], limit: int, seconds: float) -> bytes:
    """The whole body; 413 as soon as it passes the limit in bytes, 408 when it takes too long."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for chunk in chunks:
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                parts.append(chunk)
    except TimeoutError:
        why = f"it took more than {seconds:g} seconds"
        raise RefusedError(408, "the body did not arrive", "body", why, "send it faster") from None
    return b"".join(parts)


def _too_large(limit: int) -> RefusedError:
    """413; the connection is closed, because the rest of the body is not read."""
    return RefusedError(
        413, "the body is too large", "body", f"the limit is {limit:,} bytes", "send fewer instances at once",
        headers={"Connection": "close"},
    )  # fmt: skip
