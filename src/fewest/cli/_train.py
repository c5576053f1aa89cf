"""``fewest train``: models whose decisions need few reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fewest.cli._options import Json, show_help

app = typer.Typer(name="train", help="Train models whose decisions need few reasons.", invoke_without_command=True)
app.callback()(show_help)


@app.command()
def topt(
    data: Annotated[Path, typer.Argument(help="Training table: .csv, .csv.gz or .parquet.", show_default=False)],
    target: Annotated[str, typer.Option(help="Column with the labels.")],
    positive: Annotated[str | None, typer.Option(help="Class being explained. Default: the second of two.")] = None,
    regularization: Annotated[float, typer.Option(help="What a leaf costs, as a share of the rows.")] = 0.01,
    bound: Annotated[float, typer.Option(help="How much worse than the best a tree may be: 0.05 is 5 %.")] = 0.05,
    depth: Annotated[int, typer.Option(help="Most tests on a path.")] = 4,
    test_size: Annotated[float, typer.Option(help="Share of the rows kept for the test.")] = 0.2,
    random_state: Annotated[int, typer.Option(min=0, help="Seed of the split and of the thresholds.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for tree.json, tree.svg and front.csv.")] = None,
    as_json: Json = False,
) -> int:
    """The sparse tree, among all nearly optimal ones, whose decisions need the fewest reasons (TOpt)."""
    from fewest.cli._train_topt import Request, run

    return run(
        Request(
            data=data, target=target, positive=positive, regularization=regularization, bound=bound, depth=depth,
            test_size=test_size, random_state=random_state, out=out, as_json=as_json,
        )
    )  # fmt: skip
