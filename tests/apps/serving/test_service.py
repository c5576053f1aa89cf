"""The API as a client sees it, on a real server: answers, refusals, keys, rates, sizes, logs, metrics, its end."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from running_service import Service
from serving_doubles import SLOW, cases, good

import fewest as fw

Start = Callable[..., Service]


@pytest.fixture(scope="module")
def explainer() -> fw.Explainer:
    return good(Path())


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return cases(40, seed=3)[0]


def instances(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [dict(row) for row in json.loads(frame.to_json(orient="records"))]


def agrees(record: dict[str, Any], answer: fw.Explanation) -> bool:
    """Whether an answer of the service says what the explainer says."""
    changes = [(change["feature"], change["from"], change["to"]) for change in record["changes"]]
    return (
        record["status"] == answer.status.value
        and record["sev"] == answer.sev
        and changes == [(change.feature, change.before, change.after) for change in answer.changes]
        and record["score"] == answer.score
        and record["score_after"] == answer.score_after
        and record["sentence"] == str(answer)
        and record["reference"] == answer.reference
        and record["proof"]["minimal"] == answer.proof.minimal
        and record["lower_bound"] == answer.proof.lower_bound
    )


def test_a_batch_is_explained_as_the_explainer_does(
    service: Service, explainer: fw.Explainer, people: pd.DataFrame
) -> None:
    answered = service.ask("credit", instances(people), alternatives=3)
    assert answered.status_code == 200
    content = answered.json()
    expected = explainer.explain(people, alternatives=3)
    assert all(agrees(record, answer) for record, answer in zip(content["explanations"], expected, strict=True))
    assert {record["status"] for record in content["explanations"]} == {"EXPLAINED", "ALREADY_NEGATIVE"}
    sets = [[[c["feature"] for c in one] for one in record["alternatives"]] for record in content["explanations"]]
    assert sets == [[[c.feature for c in one] for one in answer.alternatives] for answer in expected]
    scores = [record["score"] for record in content["predictions"]]
    assert scores == [answer.score for answer in expected]


def test_a_changed_answer_would_be_noticed(service: Service, explainer: fw.Explainer, people: pd.DataFrame) -> None:
    """Negative control of the comparison above."""
    expected = explainer.explain(people)
    row = next(k for k, answer in enumerate(expected) if answer.changes)
    (record,) = service.ask("credit", instances(people.iloc[[row]])).json()["explanations"]
    assert agrees(record, expected[row])
    for name, value in (("sev", 9), ("score", 0.5), ("changes", []), ("status", "BUDGET"), ("sentence", "")):
        assert not agrees({**record, name: value}, expected[row]), name


def test_a_single_case_is_predicted_as_the_decision_does(
    service: Service, explainer: fw.Explainer, people: pd.DataFrame
) -> None:
    verdicts = explainer.decision.verdicts(people)
    for row in range(4):
        (record,) = service.ask("credit", instances(people.iloc[[row]]), "predict").json()["predictions"]
        positive = bool(verdicts.positive[row])
        assert record == {
            "prediction": "bad" if positive else "good", "positive": positive, "score": verdicts.score[row],
        }  # fmt: skip


def test_models_say_what_they_take(service: Service) -> None:
    assert service.client.get("/v1/models").json() == {"models": ["credit"]}
    model = service.client.get("/v1/models/credit").json()
    assert (model["name"], model["ready"], model["positive"], model["outcome"]) == ("credit", True, "bad", "good")
    assert [feature["kind"] for feature in model["features"]] == [
        "integer",
        "number",
        "category",
        "category",
        "boolean",
    ]
    assert model["instance"]["required"] == ["debt", "rate", "code", "home", "member"]
    assert "minimum" not in model["features"][0], "the ends of the range seen are values of people"


def is_refused(response: Any, status: int, where: str) -> None:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"what", "where", "why", "do", "request_id"}
    assert all(error.values())
    assert error["where"] == where
    assert error["request_id"] == response.headers["x-request-id"]


GOOD: dict[str, Any] = {"debt": 80, "rate": 0.5, "code": "A07", "home": "own", "member": False}


@pytest.mark.parametrize(
    ("instance", "where"),
    [
        ({**GOOD, "home": "castle"}, "instances[0].home"),
        ({**GOOD, "debt": 1.5}, "instances[0].debt"),
        ({**GOOD, "rate": None}, "instances[0].rate"),
        ({**GOOD, "extra": 1}, "instances[0]"),
        ({"debt": 80}, "instances[0]"),
    ],
)
def test_an_instance_that_does_not_fit_gets_422_and_no_number(
    service: Service, instance: dict[str, Any], where: str
) -> None:
    for verb in ("explain", "predict"):
        is_refused(service.ask("credit", [instance], verb), 422, where)


def test_what_is_not_the_apis_json_gets_400(service: Service) -> None:
    is_refused(service.post("credit", b'{"instances": [NaN]}'), 400, "body")
    is_refused(service.post("credit", b'{"instances": [{"debt": 1, "debt": 2}]}'), 400, "body")
    is_refused(service.ask("credit", []), 400, "instances")
    is_refused(service.ask("credit", [GOOD] * 1001), 400, "instances")


def test_unknown_models_paths_and_methods_are_refused(service: Service) -> None:
    is_refused(service.ask("nobody", [GOOD]), 404, "path")
    is_refused(service.client.get("/v1/models/nobody"), 404, "path")
    is_refused(service.client.get("/etc/passwd"), 404, "path")
    wrong = service.client.get("/v1/models/credit:explain")
    is_refused(wrong, 405, "method")
    assert wrong.headers["allow"] == "POST"
    text = service.client.post("/v1/models/credit:explain", content=b"{}", headers={"Content-Type": "text/plain"})
    is_refused(text, 415, "header Content-Type")


def test_without_keys_a_foreign_host_name_is_refused(service: Service) -> None:
    is_refused(service.client.get("/v1/models", headers={"Host": "evil.example"}), 403, "header Host")
    for host in ("localhost:1", "127.0.0.1", "[::1]:80"):
        assert service.client.get("/v1/models", headers={"Host": host}).status_code == 200


def test_a_request_id_is_kept_where_it_is_harmless(service: Service) -> None:
    assert service.client.get("/healthz", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert len(service.client.get("/healthz", headers={"X-Request-ID": 'a" b'}).headers["x-request-id"]) == 32


def test_the_log_has_hashes_and_times_and_no_values(service: Service) -> None:
    strange = {**GOOD, "debt": 73_313_371, "rate": 0.271828}
    answered = service.ask("credit", [strange, strange, GOOD])
    service.ask("credit", [{**strange, "home": "a secret castle"}])
    marked = answered.headers["x-request-id"]
    deadline = time.monotonic() + 10
    while not any(line.get("id") == marked for line in service.lines) and time.monotonic() < deadline:
        time.sleep(0.02)
    (line,) = [line for line in service.lines if line.get("id") == marked]
    assert line["rows"][0] == line["rows"][1] != line["rows"][2]
    assert (line["instances"], line["status"], line["model"], line["verb"]) == (3, 200, "credit", "explain")
    assert line["seconds"] >= line["worked"] > 0
    everything = json.dumps(service.lines)
    assert not any(value in everything for value in ("73313371", "271828", "castle", "A07"))


def test_metrics_count_requests_and_answers(service: Service) -> None:
    service.ask("credit", [GOOD])
    response = service.client.get("/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    figures = dict(line.rsplit(" ", 1) for line in response.text.splitlines() if not line.startswith("#"))
    asked = 'fewest_requests_total{method="POST",path="/v1/models/credit:explain",status="200"}'
    before = float(figures[asked])
    assert float(figures['fewest_workers_ready{model="credit"}']) == 1
    assert float(figures['fewest_answers_total{model="credit",status="EXPLAINED"}']) >= 1
    service.ask("credit", [GOOD])
    assert f"{asked} {before + 1:g}" in service.client.get("/metrics").text


@pytest.fixture(scope="module")
def guarded(keys_file: Path) -> Iterator[Service]:
    """Keys, a slow rate, small bodies, two models."""
    made = Service(
        ["a.fewest", "b.fewest"], loader="serving_doubles:bad", keys=str(keys_file), rate=0.5, burst=30,
        max_body=2_000, time_limit=1.0, patience=2.0,
    )  # fmt: skip
    yield made
    made.stop()


def test_every_path_but_health_needs_a_key(guarded: Service) -> None:
    for path in ("/v1/models", "/v1/models/a", "/metrics", "/openapi.json", "/nowhere"):
        for sent in ("", "Bearer wrong", "Basic a-key-for-tests", "Bearer"):
            refused = guarded.client.get(path, headers={"Authorization": sent})
            is_refused(refused, 401, "header Authorization")
            assert refused.headers["www-authenticate"] == "Bearer"
    assert guarded.client.get("/healthz", headers={"Authorization": ""}).status_code == 200
    assert guarded.client.get("/healthz/ready", headers={"Authorization": ""}).json()["status"] == "ready"
    assert guarded.client.get("/v1/models").json() == {"models": ["a", "b"]}


def raw(port: int, head: str, body: bytes = b"", parts: int = 1) -> bytes:
    """The answer to a request as written, whatever its headers claim."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
        try:
            for _ in range(parts):
                connection.sendall(body)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            return connection.recv(65_536)
        except ConnectionResetError:
            return b""


