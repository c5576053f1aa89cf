"""``fewest paper``: the paper's tables, measured here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fewest.cli._options import Json, show_help

app = typer.Typer(name="paper", help="Measure the paper's tables on this machine.", invoke_without_command=True)
app.callback()(show_help)


@app.command("list")
def list_tables(as_json: Json = False) -> int:
    """List the tables and the datasets they are measured on."""
    from fewest.cli._paper_table import run_list

    return run_list(as_json)


@app.command()
def table(
    name: Annotated[str, typer.Argument(help="See `fewest paper list`.", show_default=False)],
    data: Annotated[str | None, typer.Option(help="Datasets with commas between. Default: all.")] = None,
    splits: Annotated[int | None, typer.Option(min=1, help="First so many splits. Default: 10, quick: 2.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for results; a stopped run goes on from there.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Splits measured at a time.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows and settings: does it run?")] = False,
    as_json: Json = False,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the data. Default: FEWEST_DATA.")] = None,
) -> int:
    """Measure one table, and print it beside the paper's figures."""
    from fewest.cli._paper_table import Request, run_table

    return run_table(
        Request(
            name=name, data=data, splits=splits, out=out, jobs=jobs, quick=quick, as_json=as_json, data_dir=data_dir
        )
    )
