"""``fewest serve``: explainers over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SAVED = "Files written by explainer.save(path); each is served under the stem of its name."


def serve(
    models: Annotated[list[Path], typer.Argument(help=SAVED, show_default=False)],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one; the log says which.")] = 8000,
    keys: Annotated[Path | None, typer.Option(help="API keys: a name:sha256 per line. Needed beyond loopback.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes per model. Default: the cores, shared.")] = None,
    memory: Annotated[float, typer.Option(help="GB a worker may take on top of its model.")] = 2.0,
    time_limit: Annotated[float, typer.Option(help="Seconds per request; then the answer is BUDGET.")] = 10.0,
    grace: Annotated[float, typer.Option(help="Further seconds until a worker is stopped.")] = 5.0,
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of a request.")] = 1_000_000,
    max_instances: Annotated[int, typer.Option(min=1, help="Cases of a request.")] = 1_000,
    queue: Annotated[int, typer.Option(min=1, help="Requests of a model that may wait.")] = 256,
    patience: Annotated[float, typer.Option(help="Seconds a request may wait, or take to arrive.")] = 15.0,
    rate: Annotated[float, typer.Option(min=0, help="Requests per second of a key; 0: no limit.")] = 100.0,
    burst: Annotated[float, typer.Option(help="Requests of a key at once, after a pause.")] = 200.0,
) -> int:
    """Explain and predict over HTTP, in the shape of KServe's V1 protocol; models run in processes of their own."""
    from fewest.apps.serving import ServiceSettings
    from fewest.apps.serving import serve as run

    settings = ServiceSettings(
        host=host, port=port, keys=keys, workers=workers or share_of_cores(len(models)), memory=memory,
        time_limit=time_limit, grace=grace, max_body=max_body, max_instances=max_instances, queue=queue,
        patience=patience, rate=rate, burst=burst,
    )  # fmt: skip
    for model in models:
        _check_file(model)
    return run(models, settings)


def share_of_cores(models: int) -> int:
    """Workers for each of some models, so that together they take the cores, and each has one."""
    import os

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // max(1, models))


def _check_file(path: Path) -> None:
    from fewest.errors import ModelError

    if not path.is_file():
        raise ModelError(f"there is no file {path}", do="write one with explainer.save(path)")
    if path.suffix.lower() != ".fewest":
        raise ModelError(
            f"{path.name} is not a .fewest file: the service needs a model together with its references",
            do="make one in Python, with the model of that file: "
            f"fewest.Explainer(decision, references).save('{path.stem}.fewest')",
        )
