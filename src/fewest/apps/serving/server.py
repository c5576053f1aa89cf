"""Runs a service: the socket, the workers, the HTTP server, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewest.apps.serving.log import Forward, Log
from fewest.apps.serving.settings import ServiceSettings
from fewest.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from fewest.apps.serving.door import Keys

BACKLOG = 128  # connections taken at once: each is a file before anybody has looked at it
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


def serve(models: Sequence[Path], settings: ServiceSettings, log: Log | None = None) -> int:
    """Serve models until SIGTERM or Ctrl-C; requests that are being answered then are finished.

    Parameters
    ----------
    models : sequence of Path
        Files written by ``Explainer.save``; each is served under the stem of its name.
    settings : ServiceSettings
    log : Log, optional
        Default: JSON lines on stderr.

    Examples
    --------
    >>> serve([Path("a/x.fewest"), Path("b/x.fewest")], ServiceSettings())
    Traceback (most recent call last):
    ...
    fewest.errors.UsageError: two models are called "x"
      Try: rename one of the files
    """
    named = names_of(models)
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        what = "fewest serve needs fastapi, prometheus_client and uvicorn"
        raise MissingExtraError(what, do='pip install "fewest[serve]"') from error
    from fewest.apps.serving.door import read_keys

    keys = read_keys(settings.keys) if settings.keys is not None else None
    with _bound(settings) as listener:
        asyncio.run(_run(named, settings, keys, listener, log or Log()))
    return 0


def names_of(models: Sequence[Path]) -> dict[str, Path]:
    """The name each model is served under."""
    named: dict[str, Path] = {}
    for path in models:
        name = path.stem
        if NAME.fullmatch(name) is None:
            raise UsageError(f'"{name}" cannot stand in an address', do="rename the file: letters, digits, . _ -")
        if name in named:
            raise UsageError(f'two models are called "{name}"', do="rename one of the files")
        named[name] = path
    if not named:
        raise UsageError("there is no model to serve", do="pass a file written by explainer.save")
    return named


def _bound(settings: ServiceSettings) -> socket.socket:
    """The address, taken before the models are loaded; nobody can connect until they are."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"{settings.host} port {settings.port} cannot be used: {error.strerror or error}",
            do="choose another --port",
        ) from error
    return listener


async def _run(
    named: dict[str, Path], settings: ServiceSettings, keys: Keys | None, listener: socket.socket, log: Log
) -> None:
    import uvicorn

    from fewest.apps.serving.app import create_app
    from fewest.apps.serving.connections import IDLE, Connections, fitting
    from fewest.apps.serving.pool import WorkerPool

    settings = replace(settings, connections=fitting(settings.connections))
    pools = {name: WorkerPool(name, path, settings, log) for name, path in named.items()}
    try:
        await asyncio.gather(*(pool.start() for pool in pools.values()))
        made: Any = Connections(settings, log).make  # called as the class of a connection would be
        config = uvicorn.Config(
            create_app(pools, settings, keys, log), http=made, ws="none", lifespan="on", log_config=None,
            access_log=False, proxy_headers=False, server_header=False, backlog=BACKLOG,
            timeout_keep_alive=IDLE, timeout_graceful_shutdown=int(settings.longest) + 1,
        )  # fmt: skip
        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).addHandler(Forward(log))
        server = uvicorn.Server(config)
        listener.listen(BACKLOG)
        host, port = listener.getsockname()[:2]
        log("listening", host=host, port=port, models=list(pools), keys=keys is not None)
        # The server sends itself the signal again when it is done; this one it may have without dying of it.
        signal.signal(signal.SIGTERM, lambda *_: None)
        await server.serve(sockets=[listener])
        log("stopped")
    finally:
        for pool in pools.values():
            await pool.close()
