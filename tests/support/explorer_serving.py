"""The explorer as a process of its own, asked by many at once, and what that costs."""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from fewest.runs import Run

PATHS = ("/", "/population", "/decision/{}", "/references", "/compare", "/tree", "/static/explorer.css", "/cases.csv")
SCRIPT = """
import sys, typer
from fewest.apps.cli._outlets import explore
app = typer.Typer()
app.command()(explore)
app(sys.argv[1:])
"""


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process of its own, and the address it printed."""
    command = [sys.executable, "-c", SCRIPT, *arguments, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield process, line.removeprefix("Open ").strip()
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)


def get(address: str, path: str = "", headers: dict[str, str] | None = None) -> http.client.HTTPResponse:
    parts = urlsplit(address)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    line.request("GET", path or f"{parts.path}?{parts.query}", headers=headers or {})
    answer = line.getresponse()
    answer.read()
    line.close()
    return answer


def used(pid: int) -> tuple[float, float]:
    """CPU seconds and megabytes of a process and its threads."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    resident = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return (int(ticks[11]) + int(ticks[12])) / 100, int(resident.split()[1]) / 1000


def visit(address: str, cookie: str, requests: int, rows: int, wrong: list[str]) -> None:
    """One user: so many requests over one line."""
    parts = urlsplit(address)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        for k in range(requests):
            path = PATHS[k % len(PATHS)].format((7 * k) % rows)
            line.request("GET", path, headers={"cookie": cookie})
            answer = line.getresponse()
            body = answer.read()
            if answer.status != 200 or not body:
                wrong.append(f"{path}: {answer.status}")
    except OSError as error:
        wrong.append(repr(error))
    finally:
        line.close()


def load(run: Path, users: int, requests: int) -> dict[str, float]:
    """Start the command, let users ask at once, and measure; wrong answers count as errors."""
    rows = Run.open(run).rows
    with started(str(run)) as (process, address):
        ready, _ = used(process.pid)
        cookie = (get(address).getheader("set-cookie") or "").partition(";")[0]
        wrong: list[str] = []
        began = time.monotonic()
        n_jobs = [threading.Thread(target=visit, args=(address, cookie, requests, rows, wrong)) for _ in range(users)]
        for thread in n_jobs:
            thread.start()
        for thread in n_jobs:
            thread.join()
        cpu, peak = used(process.pid)
        seconds = time.monotonic() - began
    return {
        "ready_cpu_s": ready, "errors": len(wrong), "peak_mb": peak, "requests": users * requests, "cpu_s": cpu,
        "wall_s": seconds,
    }  # fmt: skip
