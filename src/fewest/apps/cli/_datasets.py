"""``fewest datasets``: which of the paper's datasets are here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewest.apps.cli._options import Json, show_help

if TYPE_CHECKING:
    from fewest.datasets import ListedDataset

app = typer.Typer(
    name="datasets", help="The paper's datasets: found here, or where to get them.", invoke_without_command=True
)
app.callback()(show_help)


@app.command("list")
def list_datasets(
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the data. Default: FEWEST_DATA.")] = None,
    as_json: Json = False,
) -> int:
    """List the datasets; those that are found are loaded and checked."""
    import json
    from dataclasses import asdict

    from fewest.datasets import catalogue
    from fewest.errors import DataError

    if data_dir is not None and not data_dir.is_dir():
        raise DataError(f"--data-dir {data_dir} is not a folder", do="name the folder with the data")
    listed = catalogue(data_dir)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in listed], indent=1))
        return 0
    for one in listed:
        typer.echo("\n".join(_lines(one)))
    return 0


def _lines(one: ListedDataset) -> list[str]:
    """Sizes and terms; then where it is, or why it cannot be used; then where to get it."""
    from fewest.apps.cli._text import clean

    positives = "?" if one.positives is None else f"{one.positives:,}"
    sizes = f"{one.rows:>7,} rows  {one.features:>2} features  {positives:>6} positives"
    lines = [f"{one.name:<10}  {'found' if one.found else '-':<5}  {sizes}  {one.licence}"]
    if one.where:
        lines.append(f"  {clean(one.where)}" + (f": {clean(one.problem)}" if one.problem else ""))
    return [*lines, f"  get it: {one.get}"]
