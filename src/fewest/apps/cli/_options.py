"""Options that several commands share, and commands whose options are the fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

MODEL = (
    "Fitted model: .skops, .fewest, .onnx, XGBoost .json/.ubj, tree.json, LightGBM .txt; "
    ".joblib, .pkl with --allow-pickle."
)
RUN = "The run folder that `fewest explain` wrote."
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
AllowPickle = Annotated[bool, typer.Option("--allow-pickle", help="Allow pickle files (they can run code).")]
RandomState = Annotated[int, typer.Option(min=0, help="Seed for sampling.")]
Positive = Annotated[str | None, typer.Option(help="Class being explained. Default: the second of two.")]
Threshold = Annotated[float | None, typer.Option(help="Score from which a case counts as positive.")]
Above = Annotated[
    bool | None,
    typer.Option("--above/--below", help="For predicted numbers: explain those at the threshold and above, or below."),
]
OnlyWays = Annotated[
    list[str] | None, typer.Option(help="COL=up or COL=down: it changes that way only; repeat it.", metavar="COL=WAY")
]
Ranges = Annotated[
    list[str] | None, typer.Option(help="It changes to these values only; repeat it.", metavar="COL=LOW:HIGH")
]
Levels = Annotated[
    list[str] | None, typer.Option(help="It changes to these levels only; repeat it.", metavar="COL=A,B")
]
CredibilityKind = Annotated[
    str | None,
    typer.Option(
        help="Answers lead where accepted cases are: mixture, neighbours or leaf-support; :Q sets the floor (0.05).",
        metavar="KIND[:Q]",
    ),
]
OLD_NAMES = {"seed": "random-state"}  # still read, no longer shown

Request = TypeVar("Request")


Centre = StrEnum("Centre", ["mean", "median", "medoid"])


def show_help(context: typer.Context) -> None:
    """Print the help of a group of commands that was called without one, and end well."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(0)


def group(name: str, what: str) -> typer.Typer:
    """A group of commands."""
    made = typer.Typer(name=name, help=what, invoke_without_command=True)
    made.callback()(show_help)
    return made


def command(app: typer.Typer, name: str, work: str) -> Callable[[type[Request]], type[Request]]:
    """Make a command of a dataclass: its fields are the options, its docstring is the help.

    ``work``, a function of a module beside this one, gets the filled dataclass; it is imported when the command runs.
    """
    module, function = work.split(":")

    def register(request: type[Request]) -> type[Request]:
        def call(**given: Any) -> int:
            return int(getattr(import_module(f"fewest.apps.cli.{module}"), function)(request(**given)))

        hints = get_type_hints(request, include_extras=True)
        fields = [part.replace(annotation=hints[part.name]) for part in inspect.signature(request).parameters.values()]
        call.__annotations__, call.__doc__ = hints, request.__doc__
        vars(call)["__signature__"] = inspect.Signature(fields)
        app.command(name)(call)
        return request

    return register
