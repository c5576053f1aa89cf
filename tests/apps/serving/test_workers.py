"""A model that crashes, hangs or eats memory costs its own request, and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from running_service import Service
from serving_doubles import FAULTS, HANGS, HOGS, KILLED, NAN, PRINTS, RAISES, SLOW

from fewest.apps.serving import ServiceSettings, serve
from fewest.apps.serving.refusals import RefusedError
from fewest.errors import FewestError, UsageError

Start = Callable[..., Service]


def case(debt: int, age: int = 50) -> dict[str, Any]:
    return {"debt": debt, "age": age, "rate": 1}


@pytest.fixture(scope="module")
def moody() -> Iterator[Service]:
    """One worker, a model with moods, little patience."""
    settings: dict[str, Any] = {"time_limit": 0.5, "grace": 0.5, "rate": 0, "memory": 1.0}
    made = Service(["a.fewest"], loader="serving_doubles:bad", **settings)
    yield made
    made.stop()


def still_answers(service: Service) -> bool:
    """Whether an ordinary case is explained, once there is a worker again."""
    response = service.ask("a", [case(90)])
    return bool(response.status_code == 200 and response.json()["explanations"][0]["sev"] == 1)


@pytest.mark.parametrize(
    ("debt", "status", "why"),
    [
        (KILLED, 503, "it was ended by SIGKILL"),
        pytest.param(FAULTS, 503, "it was ended by SIGSEGV", marks=pytest.mark.slow),
        (HANGS, 504, "it took more than 1 seconds"),
        pytest.param(HOGS, 503, "out of memory", marks=pytest.mark.slow),
        (RAISES, 500, "ValueError"),
        (NAN, 500, "NaN"),
    ],
)
def test_a_model_that_goes_wrong_gets_a_clear_error_and_the_next_request_its_answer(
    moody: Service, debt: int, status: int, why: str
) -> None:
    response = moody.ask("a", [case(90), case(debt)], "predict")
    assert response.status_code == status, response.text
    assert why in response.json()["error"]["why"]
    assert ("retry-after" in response.headers) == (status == 503)
    assert still_answers(moody)


def test_what_a_model_prints_neither_mixes_with_the_answers_nor_reaches_the_log(moody: Service) -> None:
    assert moody.ask("a", [case(PRINTS)], "predict").json()["predictions"][0]["score"] == PRINTS + 50
    assert still_answers(moody)
    assert not any("debt is" in str(line) for line in moody.lines)


def test_one_bad_request_does_not_spoil_those_that_came_with_it(moody: Service) -> None:
    """They are asked together, while the worker is held up; then each is asked alone."""
    codes: dict[str, int] = {}

    def ask(name: str, instance: dict[str, Any]) -> None:
        codes[name] = moody.ask("a", [instance], "predict").status_code

    wishes = {"slow": case(SLOW), **{f"good {k}": case(k) for k in range(4)}, "killed": case(KILLED)}
    wishes |= {"raises": case(RAISES), "unfit": {"debt": "x"}}
    n_jobs = [threading.Thread(target=ask, args=wish) for wish in wishes.items()]
    for thread in n_jobs:
        thread.start()
        time.sleep(0.002)
    for thread in n_jobs:
        thread.join()
    expected = dict.fromkeys(wishes, 200) | {"killed": 503, "raises": 500, "unfit": 422}
    assert codes == expected


@pytest.mark.slow
def test_no_client_pays_for_a_worker_that_was_killed_while_idle(moody: Service) -> None:
    """Neither the first after the kill, nor one that comes before anybody has noticed."""
    before = moody.event("model ready")["workers"]
    for pause in (0.0, 0.2):
        (pid,) = _children(moody.process.pid)
        os.kill(pid, signal.SIGKILL)
        time.sleep(pause)
        assert moody.ask("a", [case(90)]).status_code == 200
        assert _children(moody.process.pid) != [pid]
    assert 'fewest_workers_lost{model="a",why="ended"}' in moody.client.get("/metrics").text
    assert moody.client.get("/healthz/ready").json()["models"]["a"]["workers"] == before


@pytest.mark.slow
def test_readiness_sees_that_an_idle_worker_has_gone(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "a.fewest"
    path.touch()
    service = start(str(path), loader="serving_doubles:fades", rate=0)
    assert service.client.get("/healthz/ready").status_code == 200
    os.kill(*_children(service.process.pid), signal.SIGKILL)
    service.event("worker lost")
    assert service.client.get("/healthz/ready").status_code == 503


def test_workers_end_with_the_server_even_when_it_is_killed_in_the_middle(start: Start) -> None:
    service = start("a.fewest", loader="serving_doubles:bad", rate=0)
    (pid,) = _children(service.process.pid)
    asking = threading.Thread(target=lambda: _ignore(lambda: service.ask("a", [case(HANGS)])))
    asking.start()
    while service.client.get("/healthz").json()["models"]["a"]["busy"] == 0:
        time.sleep(0.01)
    service.process.kill()
    asking.join(timeout=10)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


def _ignore(call: Callable[[], Any]) -> None:
    import httpx

    with suppress(httpx.HTTPError):
        call()


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    if not path.exists():
        pytest.skip("this system does not list the children of a process")
    return [int(child) for child in path.read_text().split()]


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_again_leaves_the_service_up_but_not_ready(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "a.fewest"
    path.touch()
    service = start(str(path), loader="serving_doubles:fades", patience=1.0, rate=0)
    assert service.ask("a", [case(KILLED)]).status_code == 503
    service.event("worker not started")
    assert service.client.get("/healthz").status_code == 200
    assert service.client.get("/healthz/ready").status_code == 503
    assert service.client.get("/v1/models/a").json()["ready"] is False
    refused = service.ask("a", [case(90)])
    assert (refused.status_code, refused.json()["error"]["what"]) == (503, "no worker was free in time")


@pytest.mark.parametrize(
    ("loader", "why"),
    [
        ("never", "the file holds nothing"),
        pytest.param("crashes", "it ended with code 3", marks=pytest.mark.slow),
        pytest.param("faults", "it was ended by SIGSEGV", marks=pytest.mark.slow),
        pytest.param(
            "reaches",
            "it did nothing",
            marks=[pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="no limits")],
        ),
    ],
)
def test_a_model_that_cannot_be_loaded_at_all_ends_the_command(
    loader: str, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("fastapi")
    import serving_doubles

    monkeypatch.setenv("PYTHONPATH", str(Path(serving_doubles.__file__).parent), prepend=os.pathsep)
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a worker may write there, and the file is elsewhere
    path = tmp_path_factory.mktemp("models") / "a.fewest"
    with pytest.raises(FewestError, match=why) as caught:
        serve([path], ServiceSettings(port=0, loader=f"serving_doubles:{loader}"))
    assert caught.value.exit_code == 4


def test_names_that_cannot_be_served_and_ports_in_use_are_refused(moody: Service) -> None:
    for paths, why in (
        (["a b.fewest"], "cannot stand"),
        (["x/a.fewest", "y/a.fewest"], "two models"),
        ([], "no model"),
    ):
        with pytest.raises(UsageError, match=why):
            serve([Path(path) for path in paths], ServiceSettings())
    with pytest.raises(UsageError, match="cannot be used"):
        serve([Path("a.fewest")], ServiceSettings(port=moody.port))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not say how much memory it takes")
@pytest.mark.parametrize(("limit", "left"), [("pass", False), ("limits.limit_memory(1.0)", True)])
def test_memory_is_limited_where_a_limit_is_set(limit: str, left: bool) -> None:
    code = f"from fewest.apps import limits; {limit}; import resource as r; print(r.getrlimit(r.RLIMIT_AS)[0] > 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(left)


class Moody:
    """A log that fails once."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __call__(self, event: str, **_: object) -> None:
        self.events.append(event)
        if self.events.count("worker lost") == 1 and event == "worker lost":
            raise OSError("no space left on device")


@pytest.mark.slow
def test_a_pool_whose_keeping_fails_is_kept_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    import serving_doubles

    from fewest.apps.serving.pool import WorkerPool

    monkeypatch.setenv("PYTHONPATH", str(Path(serving_doubles.__file__).parent), prepend=os.pathsep)
    log = Moody()

    async def ask_twice() -> list[str]:
        pool = WorkerPool("a", Path("a.fewest"), ServiceSettings(loader="serving_doubles:bad"), log)
        await pool.start()
        said = []
        for debt in (KILLED, 90):
            body = json.dumps({"instances": [case(debt)]}).encode()
            try:
                async with asyncio.timeout(60):
                    reply, _ = await pool.ask("predict", body, "bank")
                said.append(str(reply.head["status"]))
            except RefusedError as refusal:
                said.append(refusal.parts["why"])
        await pool.close()
        return said

    assert asyncio.run(ask_twice()) == ["it could not be kept", "200"]
    assert "worker not kept" in log.events
