"""Clients that send nothing, slowly, or twice: they are cut off, and nobody beside them notices."""

from __future__ import annotations

import asyncio
import http.client
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from running_service import KEY, Service
from slow_clients import BODY, Asked, ask, beside, head, idle, is_closed

from fewest.apps.serving.log import RATION

pytest.importorskip("uvicorn", reason='the service needs pip install "fewest[serve]"')

OTHER = "another"
MOST, HEAD = 30, 1.0


@pytest.fixture(scope="module")
def narrow(keys_file: Path) -> Iterator[Service]:
    """Two keys, few connections, little patience."""
    made = Service(
        ["a.fewest"], loader="serving_doubles:bad", keys=str(keys_file), connections=MOST, head_limit=HEAD,
        patience=2.0, time_limit=1.0, grace=0.5, rate=0,
    )  # fmt: skip
    yield made
    made.stop()


def all_closed_within(seconds: float, connections: list[socket.socket]) -> bool:
    until = time.monotonic() + seconds
    while not all(is_closed(one) for one in connections):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def met(port: int, key: str, requests: int) -> Asked:
    asked = Asked()

    async def run() -> None:
        for _ in range(requests):
            await ask(port, key, asked)

    asyncio.run(run())
    return asked


def test_idle_connections_keep_nobody_out_and_are_closed(narrow: Service) -> None:
    connections = idle(narrow.port, 2 * MOST)
    asked = met(narrow.port, OTHER, 5)
    assert (dict(asked.codes), asked.good) == ({200: 5}, 1.0)
    assert sum(is_closed(one) for one in connections) >= MOST, "the oldest made room"
    assert all_closed_within(HEAD + 3, connections)
    for one in connections:
        one.close()


def test_a_head_that_trickles_in_ends_as_well(narrow: Service) -> None:
    with socket.create_connection(("127.0.0.1", narrow.port)) as line:
        began = time.monotonic()
        while not is_closed(line) and time.monotonic() < began + 10:
            line.setblocking(True)
            line.send(b"X-More: 1\r\n" if time.monotonic() > began + 0.1 else b"GET /healthz HTTP/1.1\r\n")
            time.sleep(0.1)
        assert HEAD - 0.1 < time.monotonic() - began < HEAD + 3


def test_a_body_that_trickles_in_gets_408_and_ends(narrow: Service) -> None:
    with socket.create_connection(("127.0.0.1", narrow.port), timeout=10) as line:
        line.sendall(head(KEY, 1000) + b"{")
        assert b" 408 " in line.recv(65_536)[:60]
        assert all_closed_within(10, [line])


@pytest.mark.parametrize("path", ["/healthz", "/v1/models"])
def test_the_body_of_a_request_that_needs_none_ends_too(narrow: Service, path: str) -> None:
    with socket.create_connection(("127.0.0.1", narrow.port), timeout=10) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n".encode())
        assert line.recv(12).startswith(b"HTTP/1.1 ")
        assert all_closed_within(10, [line])


def test_a_client_that_takes_no_answers_is_cut_off(narrow: Service) -> None:
    """The description is asked for again and again, and never read."""
    asked = f"GET /openapi.json HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        line.connect(("127.0.0.1", narrow.port))
        line.sendall(asked * 1000)
        narrow.event("connection cut")
        until = time.monotonic() + 15
        while time.monotonic() < until and not any("answer" in event.get("why", "") for event in list(narrow.lines)):
            time.sleep(0.05)
        assert any(event.get("why") == "waited too long for: answer" for event in narrow.lines)


def test_a_connection_may_rest_between_two_requests(narrow: Service) -> None:
    """Negative control: whoever behaves is not cut off."""
    with socket.create_connection(("127.0.0.1", narrow.port), timeout=10) as line:
        for _ in range(3):
            line.sendall(head(KEY) + BODY[:20])
            time.sleep(0.5)
            line.sendall(BODY[20:])
            answer = http.client.HTTPResponse(line)
            answer.begin()
            assert (answer.status, len(answer.read()) > 0) == (200, True)
            time.sleep(HEAD + 0.2)


def test_slow_bodies_of_one_key_leave_room_for_another(narrow: Service) -> None:
    """One key may have half of the connections; a place among the requests is taken once the body is there."""
    asked = asyncio.run(beside(narrow.port, KEY, OTHER, seconds=3, slow_a_second=25, pause=0.1))
    assert set(asked.codes) == {200}
    assert asked.good == 1.0


