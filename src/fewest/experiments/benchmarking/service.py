"""The service under load: `fewest serve` in processes of its own, asked by many clients; every answer is compared."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fewest.datasets import load as load_data
from fewest.decision import Decision
from fewest.experiments.benchmarking.measure import Row, at_least, at_most, cpu, skipped
from fewest.explainer import Explainer
from fewest.references import single
from fewest.results.record import to_json

START = """
import sys
from pathlib import Path
from fewest.apps.serving import ServiceSettings, serve
sys.exit(serve([Path(sys.argv[1])], ServiceSettings(port=0, workers=int(sys.argv[2]), rate=0, queue=400)))
"""
CLIENTS, SECONDS = 200, 8.0
STEP = 7  # from one question of a client to its next: clients that began together drift apart
ONE, MANY, WRONG = "service, one row, one client", f"service, {CLIENTS} clients", f"service, {CLIENTS} clients, wrong"


@dataclass
class Load:
    """What came of many requests."""

    seconds: float = 0.0
    codes: Counter[int] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    wrong: int = 0
    lost: int = 0

    def __str__(self) -> str:
        times = np.array(self.times or [np.nan])
        p50, p99 = np.percentile(times, [50, 99]) * 1e3
        codes = ", ".join(f"{code}: {count:,}" for code, count in sorted(self.codes.items()))
        return (
            f"{len(self.times) / self.seconds:,.0f} answers/s, p50 {p50:,.0f} ms, p99 {p99:,.0f} ms; "
            f"by status {codes}; wrong {self.wrong}, lost {self.lost}"
        )


async def hammer(
    port: int, path: str, bodies: list[bytes], expected: list[Any], clients: int, seconds: float, headers: str = ""
) -> Load:
    """Ask from many clients, each again as soon as it has its answer; compare every answer with what is expected.

    Each client asks at least twice, however long that takes on a busy machine.

    Parameters
    ----------
    port, path : int, str
    bodies : list of bytes
    expected : list
        The JSON content of the right answer to each body.
    clients : int
    seconds : float
    headers : str
        Further header lines, each with its line end.
    """
    load = Load()
    began = time.monotonic()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{headers}"
    requests = [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies]
    tasks = [_client(load, port, requests, expected, number, began + seconds) for number in range(clients)]
    await asyncio.gather(*tasks)
    load.seconds = time.monotonic() - began
    return load


async def _client(
    load: Load, port: int, requests: list[bytes], expected: list[Any], number: int, deadline: float
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    turn = number
    try:
        while time.monotonic() < deadline or turn < number + 2 * STEP:
            k = turn % len(requests)
            turn += STEP
            asked = time.monotonic()
            writer.write(requests[k])
            code, body = await _response(reader)
            load.codes[code] += 1
            if code == 200:
                load.times.append(time.monotonic() - asked)
                load.wrong += json.loads(body) != expected[k]
            elif code in (429, 503):
                await asyncio.sleep(0.1)
            else:
                load.lost += 1
    except (OSError, asyncio.IncompleteReadError):
        load.lost += 1
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.split("content-length: ")[1].split("\r\n")[0])
    return int(head.split(" ")[1]), await reader.readexactly(length)


def expected_of(explainer: Explainer, cases: Any, verb: str) -> tuple[list[bytes], list[Any]]:
    """A request for each case, and the right answer to it."""
    decision = explainer.decision
    bodies, expected = [], []
    for row, answer in enumerate(explainer.explain(cases)):
        (instance,) = json.loads(cases.iloc[[row]].to_json(orient="records"))
        bodies.append(json.dumps({"instances": [instance]}).encode())
        positive = bool(answer.score >= decision.cut)
        outcome = decision.positive_name if positive else decision.negative_name
        content: dict[str, Any] = {
            "predictions": [{"prediction": outcome, "positive": positive, "score": answer.score}]
        }
        if verb == "explain":
            content["explanations"] = [to_json(answer, "http")]
        expected.append(content)
    return bodies, expected


def german() -> tuple[Explainer, Any]:
    """A logistic regression on German Credit, and the cases it refuses."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    data = load_data("german")
    numbers, text = (make_column_selector(**{f"dtype_{what}": "number"}) for what in ("include", "exclude"))
    encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), text))
    decision = Decision(make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(data.X, data.y))
    explainer = Explainer(decision, single(decision, data.X, data.y), n_jobs=1)
    return explainer, data.X[decision.refuses(data.X)]


@contextmanager
def running(explainer: Explainer, workers: int) -> Iterator[tuple[int, int]]:
    """A service of this explainer, called german: its process id and its port."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "german.fewest"
        explainer.save(path)
        command = [sys.executable, "-P", "-c", START, str(path), str(workers)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
            assert service.stderr is not None
            port = next(line["port"] for line in map(json.loads, service.stderr) if line["event"] == "listening")
            drain = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=service.stderr)
            try:
                yield service.pid, port
            finally:
                service.terminate()
                drain.wait()


def processor_seconds(pid: int) -> float:
    """CPU seconds of a process and its children (Linux); on a busy machine they tell more than the clock."""
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    ticks = sum(sum(map(int, Path(f"/proc/{one}/stat").read_text().rsplit(")")[-1].split()[11:13])) for one in pids)
    return ticks / os.sysconf("SC_CLK_TCK")


def loaded(
    pid: int, port: int, verb: str, asked: tuple[list[bytes], list[Any]], clients: int, seconds: float
) -> tuple[Load, float]:
    """What came of some seconds with this many clients, and the service's CPU seconds for each answer."""
    before = processor_seconds(pid)
    load = asyncio.run(hammer(port, f"/v1/models/german:{verb}", asked[0], asked[1], clients, seconds))
    return load, (processor_seconds(pid) - before) / max(1, len(load.times))


def under_load() -> Iterator[Row]:
    """One row from one client against one predict_proba of it; then 200 clients at once, one worker."""
    if find_spec("uvicorn") is None or not Path(f"/proc/{os.getpid()}/task").exists():
        why = 'needs Linux and pip install "fewest[serve]"'
        yield from (skipped(name, target, why) for name, target in ((ONE, "<= 3"), (MANY, ">= 1000"), (WRONG, "<= 0")))
        return
    explainer, cases = german()
    asked = expected_of(explainer, cases, "explain")
    model: Any = explainer.decision.model
    predict = partial(cpu, partial(model.predict_proba, cases.iloc[:1]))
    with running(explainer, workers=1) as (pid, port):
        loaded(pid, port, "explain", asked, 1, 1.0)
        own = [predict()]
        alone, each = loaded(pid, port, "explain", asked, 1, SECONDS)
        own.append(predict())
        many, shared = loaded(pid, port, "explain", asked, CLIENTS, SECONDS)
    once = statistics.mean(own)
    detail = f"{1e3 * each:.1f} CPU ms of server and worker against {1e3 * once:.1f}; by the clock: {alone}"
    yield at_most(ONE, each / once, 3, "x predict_proba", detail)
    detail = f"{1e3 * shared:.2f} CPU ms of server and worker per answer; {many}"
    yield at_least(MANY, len(many.times) / many.seconds, 1000, "answers/s", detail)
    yield at_most(WRONG, many.wrong + many.lost, 0, "answers wrong or lost", f"of {len(many.times):,}")
