"""``fewest train``: models whose decisions need few reasons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fewest.apps.cli._options import Json, Positive, RandomState, command, show_help

Data = Annotated[Path, typer.Argument(help="Training table: .csv, .csv.gz or .parquet.", show_default=False)]
Target = Annotated[str, typer.Option(help="Column with the labels.")]
TestSize = Annotated[float, typer.Option(help="Share of the rows kept for the test.")]

app = typer.Typer(name="train", help="Train models whose decisions need few reasons.", invoke_without_command=True)
app.callback()(show_help)


class Model(StrEnum):
    """Models that All-Opt can train."""

    logistic = "logistic"
    mlp = "mlp"
    boosted = "boosted"


class Compared(StrEnum):
    """What decisions are compared with while a model is trained."""

    single = "single"
    clusters = "clusters"


@command(app, "topt", "_train_topt:run")
@dataclass(frozen=True)
class TOptRequest:
    """The sparse tree, among all nearly optimal ones, whose decisions need the fewest reasons (TOpt)."""

    data: Data
    target: Target
    positive: Positive = None
    regularization: Annotated[float, typer.Option(help="What a leaf costs, as a share of the rows.")] = 0.01
    bound: Annotated[float, typer.Option(help="How much worse than the best a tree may be: 0.05 is 5 %.")] = 0.05
    depth: Annotated[int, typer.Option(help="Most tests on a path.")] = 4
    test_size: TestSize = 0.2
    random_state: RandomState = 0
    out: Annotated[Path | None, typer.Option(help="Folder for tree.json, tree.svg and front.csv.")] = None
    as_json: Json = False


@command(app, "allopt", "_train_allopt:run")
@dataclass(frozen=True)
class AllOptRequest:
    """A model trained so that one feature is enough to change its decisions (All-Opt)."""

    data: Data
    target: Target
    positive: Positive = None
    model: Annotated[Model, typer.Option(help="What to train; boosted: leaf values of a fitted booster.")] = (
        Model.logistic
    )
    references: Annotated[Compared, typer.Option(help="Typical cases decisions are compared with.")] = Compared.single
    c1: Annotated[float | None, typer.Option(help="Weight of the SEV loss. Default: 1.")] = None
    c2: Annotated[float, typer.Option(help="Weight of the loss of references that are decided positive.")] = 1.0
    search: Annotated[bool, typer.Option("--search", help="Choose C1 on training rows held out.")] = False
    tolerance: Annotated[
        float | None, typer.Option(help="With --search: the accuracy and AUC to give up. Default: 0.01.")
    ] = None
    epochs: Annotated[int, typer.Option(help="Epochs with the SEV loss.")] = 20
    warmup_epochs: Annotated[int | None, typer.Option(help="Epochs before. Default: 80; boosted: 0.")] = None
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto"
    test_size: TestSize = 0.2
    random_state: RandomState = 0
    out: Annotated[Path | None, typer.Option(help="Folder for the model, its references and the figures.")] = None
    as_json: Json = False