HEAD = (
    "POST /v1/models/a:predict HTTP/1.1\nHost: x\nAuthorization: Bearer a-key-for-tests\nContent-Type: application/json"
)


def test_a_body_too_large_is_refused_whatever_its_headers_say(guarded: Service) -> None:
    large = b'{"instances": ["' + b"x" * 3_000 + b'"]}'
    is_refused(guarded.post("a", large), 413, "body")
    chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
    assert b" 413 " in raw(guarded.port, f"{HEAD}\nTransfer-Encoding: chunked", chunk, parts=200)[:60]
    assert b" 413 " in raw(guarded.port, f"{HEAD}\nContent-Length: 999999999")[:60]
    # A length that is too small cuts the body short: what is read is not JSON, and the rest is no request.
    assert b" 400 " in raw(guarded.port, f"{HEAD}\nContent-Length: 20", large)[:60]
    assert b" 400 " in raw(guarded.port, f"{HEAD}\nContent-Length: -1", large)[:60]
    assert b" 408 " in raw(guarded.port, f"{HEAD}\nContent-Length: 100", b"{")[:60]


def test_the_search_stops_in_time_with_a_bound_instead_of_a_number(guarded: Service) -> None:
    response = guarded.ask("a", [{"debt": SLOW, "age": 30, "rate": 1}], time_limit=0.05)
    assert response.status_code == 200
    (record,) = response.json()["explanations"]
    assert (record["status"], record["sev"], record["proof"]["minimal"]) == ("BUDGET", None, False)
    assert record["lower_bound"] is not None
    assert "topped" in record["sentence"]


