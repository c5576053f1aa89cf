"""What every request passes: an id, the key, the rate, and a line in the log when it is over.

Keys are known by their sums; each has a token bucket.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, Metric, generate_latest
from prometheus_client import Counter as Count
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.responses import Response

from fewest.apps.serving.pool import EventLog, WorkerPool
from fewest.apps.serving.refusals import RefusedError
from fewest.apps.serving.settings import LOOPBACK
from fewest.errors import UsageError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
OPEN = "/healthz"
DRAINED, DRAINING = 4_000_000, 1.0  # bytes and seconds
GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
LINE = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,64}):(?P<sum>[0-9a-fA-F]{64})")
MAKE = "write name:sha256, with the sum from: printf %s KEY | sha256sum"
HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


@dataclass(frozen=True)
class Keys:
    """API keys: name -> SHA-256 of the key, in hexadecimal; the keys themselves are nowhere."""

    sums: dict[str, str]

    def who(self, key: str) -> str | None:
        """Name of the one who holds a key; every line is looked at, in constant time."""
        shown = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        found = None
        for name, known in self.sums.items():
            if hmac.compare_digest(shown, known):
                found = name
        return found


def read_keys(path: Path) -> Keys:
    """Keys of a file, ``name:sha256`` per line; empty lines and lines that begin with # are left out."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the keys file {path.name} cannot be read: {type(error).__name__}", do=MAKE) from error
    sums: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = LINE.fullmatch(text)
        if match is None:
            # The line is not shown: it may be a key that was written there by mistake.
            raise UsageError(f"line {number} of {path.name} is not of the form name:sha256", do=MAKE)
        if match["name"] in sums:
            raise UsageError(f'line {number} of {path.name}: "{match["name"]}" stands there already', do="rename one")
        sums[match["name"]] = match["sum"].lower()
    if not sums:
        raise UsageError(f"{path.name} holds no key", do=MAKE)
    return Keys(sums)


class Buckets:
    """Token buckets: each key may send ``rate`` requests a second (0: no limit), and ``burst`` at once after a pause.

    ``clock`` gives seconds, never backwards.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.burst = max(1.0, burst)
        self.clock = clock
        self._held: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> float:
        """Take a token. 0 if there was one; else the seconds until there will be, and nothing is taken."""
        if self.rate == 0:
            return 0.0
        now = self.clock()
        tokens, before = self._held.get(name, (self.burst, now))
        tokens = min(self.burst, tokens + (now - before) * self.rate)
        if tokens < 1:
            self._held[name] = tokens, now
            return (1 - tokens) / self.rate
        self._held[name] = tokens - 1, now
        return 0.0


class Crowd:
    """Requests in hand, from their head to their answer: each key may have up to ``most``, so others find room."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._inside: Counter[str] = Counter()

    @contextmanager
    def joined(self, name: str) -> Iterator[None]:
        """Be one of them; 429 where there are enough."""
        if self._inside[name] >= self.most:
            raise RefusedError(
                429, "too many requests at once", "key", f"this key has {self.most} under way",
                "wait for their answers, then ask again", retry_after=1,
            )  # fmt: skip
        self._inside[name] += 1
        try:
            yield
        finally:
            self._inside[name] -= 1


class Metrics(Collector):
    """Counts and times for Prometheus in a registry of their own; those of the workers are read when asked for."""

    def __init__(self, pools: Mapping[str, WorkerPool]) -> None:
        self.pools = pools
        self.registry = CollectorRegistry()
        make: dict[str, Any] = {"registry": self.registry}
        self.requests = Count("fewest_requests", "Requests.", ("method", "path", "status"), **make)
        self.answers = Count("fewest_answers", "Cases answered.", ("model", "status"), **make)
        make["buckets"] = BOUNDS
        self.request_seconds = Histogram("fewest_request_seconds", "Time of a request.", ("path",), **make)
        self.wait_seconds = Histogram("fewest_wait_seconds", "Time a request waited for a worker.", ("model",), **make)

    def collect(self) -> Iterator[Metric]:
        """Everything but the times at which counting began."""
        for metric in self.registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric
        for name, what, part in (
            ("fewest_workers_ready", "Workers that hold the model.", "ready"),
            ("fewest_workers_busy", "Workers that are answering.", "busy"),
            ("fewest_requests_inside", "Requests that wait or are answered.", "inside"),
        ):
            gauge = GaugeMetricFamily(name, what, labels=["model"])
            for model, pool in self.pools.items():
                gauge.add_metric([model], getattr(pool, part))
            yield gauge
        lost = GaugeMetricFamily("fewest_workers_lost", "Workers that were lost.", labels=["model", "why"])
        for model, pool in self.pools.items():
            for why, count in pool.lost.items():
                lost.add_metric([model, why], count)
        yield lost

    def text(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self)


