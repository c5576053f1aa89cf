"""``fewest references``: build, look at, sign and compare the typical cases that people are compared with."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fewest.apps.cli._options import MODEL, Centre, Json, show_help

app = typer.Typer(name="references", help="Build, audit and sign the typical cases.", invoke_without_command=True)
app.callback()(show_help)

File = Annotated[Path, typer.Argument(help="A references file, .json.", show_default=False)]


class Kind(StrEnum):
    """Ways to make references of training rows."""

    single = "single"
    clusters = "clusters"
    near_threshold = "near-threshold"


@app.command()
def build(
    data: Annotated[str, typer.Argument(help="german, or a training table: .csv, .csv.gz or .parquet.")],
    out: Annotated[Path, typer.Option(help="References file to write, .json.")],
    kind: Annotated[Kind, typer.Option(help="One for all, one per group, or just-accepted cases.")] = Kind.single,
    model: Annotated[Path | None, typer.Option(help=f"{MODEL} Default for german: the demo's.")] = None,
    target: Annotated[str | None, typer.Option(help="Column of the table with the labels.")] = None,
    positive: Annotated[str | None, typer.Option(help="Class being explained. Default: the second of two.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Score from which a case counts as positive.")] = None,
    centre: Annotated[Centre | None, typer.Option(help="The middle of a group. Default: as in the library.")] = None,
    n_clusters: Annotated[int | None, typer.Option(min=1, help="How many groups. Default: as in the library.")] = None,
    embedding: Annotated[str | None, typer.Option(help="Map of the groups: pacmap, pca or identity.")] = None,
    width: Annotated[float, typer.Option(help="Band of scores that are just accepted.")] = 0.1,
    flexible: Annotated[float | None, typer.Option(help="Let numbers move by such a quantile, e.g. 0.05.")] = None,
    random_state: Annotated[int, typer.Option(min=0, help="Seed of the groups.")] = 0,
    as_json: Json = False,
    allow_pickle: Annotated[bool, typer.Option("--allow-pickle", help="Load files that run code.")] = False,
) -> int:
    """Make references of training rows and write them to a file."""
    from fewest.apps.cli._references_build import BuildRequest, run

    return run(
        BuildRequest(
            data=data, out=out, kind=kind.value, model=model, target=target, positive=positive, threshold=threshold,
            centre=None if centre is None else centre.value, n_clusters=n_clusters, embedding=embedding, width=width,
            flexible=flexible, random_state=random_state, as_json=as_json, allow_pickle=allow_pickle,
        )
    )  # fmt: skip


@app.command()
def show(
    file: File,
    html: Annotated[Path | None, typer.Option(help="Page to write, .html.")] = None,
    as_json: Json = False,
) -> int:
    """Show who references stand for, what is odd about them, and who signed them."""
    from fewest.apps.cli._references_file import run_show

    return run_show(file, html, as_json)


@app.command()
def sign(
    file: File,
    by: Annotated[str, typer.Option(help="Who signs.")],
    note: Annotated[str, typer.Option(help="What to remember.")] = "",
    only: Annotated[list[str] | None, typer.Option(help="Sign this reference only; repeat it.")] = None,
) -> int:
    """Sign references off; the file is written again."""
    from fewest.apps.cli._references_file import run_sign

    return run_sign(file, by, note, tuple(only or ()))


@app.command()
def diff(
    first: Annotated[Path, typer.Argument(help="A references file.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Another one.", show_default=False)],
    as_json: Json = False,
) -> int:
    """Compare the values of two files; exit 0 if people are compared with the same cases, 1 if not."""
    from fewest.apps.cli._references_file import run_diff

    return run_diff(first, second, as_json)
