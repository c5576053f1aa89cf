"""The OpenAPI description is true: generated requests get answers that it describes, and bad ones are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from running_service import KEY, Service

schemathesis = pytest.importorskip("schemathesis", reason="generated requests need schemathesis")
pytest.importorskip("fastapi", reason='the service needs pip install "fewest[serve]"')
HEADERS = {"Authorization": f"Bearer {KEY}"}
OPERATIONS = 7


@pytest.fixture(scope="module")
def guarded(keys_file: Path) -> Iterator[Service]:
    made = Service(["credit.fewest"], loader="serving_doubles:good", keys=str(keys_file), rate=0)
    yield made
    made.stop()


def run_all(service: Service, examples: int) -> Counter[str]:
    """Generate so many requests per operation; how many ended with which status."""
    url = f"http://127.0.0.1:{service.port}/openapi.json"
    schema = schemathesis.openapi.from_url(url, headers=HEADERS)
    seen: Counter[str] = Counter()
    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in schemathesis.GenerationMode:
            if mode.is_negative and operation.method == "get":
                continue  # these take nothing that could be wrong
            _run(operation, mode, examples if operation.method == "get" else (examples + 1) // 2, seen)
    return seen


def _run(operation: Any, mode: Any, examples: int, seen: Counter[str]) -> None:
    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Any) -> None:
        response = case.call(headers=HEADERS)
        seen[f"{operation.label} {mode.value} {response.status_code}"] += 1
        case.validate_response(response, headers=HEADERS)

    one()


def check(service: Service, examples: int) -> Counter[str]:
    seen = run_all(service, examples)
    explain = "POST /v1/models/credit:explain"
    assert len({label.rsplit(" ", 2)[0] for label in seen}) == OPERATIONS
    assert seen[f"{explain} positive 200"] > 0
    assert sum(seen[f"{explain} negative {status}"] for status in (400, 415, 422)) > 0
    return seen


@pytest.mark.slow
def test_generated_requests_find_nothing_wrong(guarded: Service) -> None:
    check(guarded, 30)


@pytest.mark.slow
def test_a_thousand_generated_requests_per_operation_find_nothing_wrong(guarded: Service) -> None:
    seen = check(guarded, 1_000)
    print("\n".join(f"{label}: {count}" for label, count in sorted(seen.items())))


def test_a_wrong_description_is_noticed(guarded: Service) -> None:
    """Negative control: were `debt` described as text, good requests would be refused, and that is found."""
    content = guarded.client.get("/openapi.json").json()
    body = content["paths"]["/v1/models/credit:predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    body["properties"]["instances"]["items"]["properties"]["debt"] = {"type": "string"}
    schema = schemathesis.openapi.from_dict(content)
    schema.config.update(base_url=f"http://127.0.0.1:{guarded.port}")
    operation = schema["/v1/models/credit:predict"]["POST"]
    with pytest.raises(schemathesis.core.failures.FailureGroup, match="Valid data should have been accepted"):
        _run(operation, schemathesis.GenerationMode.POSITIVE, 5, Counter())


def test_it_is_openapi_3_1_and_every_error_has_the_one_shape(guarded: Service) -> None:
    content = guarded.client.get("/openapi.json").json()
    assert content["openapi"].startswith("3.1")
    for path, operations in content["paths"].items():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if status not in ("200",) and not path.startswith("/healthz"):
                    assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
