"""The application: routes of each model, health, metrics, and their OpenAPI description."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from fewest.apps.serving import documents
from fewest.apps.serving.door import App, Buckets, Crowd, Door, Keys, Metrics, Receive, Scope, Send
from fewest.apps.serving.pool import EventLog, WorkerPool
from fewest.apps.serving.refusals import RefusedError, check_headers, read_body
from fewest.apps.serving.settings import ServiceSettings

Handler = Callable[[Request], Awaitable[Response]]
Responses = dict[int | str, dict[str, Any]]
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
VERBS: dict[str, tuple[type, str]] = {
    "explain": (documents.ExplanationsDocument, "The fewest features that change the outcome, for each instance."),
    "predict": (documents.Predictions, "What the model decides, for each instance."),
}
HTTP_ERRORS = {
    404: ("there is nothing here", "path", "no such model or page", "GET /v1/models lists the models"),
    405: ("this method is not for this path", "method", "see the header Allow", "GET /openapi.json describes the API"),
}


def create_app(pools: Mapping[str, WorkerPool], settings: ServiceSettings, keys: Keys | None, log: EventLog) -> App:
    """The service over pools (name of each model -> its workers) that have been started; it closes them at its end."""
    metrics = Metrics(pools)
    api, calls = service_api(pools, settings, keys, metrics)
    several = keys is not None and len(keys.sums) > 1
    crowd = Crowd(max(1, settings.connections // 2) if several else settings.connections)
    return Door(_straight(api, calls), keys, Buckets(settings.rate, settings.burst), crowd, metrics, log)


def service_api(
    pools: Mapping[str, WorkerPool], settings: ServiceSettings, keys: Keys | None, metrics: Metrics
) -> tuple[FastAPI, dict[str, tuple[Any, Handler]]]:
    """The routes of the service, which describe themselves, and those of the models by their paths."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for pool in pools.values():
            await pool.close()

    app = FastAPI(
        title="fewest", version="1", docs_url=None, redoc_url=None, lifespan=lifespan,
        summary="The fewest facts that decide, in the shape of KServe's V1 protocol.",
    )  # fmt: skip
    for kind in (RefusedError, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _answer_error)
    errors = _errors(401 if keys is not None else 403, 429)
    _add_service(app, pools, metrics, errors)
    calls: dict[str, tuple[Any, Handler]] = {}
    for pool in pools.values():
        calls.update(_add_model(app, pool, settings, metrics, errors))
    if keys is not None:
        _declare_keys(app)
    return app, calls


