"""``fewest explore``: a run folder in the browser, on this machine only."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewest.apps.cli._options import MODEL, RUN, AllowPickle

if TYPE_CHECKING:
    from fewest.apps.explorer import Live

PORT = 8765


def explore(
    run: Annotated[Path, typer.Argument(help=RUN, show_default=False)],
    other: Annotated[Path | None, typer.Option("--with", help="Another run folder, to compare.")] = None,
    live: Annotated[bool, typer.Option("--live", help="Ask the model: what-if, and effects of edits.")] = False,
    model: Annotated[Path | None, typer.Option(help=f"With --live. {MODEL}")] = None,
    protected: Annotated[list[str] | None, typer.Option(help="Withhold sets that use it; repeat it.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = PORT,
    allow_host: Annotated[list[str] | None, typer.Option(help="Further name it is called by; repeat it.")] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    allow_pickle: AllowPickle = False,
) -> int:
    """Look at a run folder in the browser: decisions, population, references, comparisons, trees."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # Arrow's own pool keeps 14 MB; read when it loads
    from fewest.apps.explorer import Binding
    from fewest.errors import UsageError

    _check_extra()
    if live and model is None:
        raise UsageError("--live asks the model, and none is named", do="add --model FILE")
    binding = Binding(host, port, tuple(allow_host or ()))
    binding.check()
    for folder in (run, other or run):
        if not (folder / "manifest.json").is_file():
            _refuse(folder)
    from fewest.apps.explorer import announcer, create_app, serve

    asked = None if model is None else _live(run, model, allow_pickle)
    app = create_app(run, other=other, live=asked, protected=tuple(protected or ()))
    serve(app, binding, announcer(open_browser))
    return 0


def _refuse(folder: Path) -> None:
    """Say what is wrong with a folder; only then is there time to load what knows it."""
    from fewest.runs.run import Run

    Run.open(folder)


def _check_extra() -> None:
    """Refuse in plain words where a library is missing, without loading any."""
    from importlib.util import find_spec

    from fewest.errors import MissingExtraError

    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise MissingExtraError(f"the explorer needs {name}", do='pip install "fewest[explore]"')


def _live(run: Path, model: Path, allow_pickle: bool) -> Live:
    """The model, with the choices of the run; the only part that needs the heavy libraries."""
    from fewest.apps.cli._verify import decision_of
    from fewest.apps.explorer import Live
    from fewest.persistence.models import load_model
    from fewest.runs.run import Run
    from fewest.runs.storage import file_digest

    opened = Run.open(run)
    settings = opened.manifest["settings"]
    known = opened.manifest["model"]
    made = Live.open(decision_of(load_model(model, allow_pickle), settings), run, settings, model.name)
    if known["file"] is not None and known["sha256"] != file_digest(model):
        print(f"fewest: warning: {model.name} is not the file this run was made with", file=sys.stderr)
    return made
