"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

MODEL = (
    "Fitted model: .skops, .fewest, .onnx, XGBoost .json/.ubj, tree.json, LightGBM .txt; "
    ".joblib, .pkl with --allow-pickle."
)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


class Centre(StrEnum):
    """Typical cases that can be built from the training table."""

    mean = "mean"
    median = "median"
    medoid = "medoid"


def show_help(context: typer.Context) -> None:
    """Print the help of a group of commands that was called without one, and end well."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(0)