def _straight(app: FastAPI, calls: Mapping[str, tuple[Any, Handler]]) -> App:
    """The application, with calls of models handed straight to their handlers: the way there took longer than they."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        known = calls.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if known is None:
            await app(scope, receive, send)
            return
        scope["route"], handler = known
        request, failure = Request(scope, receive), None
        try:
            response = await handler(request)
        except Exception as error:
            foreseen = isinstance(error, RefusedError | HTTPException | ClientDisconnect)
            response, failure = await _answer_error(request, error), None if foreseen else error
        await response(scope, receive, send)
        if failure is not None:
            raise failure

    return answer


async def _answer_error(request: Request, error: Exception) -> Response:
    """Any error in the one shape."""
    if isinstance(error, HTTPException):
        parts = HTTP_ERRORS.get(error.status_code, (str(error.detail), "request", "", "see /openapi.json"))
        error = RefusedError(error.status_code, *parts, headers=dict(error.headers or {}))
    elif isinstance(error, ClientDisconnect):
        error = RefusedError(499, "the client has gone", "connection", "it was closed", "ask again")
    elif not isinstance(error, RefusedError):
        do = "give the operator the request id"
        error = RefusedError(500, "the service failed", "service", type(error).__name__, do)
    status, headers, body = error.response(request.state.notes["id"])
    return Response(body, status, headers)


def _errors(*codes: int) -> Responses:
    """The error responses of an operation."""
    return {code: {"model": documents.Error} for code in codes}


def _add_service(app: FastAPI, pools: Mapping[str, WorkerPool], metrics: Metrics, errors: Responses) -> None:
    """The routes that are not about one model."""

    def health(request: Request, status: str, code: int = 200) -> Response:
        """Names and load are for those who may ask the models."""
        states = {
            name: {"ready": pool.ready > 0, "workers": pool.ready, "busy": pool.busy, "requests": pool.inside}
            for name, pool in pools.items()
        }
        known = "key" in request.state.notes
        return JSONResponse({"status": status, **({"models": states} if known else {})}, code)

    @app.get("/healthz", response_model=documents.Health)
    async def alive(request: Request) -> Response:
        """Whether the service is up; where its workers stand."""
        return health(request, "alive")

    @app.get("/healthz/ready", response_model=documents.Health, responses={503: {"model": documents.Health}})
    async def ready(request: Request) -> Response:
        """Whether every model has a worker."""
        is_ready = all(pool.ready for pool in pools.values())
        return health(request, *(("ready", 200) if is_ready else ("not ready", 503)))

    @app.get("/v1/models", response_model=documents.Models, responses=errors)
    async def models() -> Response:
        """Names of the models."""
        return JSONResponse({"models": list(pools)})

    text: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}

    @app.get("/metrics", response_class=Response, responses={**errors, 200: text})
    async def figures() -> Response:
        """Counts and times for Prometheus."""
        return Response(metrics.text(), headers={"content-type": METRICS_TYPE})


def _add_model(
    app: FastAPI, pool: WorkerPool, settings: ServiceSettings, metrics: Metrics, errors: Responses
) -> dict[str, tuple[Any, Handler]]:
    """The three routes of a model. Its name stands in their paths, so that its instances can be described.

    Gives the two that are asked most, by their paths, with their handlers.
    """
    path = f"/v1/models/{pool.name}"
    # Bodies are read by the workers: FastAPI describes them and hands them on as bytes.
    described = {"required": True, "content": {"application/json": {"schema": pool.request_schema}}}

    async def model() -> Response:
        """Whether the model is ready, and what it takes."""
        return JSONResponse({"name": pool.name, "ready": pool.ready > 0, **pool.model})

    app.get(path, response_model=documents.ModelDocument, responses=errors, operation_id=f"get_{pool.name}")(model)
    calls: dict[str, tuple[Any, Handler]] = {}
    for verb, (document, what) in VERBS.items():
        handler = _handler(pool, verb, settings, metrics)
        app.post(
            f"{path}:{verb}", response_model=document, operation_id=f"{verb}_{pool.name}", description=what,
            responses={**errors, **_errors(400, 408, 413, 415, 422, 500, 503, 504)},
            openapi_extra={"requestBody": described},
        )(handler)  # fmt: skip
        calls[f"{path}:{verb}"] = app.router.routes[-1], handler
    return calls


def _handler(pool: WorkerPool, verb: str, settings: ServiceSettings, metrics: Metrics) -> Handler:
    async def answer(request: Request) -> Response:
        notes = request.state.notes
        notes.update(model=pool.name, verb=verb)
        check_headers(request.headers, settings.max_body)
        body = await read_body(request.stream(), settings.max_body, settings.patience)
        reply, waited = await pool.ask(verb, body, notes["key"])
        head = dict(reply.head)
        status = int(head.pop("status", 500))
        worked = float(head.pop("seconds", 0.0))
        notes.update(head, bytes=len(body), waited=round(waited, 6), worked=worked)
        if status != 200:
            raise RefusedError.from_body(status, reply.body)
        for name, count in head.get("answers", {}).items():
            metrics.answers.labels(pool.name, name).inc(count)
        metrics.wait_seconds.labels(pool.name).observe(waited)
        return Response(reply.body, media_type="application/json")

    return answer


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