@dataclass
class Counted:
    """Passes a request's body on, and knows whether all of it has come.

    A connection that is closed with a body half read is cut off, and the client may never see why. So what is left of
    a refused body is thrown away first, up to a size and for a moment.
    """

    receive: Receive
    whole: bool = False

    async def __call__(self) -> Message:
        """The next message from the client."""
        message = await self.receive()
        self.whole = self.whole or not message.get("more_body", False)
        return message

    async def drain(self) -> None:
        """Throw away what is left."""
        left = DRAINED
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAINING):
                while not self.whole and left > 0:
                    left -= len((await self()).get("body", b""))


@dataclass(frozen=True)
class Door:
    """Wraps the application; without keys everybody on this machine may ask."""

    app: App
    keys: Keys | None
    buckets: Buckets
    crowd: Crowd
    metrics: Metrics
    log: EventLog

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.monotonic()
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        wished = headers.get("x-request-id", "")
        request_id = wished if GOOD_ID.fullmatch(wished) else uuid.uuid4().hex
        # The handlers add what they know; it ends up in the log.
        notes: dict[str, Any] = {"id": request_id}
        scope.setdefault("state", {})["notes"] = notes
        status = 0
        body = Counted(receive)

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status >= 400:
                    await body.drain()
                extra = [*HEADERS, (b"x-request-id", request_id.encode())]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        try:
            with self._let_in(scope, headers, notes):
                await self.app(scope, body, send_marked)
        except RefusedError as refusal:
            refused, headers, text = refusal.response(request_id)
            await Response(text, refused, headers)(scope, body, send_marked)
        except Exception as error:
            # The application has answered already; what went wrong is for the operator.
            notes["failure"] = type(error).__name__
        finally:
            self._note(scope, status or 499, time.monotonic() - began, notes)

    @contextmanager
    def _let_in(self, scope: Scope, headers: dict[str, str], notes: dict[str, Any]) -> Iterator[None]:
        """Ask for the key and count the request, except for a look at the health."""
        if "content-length" in headers and "transfer-encoding" in headers:
            raise RefusedError(
                400, "the body has two lengths", "headers", "Content-Length and Transfer-Encoding contradict",
                "send one of them", headers={"Connection": "close"},
            )  # fmt: skip
        sent = [key for key, _ in scope["headers"]].count(b"authorization")
        if is_open(scope["path"]):
            with suppress(RefusedError):
                notes["key"] = self._who(headers, sent)
            yield
            return
        notes["key"] = self._who(headers, sent)
        wait = self.buckets.take(notes["key"])
        if wait > 0:
            raise RefusedError(
                429, "too many requests", "key", f"this key may send {self.buckets.rate:g} a second",
                "wait, then ask again", retry_after=wait,
            )  # fmt: skip
        with self.crowd.joined(notes["key"]):
            yield

    def _who(self, headers: dict[str, str], sent: int) -> str:
        """Name of the one who asks, from the key that was sent once."""
        if self.keys is None:
            # A web page could reach this machine by a name of its own that leads here.
            host = headers.get("host", "")
            name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
            if name.strip("[]").lower() in LOOPBACK:
                return "anonymous"
            raise RefusedError(
                403, "this host name is not served", "header Host", "without keys only this machine may ask",
                "use http://127.0.0.1, or start the service with --keys",
            )  # fmt: skip
        scheme, _, key = headers.get("authorization", "").partition(" ")
        holder = self.keys.who(key.strip()) if scheme.lower() == "bearer" and sent == 1 else None
        if holder is None:
            raise RefusedError(
                401, "there is no valid key", "header Authorization", "every request but /healthz needs one, once",
                "send Authorization: Bearer KEY", headers={"WWW-Authenticate": "Bearer"},
            )  # fmt: skip
        return holder

    def _note(self, scope: Scope, status: int, seconds: float, notes: dict[str, Any]) -> None:
        # The path as declared, not as sent: what strangers write belongs neither into logs nor into labels.
        path = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in ("GET", "POST") else "other"
        self.metrics.requests.labels(method, path, status).inc()
        self.metrics.request_seconds.labels(path).observe(seconds)
        # What nobody was let in for, and health, can be asked without end; the rest has the rate of its key.
        rationed = "key" not in notes or status == 429 or is_open(scope["path"])
        self.log(
            "request", rationed=rationed, **notes, method=method, path=path, status=status, seconds=round(seconds, 6)
        )


def is_open(path: str) -> bool:
    """Whether a path needs no key."""
    return path == OPEN or path.startswith(f"{OPEN}/")