def test_a_key_that_has_too_many_requests_under_way_gets_429(narrow: Service) -> None:
    lines = [socket.create_connection(("127.0.0.1", narrow.port), timeout=10) for _ in range(MOST // 2)]
    for line in lines:
        line.sendall(head(KEY, 1000) + b"{")
    time.sleep(0.5)
    assert set(met(narrow.port, KEY, 1).codes) == {429}
    assert set(met(narrow.port, OTHER, 1).codes) == {200}
    for line in lines:
        line.close()
    time.sleep(0.3)
    assert set(met(narrow.port, KEY, 1).codes) == {200}


def test_a_client_that_goes_in_the_middle_of_its_body_is_not_a_failure_of_the_service(narrow: Service) -> None:
    with socket.create_connection(("127.0.0.1", narrow.port), timeout=10) as line:
        line.sendall(head(KEY, 1000) + b"{")
        time.sleep(0.2)
    until = time.monotonic() + 10
    while not any(event.get("status") == 499 for event in list(narrow.lines)) and time.monotonic() < until:
        time.sleep(0.05)
    codes = {event["status"] for event in narrow.lines if event["event"] == "request"}
    assert 499 in codes
    assert 500 not in codes


def raw(port: int, text: str) -> tuple[bytes, bool]:
    """The answer to a request as written, and whether the connection was closed after it."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.sendall(text.replace("\n", "\r\n").encode())
        answer = line.recv(65_536)
        return answer, all_closed_within(2, [line])


ASK = f"POST /v1/models/a:predict HTTP/1.1\nHost: x\nAuthorization: Bearer {KEY}\nContent-Type: application/json\n"


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (f"Content-Length: 4\nTransfer-Encoding: chunked\n\n{len(BODY):x}\n{BODY.decode()}\n0\n\n", b" 400 "),
        (f"Content-Length: {len(BODY)}\nContent-Length: 4\n\n{BODY.decode()}", b" 400 "),
    ],
)
def test_two_lengths_are_refused_and_the_connection_is_closed(narrow: Service, more: str, status: bytes) -> None:
    answer, closed = raw(narrow.port, ASK + more)
    assert status in answer[:60]
    assert answer.count(b"HTTP/1.1") == 1
    assert closed


def test_one_length_is_taken_and_the_connection_stays(narrow: Service) -> None:
    """Negative control of the test above."""
    for more in (
        f"Transfer-Encoding: chunked\n\n{len(BODY):x}\n{BODY.decode()}\n0\n\n",
        f"Content-Length: {len(BODY)}\n\n{BODY.decode()}",
    ):
        answer, closed = raw(narrow.port, ASK + more)
        assert b" 200 " in answer[:60]
        assert not closed


@pytest.mark.parametrize("second", [KEY, OTHER, "wrong"])
def test_two_keys_are_none(narrow: Service, second: str) -> None:
    answer, _ = raw(
        narrow.port,
        f"GET /v1/models HTTP/1.1\nHost: x\nAuthorization: Bearer {KEY}\nAuthorization: Bearer {second}\n\n",
    )
    assert b" 401 " in answer[:60]


def test_names_and_load_are_for_those_with_a_key(narrow: Service) -> None:
    for path in ("/healthz", "/healthz/ready"):
        assert set(narrow.client.get(path, headers={"Authorization": ""}).json()) == {"status"}
        assert set(narrow.client.get(path, headers={"Authorization": "Bearer no"}).json()) == {"status"}
        assert set(narrow.client.get(path).json()["models"]) == {"a"}


def test_without_keys_names_are_for_this_machine(start: Callable[..., Service]) -> None:
    service = start("a.fewest", loader="serving_doubles:bad")
    assert set(service.client.get("/healthz").json()) == {"status", "models"}
    assert set(service.client.get("/healthz", headers={"Host": "evil.example"}).json()) == {"status"}


@pytest.mark.slow
@pytest.mark.parametrize(("soft", "hard", "fit"), [(64, 1024, 480), (64, 20_000, 1000), (64, 65, 1)])
def test_the_limit_on_files_is_raised_and_connections_fit_into_it(soft: int, hard: int, fit: int) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < hard:
        pytest.skip("this system allows fewer files")
    code = (
        "import resource as r, sys; from fewest.apps.serving.connections import fitting; "
        f"r.setrlimit(r.RLIMIT_NOFILE, ({soft}, {hard})); print(fitting(1000), r.getrlimit(r.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(fit), str(hard)]


@pytest.fixture
def wide(start: Callable[..., Service], keys_file: Path) -> Any:
    return start("a.fewest", loader="serving_doubles:bad", keys=str(keys_file), workers=1)


@pytest.mark.slow
def test_a_thousand_idle_connections_and_25_slow_bodies_a_second(wide: Service) -> None:
    """With the settings of the command; the idle connections come again as soon as they are closed."""
    stop = threading.Event()

    def keep_idle() -> None:
        connections = idle(wide.port, 1050)
        while not stop.wait(1.0):
            lost = {one for one in connections if is_closed(one)}
            for one in lost:
                one.close()
            connections = [one for one in connections if one not in lost] + idle(wide.port, len(lost))
        for one in connections:
            one.close()

    thread = threading.Thread(target=keep_idle)
    thread.start()
    time.sleep(2)
    asked = asyncio.run(beside(wide.port, KEY, OTHER, seconds=60, slow_a_second=25, pause=0.2))
    stop.set()
    thread.join()
    written = sum(event["event"] in ("connection cut", "server") for event in wide.lines)
    print(dict(asked.codes), f"slowest {max(asked.seconds):.2f} s, good {asked.good:.4f}, {written} lines in the log")
    assert asked.codes[200] / asked.codes.total() >= 0.99
    assert asked.good >= 0.99
    assert written < 2 * RATION * 65
