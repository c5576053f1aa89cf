"""``fewest references``: build, look at, sign and compare the typical cases that people are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fewest.apps.cli._options import (
    MODEL,
    AllowPickle,
    Centre,
    Json,
    Positive,
    RandomState,
    Threshold,
    command,
    show_help,
)

app = typer.Typer(name="references", help="Build, audit and sign the typical cases.", invoke_without_command=True)
app.callback()(show_help)

File = Annotated[Path, typer.Argument(help="A references file, .json.", show_default=False)]


class Kind(StrEnum):
    """Ways to make references of training rows."""

    single = "single"
    clusters = "clusters"
    near_threshold = "near-threshold"


@command(app, "build", "_references_work:run_build")
@dataclass(frozen=True)
class BuildRequest:
    """Make references of training rows and write them to a file."""

    data: Annotated[str, typer.Argument(help="german, or a training table: .csv, .csv.gz or .parquet.")]
    out: Annotated[Path, typer.Option(help="References file to write, .json.")]
    kind: Annotated[Kind, typer.Option(help="One for all, one per group, or just-accepted cases.")] = Kind.single
    model: Annotated[Path | None, typer.Option(help=f"{MODEL} Default for german: the demo's.")] = None
    target: Annotated[str | None, typer.Option(help="Column of the table with the labels.")] = None
    positive: Positive = None
    threshold: Threshold = None
    centre: Annotated[Centre | None, typer.Option(help="The middle of a group. Default: mean; of groups: median.")] = (
        None
    )
    n_clusters: Annotated[int | None, typer.Option(min=1, help="How many groups. Default: 8; near-threshold: 1.")] = (
        None
    )
    embedding: Annotated[str | None, typer.Option(help="Map of the groups: identity, pca or pacmap.")] = None
    width: Annotated[float | None, typer.Option(help="Band of scores that are just accepted. Default: 0.1.")] = None
    flexible: Annotated[float | None, typer.Option(help="Let numbers move by such a quantile, e.g. 0.05.")] = None
    random_state: RandomState = 0
    as_json: Json = False
    allow_pickle: AllowPickle = False


@app.command()
def show(
    file: File,
    html: Annotated[Path | None, typer.Option(help="Page to write, .html.")] = None,
    as_json: Json = False,
) -> int:
    """Show who references stand for, what is odd about them, and who signed them."""
    from fewest.apps.cli._references_work import run_show

    return run_show(file, html, as_json)


@app.command()
def sign(
    file: File,
    by: Annotated[str, typer.Option(help="Who signs.")],
    note: Annotated[str, typer.Option(help="What to remember.")] = "",
    only: Annotated[list[str] | None, typer.Option(help="Sign this reference only; repeat it.")] = None,
) -> int:
    """Sign references off; the file is written again."""
    from fewest.apps.cli._references_work import run_sign

    return run_sign(file, by, note, tuple(only or ()))


@app.command()
def diff(
    first: Annotated[Path, typer.Argument(help="A references file.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Another one.", show_default=False)],
    as_json: Json = False,
) -> int:
    """Compare the values of two files; exit 0 if people are compared with the same cases, 1 if not."""
    from fewest.apps.cli._references_work import run_diff

    return run_diff(first, second, as_json)
