"""``fewest paper``: the paper's tables and figures, measured here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fewest.apps.cli._options import Json, command, show_help
from fewest.errors import UsageError

app = typer.Typer(
    name="paper", help="Measure the paper's tables and draw its figures on this machine.", invoke_without_command=True
)
app.callback()(show_help)

RUN = Path("paper-run")
Name = Annotated[str, typer.Argument(help="See `fewest paper list`.", show_default=False)]
Data = Annotated[str | None, typer.Option(help="Datasets with commas between. Default: all.")]
DataDir = Annotated[Path | None, typer.Option(help="Folder with the data. Default: FEWEST_DATA.")]
Jobs = Annotated[int, typer.Option(min=1, help="Splits measured at a time.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer rows and settings: does it run?")]
Run = Annotated[Path, typer.Option(help="Folder for results; a stopped run goes on from there.")]
SPLITS = "First N splits. Default: 10, but 3 of Diabetes and of expo; quick: 1."


@app.command("list")
def list_all(as_json: Json = False) -> int:
    """List the tables and figures, and the datasets they are made of."""
    from fewest.apps.cli._paper_work import run_list

    return run_list(as_json)


@command(app, "table", "_paper_work:run_table")
@dataclass(frozen=True)
class PaperTableRequest:
    """Measure one table, and print it beside the paper's figures."""

    name: Name
    data: Data = None
    splits: Annotated[int | None, typer.Option(min=1, help="First N splits. Default: 10, quick: 2.", metavar="N")] = (
        None
    )
    out: Annotated[Path | None, typer.Option(help="Folder for results; a stopped run goes on from there.")] = None
    jobs: Jobs = 1
    quick: Quick = False
    as_json: Json = False
    data_dir: DataDir = None

    @property
    def datasets(self) -> list[str] | None:
        """Names of the datasets asked for; None for all."""
        return _names(self.data)


@app.command()
def figure(
    name: Name,
    data: Data = None,
    splits: Annotated[int | None, typer.Option(min=1, help=SPLITS, metavar="N")] = None,
    out: Run = RUN,
    jobs: Jobs = 1,
    quick: Quick = False,
    as_json: Json = False,
    data_dir: DataDir = None,
) -> int:
    """Draw one figure as SVG and PNG, with its numbers; tables it shows are measured where they are not finished."""
    from fewest.apps.cli._paper_work import run_figure
    from fewest.experiments.paper.everything import Plan

    return run_figure(name, Plan(out, _names(data), splits, quick, data_dir, jobs), as_json)


@app.command("all")
def everything(
    out: Run = RUN,
    data: Data = None,
    splits: Annotated[int | None, typer.Option(min=1, help=SPLITS, metavar="N")] = None,
    jobs: Jobs = 1,
    quick: Quick = False,
    data_dir: DataDir = None,
) -> int:
    """Measure every table, draw every figure, and put all on one page."""
    from fewest.apps.cli._paper_work import run_all
    from fewest.experiments.paper.everything import Plan

    return run_all(Plan(out, _names(data), splits, quick, data_dir, jobs))


def _names(data: str | None) -> list[str] | None:
    """Names of the datasets asked for, each once; None for all."""
    if data is None:
        return None
    names = list(dict.fromkeys(name.strip() for name in data.split(",") if name.strip()))
    if not names:
        raise UsageError("--data names no dataset", do="fewest paper list")
    return names
