"""A model that crashes, hangs or eats memory costs its own request, and nothing else."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from running_service import Service
from serving_doubles import HANGS, HOGS, KILLED, NAN, PRINTS, RAISES, SLOW

from fewest.apps.serving import ServiceSettings, serve
from fewest.apps.serving.worker import address_space
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
        (HANGS, 504, "it took more than 1 seconds"),
        (HOGS, 503, "out of memory"),
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


def test_a_worker_killed_from_outside_is_replaced(moody: Service) -> None:
    lost = moody.client.get("/metrics").text.count('fewest_workers_lost{model="a",why="ended"}')
    assert lost == 1
    (pid,) = _children(moody.process.pid)
    os.kill(pid, signal.SIGKILL)
    response = moody.ask("a", [case(90)])
    assert response.status_code in (200, 503)
    assert still_answers(moody)
    assert _children(moody.process.pid) != [pid]


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


@pytest.mark.parametrize(("loader", "why"), [("never", "the file holds nothing"), ("crashes", "it ended with code 3")])
def test_a_model_that_cannot_be_loaded_at_all_ends_the_command(
    loader: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastapi")
    import serving_doubles

    monkeypatch.setenv("PYTHONPATH", str(Path(serving_doubles.__file__).parent), prepend=os.pathsep)
    with pytest.raises(FewestError, match=why) as caught:
        serve([Path("a.fewest")], ServiceSettings(port=0, loader=f"serving_doubles:{loader}"))
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


def test_the_address_space_is_known_where_memory_is_limited() -> None:
    """Negative control of the memory limit: without this figure none would be set."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("this system does not say how much memory a process has")
    assert (address_space() or 0) > 10_000_000
