"""A browser of a few lines: asks an ASGI application directly, and keeps cookies. No socket, no library."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    error: Exception | None = None

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Browser:
    """Asks one application; every header can be set, also those a real browser would not let a page set."""

    app: Any
    host: str
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, target: str, headers: Iterable[tuple[str, str]] = ()) -> Answer:
        return self.ask("GET", target, headers)

    def post(self, target: str, form: Mapping[str, str], headers: Iterable[tuple[str, str]] | None = None) -> Answer:
        own = [("origin", f"http://{self.host}")] if headers is None else list(headers)
        kind = ("content-type", "application/x-www-form-urlencoded")
        return self.ask("POST", target, [*own, kind], urlencode(form).encode())

    def follow(self, answer: Answer) -> Answer:
        assert 300 <= answer.status < 400, (answer.status, answer.text[:300])
        return self.get(answer.headers["location"])

    def ask(self, method: str, target: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b"") -> Answer:
        return asyncio.run(self.asked(method, target, headers, body))

    async def asked(
        self, method: str, target: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b""
    ) -> Answer:
        given = [(name.lower(), value) for name, value in headers]
        if all(name != "host" for name, _ in given):
            given.append(("host", self.host))
        if self.cookies and all(name != "cookie" for name, _ in given):
            given.append(("cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items())))
        path, _, query = target.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given],
            "client": ("127.0.0.1", 50000), "server": ("127.0.0.1", 8765),
        }  # fmt: skip
        answer = await _exchange(self.app, scope, body)
        for part in (value for name, value in answer.headers.items() if name == "set-cookie"):
            name, _, value = part.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer


async def _exchange(app: Any, scope: dict[str, Any], body: bytes) -> Answer:
    asked = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not asked:
            await asyncio.sleep(3600)  # the line stays open until the answer is whole
        return asked.pop()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    error = None
    try:
        await app(scope, receive, send)
    except Exception as raised:  # a server logs it; what was sent before is what a visitor sees
        if not sent:
            raise
        error = raised
    start = sent[0]
    headers = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], headers, b"".join(part.get("body", b"") for part in sent[1:]), error)