def test_a_key_that_asks_too_often_gets_429_and_the_time_to_wait(guarded: Service) -> None:
    answers = [guarded.client.get("/v1/models", headers={"Authorization": "Bearer another"}) for _ in range(40)]
    codes = [answer.status_code for answer in answers]
    assert codes.count(200) in (30, 31)
    is_refused(answers[-1], 429, "key")
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 2
    assert guarded.client.get("/healthz").status_code == 200


def test_a_full_queue_is_refused_at_once(start: Start) -> None:
    service = start("a.fewest", loader="serving_doubles:bad", queue=2, rate=0)
    slow = [{"debt": SLOW, "age": 30 + k, "rate": 1} for k in range(1)]
    codes: list[int] = []
    n_jobs = [threading.Thread(target=lambda: codes.append(service.ask("a", slow).status_code)) for _ in range(12)]
    for thread in n_jobs:
        thread.start()
    for thread in n_jobs:
        thread.join()
    assert set(codes) == {200, 503}
    assert service.ask("a", slow).status_code == 200


def test_sigterm_finishes_what_is_in_flight_and_refuses_what_is_new(start: Start) -> None:
    service = start("a.fewest", loader="serving_doubles:bad", rate=0)
    answered: list[int] = []
    slow = [{"debt": SLOW, "age": 30, "rate": 1}]
    asking = threading.Thread(target=lambda: answered.append(service.ask("a", slow).status_code))
    asking.start()
    while service.client.get("/healthz").json()["models"]["a"]["busy"] == 0:
        time.sleep(0.01)
    service.process.terminate()
    asking.join(timeout=30)
    assert answered == [200]
    assert service.process.wait(timeout=30) == 0
    service.event("stopped")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", service.port), timeout=5)
