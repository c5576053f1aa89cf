"""The application: routes of each model, health, metrics, and their OpenAPI description."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from fewest.apps.serving import documents
from fewest.apps.serving.body import check_headers, read_body
from fewest.apps.serving.door import App, Door, error_response
from fewest.apps.serving.keys import Keys
from fewest.apps.serving.logs import Log
from fewest.apps.serving.metrics import Metrics
from fewest.apps.serving.pool import WorkerPool
from fewest.apps.serving.rate import Buckets
from fewest.apps.serving.refusals import RefusedError
from fewest.apps.serving.settings import ServiceSettings

Handler = Callable[[Request], Awaitable[Response]]
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
WHAT_HTTP_SAYS = {
    404: ("there is nothing here", "path", "no such model or page", "GET /v1/models lists the models"),
    405: ("this method is not for this path", "method", "see the header Allow", "GET /openapi.json describes the API"),
}


def create_app(
    pools: Mapping[str, WorkerPool],
    settings: ServiceSettings,
    keys: Keys | None,
    log: Log,
    metrics: Metrics | None = None,
) -> App:
    """The service over pools that have been started; they are closed when it shuts down.

    Parameters
    ----------
    pools : mapping
        Name of each model -> its workers.
    settings : Settings
    keys : Keys, optional
    log : Log
    metrics : Metrics, optional
    """
    metrics = metrics or Metrics()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for pool in pools.values():
            await pool.close()

    app = FastAPI(
        title="fewest", version="1", docs_url=None, redoc_url=None, lifespan=lifespan,
        summary="The fewest facts that decide, in the shape of KServe's V1 protocol.",
    )  # fmt: skip
    app.add_exception_handler(RefusedError, _tell)
    app.add_exception_handler(HTTPException, _tell)
    app.add_exception_handler(Exception, _tell)
    errors = _errors(guarded=keys is not None)
    _add_health(app, pools)
    _add_lists(app, pools, metrics, errors)
    for pool in pools.values():
        _add_model(app, pool, settings, metrics, errors)
    if keys is not None:
        _declare_keys(app)
    return Door(app, keys, Buckets(settings.rate, settings.burst), metrics, log)


async def _tell(request: Request, error: Exception) -> Response:
    """Any error in the one shape."""
    if isinstance(error, HTTPException):
        parts = WHAT_HTTP_SAYS.get(error.status_code, (str(error.detail), "request", "", "see /openapi.json"))
        error = RefusedError(error.status_code, *parts, headers=dict(error.headers or {}))
    elif not isinstance(error, RefusedError):
        error = RefusedError(
            500, "the service failed", "service", type(error).__name__, "tell the operator the request id"
        )
    status, headers, body = error_response(error, request.state.notes["id"])
    return Response(body, status, headers)


def _errors(guarded: bool) -> dict[int | str, dict[str, Any]]:
    """The error responses of an operation."""
    codes = [401, 429] if guarded else [403, 429]
    return {code: {"model": documents.Error} for code in codes}


def _add_health(app: FastAPI, pools: Mapping[str, WorkerPool]) -> None:
    def health(status: str) -> dict[str, Any]:
        states = {
            name: {"ready": pool.ready > 0, "workers": pool.ready, "busy": pool.busy, "requests": pool.inside}
            for name, pool in pools.items()
        }
        return {"status": status, "models": states}

    @app.get("/healthz", response_model=documents.Health)
    async def alive() -> Response:
        """Whether the service is up; where its workers stand."""
        return JSONResponse(health("alive"))

    @app.get("/healthz/ready", response_model=documents.Health, responses={503: {"model": documents.Health}})
    async def ready() -> Response:
        """Whether every model has a worker."""
        is_ready = all(pool.ready for pool in pools.values())
        return JSONResponse(health("ready" if is_ready else "not ready"), 200 if is_ready else 503)


def _add_lists(
    app: FastAPI, pools: Mapping[str, WorkerPool], metrics: Metrics, errors: dict[int | str, dict[str, Any]]
) -> None:
    @app.get("/v1/models", response_model=documents.Models, responses=errors)
    async def models() -> Response:
        """Names of the models."""
        return JSONResponse({"models": list(pools)})

    text: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}

    @app.get("/metrics", response_class=Response, responses={**errors, 200: text})
    async def figures() -> Response:
        """Counts and times for Prometheus."""
        return Response(metrics.text(_gauges(pools)), headers={"content-type": METRICS_TYPE})


def _gauges(pools: Mapping[str, WorkerPool]) -> list[tuple[str, dict[str, str], float]]:
    out: list[tuple[str, dict[str, str], float]] = []
    for name, pool in pools.items():
        of_model = {"model": name}
        out.append(("fewest_workers_ready", of_model, pool.ready))
        out.append(("fewest_workers_busy", of_model, pool.busy))
        out.append(("fewest_requests_inside", of_model, pool.inside))
        out += [("fewest_workers_lost", {**of_model, "why": why}, count) for why, count in pool.lost.items()]
    return out


def _add_model(
    app: FastAPI, pool: WorkerPool, settings: ServiceSettings, metrics: Metrics, errors: dict[int | str, dict[str, Any]]
) -> None:
    """The three routes of a model. Its name stands in their paths, so that its instances can be described."""
    path = f"/v1/models/{pool.name}"

    async def model() -> Response:
        """Whether the model is ready, and what it takes."""
        return JSONResponse({"name": pool.name, "ready": pool.ready > 0, **pool.model})

    app.get(path, response_model=documents.ModelDocument, responses=errors, operation_id=f"get_{pool.name}")(model)
    body = documents.request_schema(pool.model["instance"], settings)
    further: dict[int | str, dict[str, Any]] = {
        code: {"model": documents.Error} for code in (400, 408, 413, 415, 422, 500, 503, 504)
    }
    for verb, document in (("explain", documents.ExplanationsDocument), ("predict", documents.Predictions)):
        app.post(
            f"{path}:{verb}", response_model=document, responses={**errors, **further},
            operation_id=f"{verb}_{pool.name}",
            openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": body}}}},
        )(_handler(pool, verb, settings, metrics))  # fmt: skip


def _handler(pool: WorkerPool, verb: str, settings: ServiceSettings, metrics: Metrics) -> Handler:
    async def answer(request: Request) -> Response:
        notes = request.state.notes
        notes.update(model=pool.name, verb=verb)
        check_headers(request.headers, settings.max_body)
        with pool.place():
            body = await read_body(request.stream(), settings.max_body, settings.patience)
            reply, waited = await pool.ask(verb, body)
        head = dict(reply.head)
        status = int(head.pop("status", 500))
        worked = float(head.pop("seconds", 0.0))
        notes.update(head, bytes=len(body), waited=round(waited, 6), worked=worked)
        if status != 200:
            raise _from_worker(status, reply.body)
        for name, count in head.get("answers", {}).items():
            metrics.count("fewest_answers_total", count, model=pool.name, status=name)
        metrics.observe("fewest_wait_seconds", waited, model=pool.name)
        return Response(reply.body, media_type="application/json")

    answer.__doc__ = {
        "explain": "The fewest features that turn the decision, for each instance.",
        "predict": "What the model decides, for each instance.",
    }[verb]
    return answer


def _from_worker(status: int, body: bytes) -> RefusedError:
    import json

    return RefusedError.from_content(status, json.loads(body)["error"])


def _declare_keys(app: FastAPI) -> None:
    """Say in the description which operations need a key."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        content = describe()
        content["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        for path, operations in content["paths"].items():
            for operation in operations.values():
                operation["security"] = [] if path.startswith("/healthz") else [{"key": []}]
        return content

    app.openapi = openapi  # type: ignore[method-assign]
