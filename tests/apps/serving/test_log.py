"""A log that cannot be written, or that strangers try to fill, changes nothing but itself."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from running_service import RUN

from fewest.apps.serving.log import RATION, Forward, Log


class Full(io.StringIO):
    """A disk without room, until there is."""

    room = False

    def write(self, text: str) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        return super().write(text)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_that_cannot_be_written_is_left_out_and_counted() -> None:
    stream = Full()
    log = Log(stream)
    for _ in range(3):
        log("worker lost", model="credit")
    stream.room = True
    log("worker lost", model="credit")
    log("worker lost", model="credit")
    assert [line.get("left_out") for line in lines(stream)] == [3, None]
    closed = io.StringIO()
    closed.close()
    Log(closed)("stopped")
    Log(stream)("odd", value={("not", "a name"): 1})


def test_what_anybody_can_cause_is_written_up_to_a_ration_and_the_rest_is_counted() -> None:
    stream = io.StringIO()
    now = [10.0]
    log = Log(stream, lambda: now[0])
    for _ in range(1000):
        log("request", rationed=True, status=401)
    log("worker lost")
    for _ in range(1000):
        log("request", status=200)
    now[0] += 1
    log("request", rationed=True, status=401)
    written = lines(stream)
    assert sum(line.get("status") == 401 for line in written) == RATION + 1
    assert sum(line.get("status") == 200 for line in written) == 1000, "these have the rate of a key"
    assert sum(line.get("left_out", 0) for line in written) == 1000 - RATION


def test_what_the_library_says_is_rationed() -> None:
    stream = io.StringIO()
    handler = Forward(Log(stream, lambda: 1.0))
    record = logging.LogRecord("asyncio", logging.ERROR, "", 0, "out of system resource", None, None)
    for _ in range(500):
        handler.handle(record)
    assert len(lines(stream)) == RATION


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_full_log_disk_changes_nothing_but_the_log() -> None:
    """A worker is lost meanwhile: it is replaced, and the service ends in order."""
    httpx = pytest.importorskip("httpx", reason="the tests of the service need httpx")
    pytest.importorskip("fastapi", reason='the service needs pip install "fewest[serve]"')
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    given = {"models": ["a.fewest"], "loader": "serving_doubles:bad", "rate": 0, "port": port}
    support = str(Path(__file__).parents[2] / "support")
    path = os.pathsep.join(filter(None, (support, os.environ.get("PYTHONPATH", ""))))
    script = RUN.replace("port=0, ", "")
    ask = {"instances": [{"debt": 90, "age": 50, "rate": 1}]}
    with (
        Path("/dev/full").open("w") as full,
        subprocess.Popen(
            [sys.executable, "-P", "-c", script, json.dumps(given)], stderr=full, env={**os.environ, "PYTHONPATH": path}
        ) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        try:
            deadline = time.monotonic() + 300
            while True:
                try:
                    assert client.get("/healthz/ready").status_code == 200
                    break
                except httpx.ConnectError:
                    assert time.monotonic() < deadline
                    assert process.poll() is None
                    time.sleep(0.1)
            listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            os.kill(int(listed.read_text()), signal.SIGKILL)
            codes = [client.post("/v1/models/a:predict", json=ask).status_code for _ in range(3)]
            assert codes == [200, 200, 200]
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
