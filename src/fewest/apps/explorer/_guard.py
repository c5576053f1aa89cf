"""Who may ask, and what every answer carries: one small piece of ASGI around the whole explorer.

The order matters: a foreign name is refused before anything else is looked at, a write from another page before the key
is, and only then does the request reach a page.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
READS = ("GET", "HEAD")
METHODS = (*READS, "POST")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
REFUSALS = {
    400: "This address is not one the explorer answers to. Open the address that `fewest explore` printed.",
    401: "The key is missing, wrong or used. An address that `fewest explore` printed lets in one browser, once: open "
    "the whole of the newest one, with its token.",
    403: "This came from another page. Changes are only taken from the explorer's own pages.",
    405: "The explorer only reads pages (GET) and takes forms (POST).",
}


def new_token() -> str:
    """A key nobody can guess."""
    return secrets.token_urlsafe(32)


def known_hosts(port: int, extra: Iterable[str] = ()) -> frozenset[str]:
    """Values of the Host header that are answered: this machine under its own names, and what the operator adds.

    A name without a port stands for the port that is listened on, and for none (behind a proxy).
    """
    names = {f"{name}:{port}" for name in LOOPBACK}
    for name in extra:
        lowered = name.lower()
        bare = ":" not in lowered.rpartition("]")[2]
        names |= {lowered, f"{lowered}:{port}"} if bare else {lowered}
    return frozenset(names)


@dataclass
class Guard:
    """Lets through whoever calls this machine by its name and has the key; refuses the rest in plain words.

    ``hosts`` are as `known_hosts` makes them, ``token`` is the key in the printed address. It is exchanged once for a
    cookie that holds ``session``, and ``renew`` makes the next one: addresses stay in histories and process lists. The
    cookie's name holds the port, since cookies do not know ports apart.
    """

    app: ASGIApp
    hosts: frozenset[str]
    token: str
    cookie: str = "fewest"
    renew: Callable[[], str] = new_token
    session: str = field(default_factory=new_token, repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError("the explorer speaks HTTP only")
        guarded = _with_headers(send)
        status = self._refusal(scope)
        if status:
            await _say(guarded, status)
        elif not self._has_cookie(scope):
            if scope["method"] == "GET" and self._has_token(scope):
                self.token = self.renew()
                await _move(scope, guarded, f"{self.cookie}={self.session}; Path=/; HttpOnly; SameSite=Strict")
            else:
                await _say(guarded, 401)
        elif scope["method"] == "GET" and "token" in dict(_query(scope)):
            await _move(scope, guarded)
        else:
            await self.app(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> int:
        """Why nobody is answered, whoever they are; 0 where nothing speaks against it."""
        host = _only(scope, "host")
        if host is None or host.lower() not in self.hosts:
            return 400
        if scope["method"] not in METHODS:
            return 405
        if scope["method"] not in READS and not _from_own_page(scope, host):
            return 403
        return 0

    def _has_token(self, scope: Scope) -> bool:
        given = dict(_query(scope)).get("token")
        return given is not None and secrets.compare_digest(given.encode(), self.token.encode())

    def _has_cookie(self, scope: Scope) -> bool:
        try:
            jar = SimpleCookie(_only(scope, "cookie") or "")
        except CookieError:
            return False
        kept = jar.get(self.cookie)
        return kept is not None and secrets.compare_digest(kept.value.encode(), self.session.encode())


async def _move(scope: Scope, send: Send, cookie: str = "") -> None:
    """Lead to the address that was asked for, on this machine and without the key."""
    rest = urlencode([(name, value) for name, value in _query(scope) if name != "token"])
    # One slash only: two would be read as the name of another machine.
    place = "/" + str(scope.get("raw_path", b"/"), "latin-1").lstrip("/\\")
    place += f"?{rest}" if rest else ""
    kept = {"set-cookie": cookie} if cookie else {}
    if _only(scope, "sec-fetch-site") in (None, "none", "same-origin"):
        await _answer(send, 303, b"", {"location": place, **kept})
        return
    # Another page led here, perhaps our own file: a strict cookie is sent only where this page leads on.
    page = f'<!doctype html><title>fewest</title><meta http-equiv="refresh" content="0;url={escape(place)}">\n'
    await _answer(send, 200, page.encode(), {"content-type": "text/html; charset=utf-8", **kept})


def _only(scope: Scope, name: str) -> str | None:
    """The value of a request header; None where it is absent or stands twice."""
    found = [value for key, value in scope["headers"] if key.lower() == name.encode()]
    return found[0].decode("latin-1").strip() if len(found) == 1 else None


def _from_own_page(scope: Scope, host: str) -> bool:
    """Whether a form was sent by a page of the explorer.

    Under `no-referrer` browsers send ``Origin: null`` with forms, and say in Sec-Fetch-Site where they come from.
    """
    origin, site = _only(scope, "origin"), _only(scope, "sec-fetch-site")
    if site is not None and site != "same-origin":
        return False
    if origin in (None, "null"):
        return site == "same-origin"
    return origin in (f"http://{host}", f"https://{host}")


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)


def _with_headers(send: Send) -> Send:
    """Send, with what every answer carries."""

    async def guarded(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return guarded


async def _say(send: Send, status: int) -> None:
    page = f'<!doctype html><html lang="en"><title>fewest</title><h1>Refused</h1><p>{REFUSALS[status]}</p></html>\n'
    extra = {"www-authenticate": 'Token realm="fewest"'} if status == 401 else {}
    await _answer(send, status, page.encode(), {"content-type": "text/html; charset=utf-8", **extra})


async def _answer(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    listed = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})
