"""Who is answered: this machine by its own names, with the key, from the explorer's own pages."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason='pip install "fewest[explore]"')
pytest.importorskip("uvicorn", reason='pip install "fewest[explore]"')
pytest.importorskip("pyarrow", reason='pip install "fewest[runs]"')


from asgi_asking import Browser
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from fewest.apps.explorer._guard import Guard, known_hosts, new_token

PORT = 8765
HOST = f"127.0.0.1:{PORT}"
HOME = f"http://{HOST}"
TOKEN = "the-right-token"
FOREIGN = [
    "evil.example",
    f"evil.example:{PORT}",
    f"127.0.0.1.evil.example:{PORT}",
    f"localhost.evil.example:{PORT}",
    "127.0.0.1",
    "127.0.0.1:9999",
    f"0.0.0.0:{PORT}",
    f"[::]:{PORT}",
    f"127.0.0.1@evil.example:{PORT}",
    f"127.1:{PORT}",
    f"2130706433:{PORT}",
    f"localhost.:{PORT}",
    f"127.0.0.1:{PORT}.evil.example",
    "",
]


async def shown(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"shown {request.url.path}")


def client(extra: tuple[str, ...] = (), token: str | None = TOKEN) -> Browser:
    app = Starlette(routes=[Route("/{rest:path}", shown, methods=["GET", "POST"])])
    guard = Guard(app, known_hosts(PORT, extra), TOKEN, cookie=f"fewest-{PORT}")
    made = Browser(guard, HOST)
    if token is not None:
        made.get(f"/?token={token}")
    return made


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_host_gets_400(host: str) -> None:
    answer = client().get("/", headers=[("host", host)])
    assert answer.status == 400
    assert "shown" not in answer.text


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"[::1]:{PORT}", f"LocalHost:{PORT}"])
def test_this_machine_is_answered_by_its_names(host: str) -> None:
    """Negative control of the test above."""
    assert client().get("/", headers=[("host", host)]).status == 200


def test_two_host_headers_get_400() -> None:
    answer = client().get("/", headers=[("host", f"127.0.0.1:{PORT}"), ("host", "evil.example")])
    assert answer.status == 400


def test_a_name_the_operator_adds_is_answered() -> None:
    made = client(("risk.example",), token=None)
    for host in ("risk.example", f"risk.example:{PORT}"):
        assert made.get("/", headers=[("host", host)]).status == 401
    assert made.get("/", [("host", "other.example")]).status == 400


@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", f"?token={TOKEN}x", "?TOKEN=" + TOKEN, "?token=%FF"])
def test_no_or_a_wrong_token_gets_401(query: str) -> None:
    answer = client(token=None).get(f"/{query}")
    assert answer.status == 401
    assert "set-cookie" not in answer.headers
    assert "shown" not in answer.text


@pytest.mark.parametrize("cookie", ["fewest-8765=wrong", "fewest-8765=", "other=x", '"', "fewest-8765=the-right-token"])
def test_a_wrong_cookie_gets_401(cookie: str) -> None:
    assert client(token=None).get("/", headers=[("cookie", cookie)]).status == 401


def test_the_token_is_exchanged_for_a_strict_cookie_and_leaves_the_address() -> None:
    made = client(token=None)
    answer = made.get(f"/decision/3?a=1&token={TOKEN}")
    assert answer.status == 303
    assert answer.headers["location"] == "/decision/3?a=1"
    cookie = answer.headers["set-cookie"].lower()
    assert TOKEN not in cookie
    for part in ("httponly", "samesite=strict", "path=/", f"fewest-{PORT}="):
        assert part in cookie
    assert made.get("/decision/3?a=1").text == "shown /decision/3"


def test_a_token_lets_in_one_browser_once_and_the_next_one_another() -> None:
    first = client()
    guard = first.app
    second = Browser(guard, HOST)
    assert second.get(f"/?token={TOKEN}").status == 401
    assert "set-cookie" not in second.get(f"/?token={TOKEN}").headers
    assert guard.token != TOKEN
    assert second.get(f"/?token={guard.token}").status == 303
    assert second.get("/").status == first.get("/").status == 200


def test_whoever_is_let_in_may_open_the_old_address_again() -> None:
    made = client()
    kept = made.app.token
    answer = made.get(f"/decision/3?token={TOKEN}")
    assert (answer.status, answer.headers["location"]) == (303, "/decision/3")
    assert "set-cookie" not in answer.headers
    assert made.app.token == kept


def test_a_look_at_the_headers_does_not_use_the_token_up() -> None:
    made = client(token=None)
    assert made.ask("HEAD", f"/?token={TOKEN}").status == 401
    assert made.get(f"/?token={TOKEN}").status == 303


def test_from_another_page_it_is_a_page_of_ours_that_leads_on() -> None:
    """A strict cookie is not sent where another page, such as the private file, leads."""
    answer = client(token=None).get(f"/a?b=%22%3E&token={TOKEN}", [("sec-fetch-site", "cross-site")])
    assert answer.status == 200
    assert "samesite=strict" in answer.headers["set-cookie"].lower()
    assert 'content="0;url=/a?b=%22%3E"' in answer.text
    assert TOKEN not in answer.text


def test_the_exchange_never_leads_to_another_machine() -> None:
    made = client(token=None)
    for path in ("//evil.example/x", "/\\evil.example", "///evil.example"):
        place = made.get(f"{path}?token={TOKEN}").headers["location"]
        assert place.startswith("/")
        assert not place.startswith(("//", "/\\"))


CROSS = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "null", "sec-fetch-site": "cross-site"},
    {"origin": HOME, "sec-fetch-site": "cross-site"},
    {"origin": HOME, "sec-fetch-site": "same-site"},
    {"origin": "http://127.0.0.1:9999", "sec-fetch-site": "same-origin"},
    {"origin": "http://localhost:8765"},
    {"sec-fetch-site": "none"},
    {},
]


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_a_write_from_another_page_gets_403(headers: dict[str, str]) -> None:
    answer = client().post("/references", {}, headers.items())
    assert answer.status == 403
    assert "shown" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [{"origin": HOME}, {"origin": "null", "sec-fetch-site": "same-origin"}, {"sec-fetch-site": "same-origin"}],
)
def test_a_write_from_its_own_page_is_taken(headers: dict[str, str]) -> None:
    """Negative control of the test above."""
    assert client().post("/references", {}, headers.items()).status == 200


def test_a_write_with_the_token_in_its_address_is_no_way_in() -> None:
    answer = client(token=None).post(f"/x?token={TOKEN}", {})
    assert answer.status == 401


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_get_405(method: str) -> None:
    answer = client().ask(method, "/", [("origin", "https://evil.example")])
    assert answer.status == 405


@pytest.mark.parametrize("path", ["/", "/nowhere"])
@pytest.mark.parametrize("token", [TOKEN, None])
def test_every_answer_carries_the_headers_and_none_of_cors(path: str, token: str | None) -> None:
    headers = client(token=token).get(path, [("origin", "https://evil.example")]).headers
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert not [name for name in headers if name.startswith("access-control")]


def test_tokens_are_long_and_differ() -> None:
    made = {new_token() for _ in range(50)}
    assert len(made) == 50
    assert min(len(token) for token in made) >= 43
