"""Requests per second and response times of `fewest serve`, with many clients at once.

    python benchmarks/serve_load.py [--clients 200] [--seconds 60] [--workers 1] [--verb explain]

Every answer is compared with the explainer's own. The clients run here, on the same machine as the service.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

START = """
import sys
from pathlib import Path
from fewest.apps.serving import ServiceSettings, serve
sys.exit(serve([Path(sys.argv[1])], ServiceSettings(port=0, workers=int(sys.argv[2]), rate=0, queue=400)))
"""


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
        while time.monotonic() < deadline:
            k = turn % len(requests)
            turn += 7
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


def expected_of(explainer: Any, cases: Any, verb: str) -> tuple[list[bytes], list[Any]]:
    """A request for each case, and the right answer to it."""
    from fewest.apps.serving.answers import prediction_record
    from fewest.results.record import to_json

    decision = explainer.decision
    bodies, expected = [], []
    for row, answer in enumerate(explainer.explain(cases)):
        (instance,) = json.loads(cases.iloc[[row]].to_json(orient="records"))
        bodies.append(json.dumps({"instances": [instance]}).encode())
        content = {"predictions": [prediction_record(decision, answer.score, answer.score >= decision.cut)]}
        if verb == "explain":
            content["explanations"] = [to_json(answer, "http")]
        expected.append(content)
    return bodies, expected


def german() -> tuple[Any, Any]:
    """A logistic regression on German Credit, and the cases it refuses."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    import fewest as fw
    from fewest.datasets import load

    data = load("german")
    numbers, text = (make_column_selector(**{f"dtype_{what}": "number"}) for what in ("include", "exclude"))
    encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), text))
    decision = fw.Decision(make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(data.X, data.y))
    explainer = fw.Explainer(decision, fw.references.single(decision, data.X, data.y), n_jobs=1)
    return explainer, data.X[decision.verdicts(data.X).positive]


def processor_seconds(pid: int) -> float:
    """CPU seconds of a process and its children (Linux); on a busy machine they tell more than the clock."""
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    ticks = sum(sum(map(int, Path(f"/proc/{one}/stat").read_text().rsplit(")")[-1].split()[11:13])) for one in pids)
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--verb", choices=("explain", "predict"), default="explain")
    given = parser.parse_args()
    explainer, cases = german()
    bodies, expected = expected_of(explainer, cases, given.verb)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "german.fewest"
        explainer.save(path)
        command = [sys.executable, "-P", "-c", START, str(path), str(given.workers)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
            assert service.stderr is not None
            port = next(line["port"] for line in map(json.loads, service.stderr) if line["event"] == "listening")
            drain = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=service.stderr)
            target = f"/v1/models/german:{given.verb}"
            for clients in sorted({1, given.clients}):
                before = processor_seconds(service.pid)
                load = asyncio.run(hammer(port, target, bodies, expected, clients, given.seconds))
                cost = (processor_seconds(service.pid) - before) / max(1, len(load.times)) * 1e3
                print(f"{given.verb}, {clients} clients, {given.workers} workers: {load}; {cost:.1f} CPU ms per answer")
            service.terminate()
            drain.wait()


if __name__ == "__main__":
    main()
