"""``fewest train``: models whose decisions need few reasons."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fewest.apps.cli._options import Json, show_help

Data = Annotated[Path, typer.Argument(help="Training table: .csv, .csv.gz or .parquet.", show_default=False)]
Target = Annotated[str, typer.Option(help="Column with the labels.")]
Positive = Annotated[str | None, typer.Option(help="Class being explained. Default: the second of two.")]
TestSize = Annotated[float, typer.Option(help="Share of the rows kept for the test.")]

app = typer.Typer(name="train", help="Train models whose decisions need few reasons.", invoke_without_command=True)
app.callback()(show_help)


@app.command()
def topt(
    data: Data,
    target: Target,
    positive: Positive = None,
    regularization: Annotated[float, typer.Option(help="What a leaf costs, as a share of the rows.")] = 0.01,
    bound: Annotated[float, typer.Option(help="How much worse than the best a tree may be: 0.05 is 5 %.")] = 0.05,
    depth: Annotated[int, typer.Option(help="Most tests on a path.")] = 4,
    test_size: TestSize = 0.2,
    random_state: Annotated[int, typer.Option(min=0, help="Seed of the split and of the thresholds.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for tree.json, tree.svg and front.csv.")] = None,
    as_json: Json = False,
) -> int:
    """The sparse tree, among all nearly optimal ones, whose decisions need the fewest reasons (TOpt)."""
    from fewest.apps.cli._train_topt import TOptRequest, run

    return run(
        TOptRequest(
            data=data, target=target, positive=positive, regularization=regularization, bound=bound, depth=depth,
            test_size=test_size, random_state=random_state, out=out, as_json=as_json,
        )
    )  # fmt: skip


class Model(StrEnum):
    """Models that All-Opt can train."""

    logistic = "logistic"
    mlp = "mlp"
    boosted = "boosted"


class Compared(StrEnum):
    """What decisions are compared with while a model is trained."""

    single = "single"
    clusters = "clusters"


@app.command()
def allopt(
    data: Data,
    target: Target,
    positive: Positive = None,
    model: Annotated[
        Model, typer.Option(help="What to train; boosted: leaf values of a fitted booster.")
    ] = Model.logistic,
    references: Annotated[Compared, typer.Option(help="Typical cases decisions are compared with.")] = Compared.single,
    c1: Annotated[float | None, typer.Option(help="Weight of the SEV loss. Default: 1.")] = None,
    c2: Annotated[float, typer.Option(help="Weight of the loss of references that are decided positive.")] = 1.0,
    search: Annotated[bool, typer.Option("--search", help="Choose C1 on training rows held out.")] = False,
    tolerance: Annotated[
        float | None, typer.Option(help="With --search: the accuracy and AUC to give up. Default: 0.01.")
    ] = None,
    epochs: Annotated[int, typer.Option(help="Epochs with the SEV loss.")] = 20,
    warmup_epochs: Annotated[int | None, typer.Option(help="Epochs before. Default: 80; boosted: 0.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    test_size: TestSize = 0.2,
    random_state: Annotated[
        int, typer.Option("--random-state", "--seed", min=0, help="Seed of the split and of the training.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the model, its references and the figures.")] = None,
    as_json: Json = False,
) -> int:
    """A model trained so that one feature is enough to turn its decisions (All-Opt)."""
    from fewest.apps.cli._train_allopt import AllOptRequest, run

    return run(
        AllOptRequest(
            data=data, target=target, positive=positive, model=model.value, references=references.value, c1=c1, c2=c2,
            search=search, tolerance=tolerance, epochs=epochs, warmup_epochs=warmup_epochs, device=device,
            test_size=test_size, random_state=random_state, out=out, as_json=as_json,
        )
    )  # fmt: skip
