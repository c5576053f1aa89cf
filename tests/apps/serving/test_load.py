"""Many clients at once: every answer is the explainer's own, and no request is lost."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from running_service import Service
from serving_doubles import cases, good

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "serve_load.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The load benchmark, as a module."""
    spec = importlib.util.spec_from_file_location("serve_load", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["serve_load"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def asked(tool: ModuleType) -> tuple[list[bytes], list[Any]]:
    made: tuple[list[bytes], list[Any]] = tool.expected_of(good(Path()), cases(101, seed=5)[0], "explain")
    return made


def run(service: Service, tool: ModuleType, asked: tuple[list[bytes], list[Any]], clients: int, seconds: float) -> Any:
    load = asyncio.run(tool.hammer(service.port, "/v1/models/credit:explain", *asked, clients, seconds))
    print(load)
    return load


def test_many_clients_get_the_explainers_own_answers(service: Service, tool: ModuleType, asked: Any) -> None:
    load = run(service, tool, asked, clients=40, seconds=2)
    assert (load.wrong, load.lost) == (0, 0)
    assert load.codes[200] > 40
    assert set(load.codes) <= {200, 429, 503}


def test_a_wrong_answer_would_be_counted(service: Service, tool: ModuleType, asked: Any) -> None:
    """Negative control: against answers to other questions nearly all are wrong."""
    bodies, expected = asked
    load = run(service, tool, (bodies, expected[1:] + expected[:1]), clients=4, seconds=0.3)
    assert load.wrong > load.codes[200] / 2 > 0


@pytest.mark.slow
def test_two_hundred_clients_for_a_minute(service: Service, tool: ModuleType, asked: Any) -> None:
    load = run(service, tool, asked, clients=200, seconds=60)
    assert (load.wrong, load.lost) == (0, 0)
    assert set(load.codes) <= {200, 429, 503}


@pytest.mark.slow
def test_two_hundred_clients_while_workers_are_killed(service: Service, tool: ModuleType, asked: Any) -> None:
    path = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children")
    if not path.exists():
        pytest.skip("this system does not list the children of a process")
    stop = threading.Event()

    def kill() -> None:
        while not stop.is_set():
            time.sleep(5)
            for child in path.read_text().split():
                os.kill(int(child), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    load = run(service, tool, asked, clients=200, seconds=30)
    stop.set()
    killer.join()
    assert (load.wrong, load.lost) == (0, 0)
    assert load.codes[200] > 0
