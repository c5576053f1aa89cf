"""Commands in groups: ``fewest references``, ``train``, ``paper`` and ``datasets``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fewest.apps.cli._options import (
    MODEL,
    Above,
    AllowPickle,
    Centre,
    Json,
    Positive,
    RandomState,
    Threshold,
    command,
    group,
)
from fewest.errors import DataError, UsageError

references = group("references", "Build, audit and sign the typical cases.")
train = group("train", "Train models whose decisions need few reasons.")
paper = group("paper", "Measure the paper's tables and draw its figures on this machine.")
datasets = group("datasets", "The paper's datasets: found here, or where to get them.")

Kind = StrEnum("Kind", {"single": "single", "clusters": "clusters", "near_threshold": "near-threshold"})
Compared = StrEnum("Compared", ["single", "clusters"])
Encoder = StrEnum("Encoder", ["curves", "linear", "plain", "fill"])
File = Annotated[Path, typer.Argument(help="A references file, .json.", show_default=False)]
Table = Annotated[Path, typer.Argument(help="Training table: .csv, .csv.gz or .parquet.", show_default=False)]
Target = Annotated[str, typer.Option(help="Column with the labels.")]
TestSize = Annotated[float, typer.Option(help="Share of the rows kept for the test.")]
PAPER_RUN = Path("paper-run")
SPLITS = "First N splits. Default: 10, 3 of Diabetes, 3 or 1 in tables of training and counterfactuals; quick: 1."
Name = Annotated[str, typer.Argument(help="See `fewest paper list`.", show_default=False)]
Data = Annotated[str | None, typer.Option(help="Datasets with commas between. Default: all.")]
DataDir = Annotated[Path | None, typer.Option(help="Folder with the data. Default: FEWEST_DATA.")]
Jobs = Annotated[int, typer.Option(min=1, help="Splits measured at a time.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer rows and settings: does it run?")]
Run = Annotated[Path, typer.Option(help="Folder for results; a stopped run goes on from there.")]
Csv = Annotated[Path | None, typer.Option(help="A table of yours instead of the paper's: .csv, .csv.gz or .parquet.")]
OwnTarget = Annotated[str | None, typer.Option(help="With --csv: column with the labels.")]
OwnPositive = Annotated[str | None, typer.Option(help="With --csv: the label being explained.")]
OwnClusters = Annotated[int, typer.Option(min=1, help="With --csv: clusters of SEV-cluster.")]
Splits = Annotated[int | None, typer.Option(min=1, help=SPLITS, metavar="N")]


class Model(StrEnum):
    """Models that All-Opt can train."""

    logistic = "logistic"
    mlp = "mlp"
    boosted = "boosted"


@command(references, "build", "_references_work:run_build")
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
    above: Above = None
    centre: Annotated[Centre | None, typer.Option(help="Middle of a group. Default: mean; of groups: median.")] = None
    n_clusters: Annotated[int | None, typer.Option(min=1, help="Groups. Default: 8; near-threshold: 1.")] = None
    embedding: Annotated[str | None, typer.Option(help="Map of the groups: identity, pca or pacmap.")] = None
    assignment: Annotated[str | None, typer.Option(help="Which of several: features, embedding or sparsest.")] = None
    m: Annotated[float | None, typer.Option(help="How soft groups are to refused rows. Default: 2.")] = None
    min_share: Annotated[float | None, typer.Option(help="Least share of a group. Default: 0.02.")] = None
    preset: Annotated[str | None, typer.Option(help="SEV-cluster of the paper's text or the authors' code.")] = None
    training_rows: Annotated[bool, typer.Option("--training-rows", help="The file may hold training rows.")] = False
    width: Annotated[float | None, typer.Option(help="Band of scores that are just accepted. Default: 0.1.")] = None
    flexible: Annotated[float | None, typer.Option(help="Let numbers move by such a quantile, e.g. 0.05.")] = None
    random_state: RandomState = 0
    as_json: Json = False
    allow_pickle: AllowPickle = False


@references.command()
def show(
    file: File,
    html: Annotated[Path | None, typer.Option(help="Page to write, .html.")] = None,
    as_json: Json = False,
) -> int:
    """Show who references stand for, what is odd about them, and who signed them."""
    from fewest.apps.cli._references_work import run_show

    return run_show(file, html, as_json)


@references.command()
def sign(
    file: File,
    by: Annotated[str, typer.Option(help="Who signs.")],
    note: Annotated[str, typer.Option(help="What to remember.")] = "",
    only: Annotated[list[str] | None, typer.Option(help="Sign this reference only; repeat it.")] = None,
) -> int:
    """Sign references off; the file is written again."""
    from fewest.apps.cli._references_work import run_sign

    return run_sign(file, by, note, tuple(only or ()))


@references.command()
def diff(
    first: Annotated[Path, typer.Argument(help="A references file.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Another one.", show_default=False)],
    as_json: Json = False,
) -> int:
    """Compare the values of two files; exit 0 if people are compared with the same cases, 1 if not."""
    from fewest.apps.cli._references_work import run_diff

    return run_diff(first, second, as_json)


@command(train, "topt", "_train_work:run_topt")
@dataclass(frozen=True)
class TOptRequest:
    """The sparse tree, among all nearly optimal ones, whose decisions need the fewest reasons (TOpt)."""

    data: Table
    target: Target
    positive: Positive = None
    regularization: Annotated[float, typer.Option(help="What a leaf costs, as a share of the rows.")] = 0.01
    bound: Annotated[float, typer.Option(help="How much worse than the best a tree may be: 0.05 is 5 %.")] = 0.05
    depth: Annotated[int, typer.Option(help="Most tests on a path.")] = 4
    test_size: TestSize = 0.2
    random_state: RandomState = 0
    out: Annotated[Path | None, typer.Option(help="Folder for tree.json, tree.svg and front.csv.")] = None
    as_json: Json = False


@command(train, "allopt", "_train_work:run_allopt")
@dataclass(frozen=True)
class AllOptRequest:
    """A model trained so that one feature is enough to change its decisions (All-Opt)."""

    data: Table
    target: Target
    positive: Positive = None
    model: Annotated[Model, typer.Option(help="What to train; boosted: leaf values of a fitted booster.")] = (
        Model.logistic
    )
    references: Annotated[Compared, typer.Option(help="Typical cases decisions are compared with.")] = Compared.single
    encoder: Annotated[
        Encoder | None, typer.Option(help="How columns are encoded; fill: numbers scaled, missing values filled in.")
    ] = None
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


@paper.command("list")
def list_all(as_json: Json = False) -> int:
    """List the tables and figures, and the datasets they are made of."""
    from fewest.apps.cli._paper_work import run_list

    return run_list(as_json)


@command(paper, "table", "_paper_work:run_table")
@dataclass(frozen=True)
class PaperTableRequest:
    """Measure one table, and print it beside the paper's figures."""

    name: Name
    data: Data = None
    splits: Annotated[int | None, typer.Option(min=1, help="First N splits. Default: 10, quick: 2.", metavar="N")] = (
        None
    )
    preset: Annotated[str | None, typer.Option(help="Whose procedure: paper, authors, ours or both.")] = None
    out: Annotated[Path | None, typer.Option(help="Folder for results; a stopped run goes on from there.")] = None
    jobs: Jobs = 1
    quick: Quick = False
    as_json: Json = False
    data_dir: DataDir = None
    csv: Csv = None
    target: OwnTarget = None
    positive: OwnPositive = None
    n_clusters: OwnClusters = 4


@paper.command()
def figure(
    name: Name,
    data: Data = None,
    splits: Splits = None,
    out: Run = PAPER_RUN,
    jobs: Jobs = 1,
    quick: Quick = False,
    as_json: Json = False,
    data_dir: DataDir = None,
    csv: Csv = None,
    target: OwnTarget = None,
    positive: OwnPositive = None,
    n_clusters: OwnClusters = 4,
) -> int:
    """Draw one figure as SVG and PNG, with its numbers; tables it shows are measured where they are not finished."""
    from fewest.apps.cli._paper_work import place, run_figure
    from fewest.experiments.paper.everything import Plan

    own = place(data_dir, data, csv, target, positive, n_clusters)
    return run_figure(name, Plan(out, names_in(data), splits, quick, own, jobs), as_json)


@paper.command("all")
def everything(
    out: Run = PAPER_RUN,
    data: Data = None,
    splits: Splits = None,
    jobs: Jobs = 1,
    quick: Quick = False,
    data_dir: DataDir = None,
    csv: Csv = None,
    target: OwnTarget = None,
    positive: OwnPositive = None,
    n_clusters: OwnClusters = 4,
) -> int:
    """Measure every table, draw every figure, and put all on one page."""
    from fewest.apps.cli._paper_work import place, run_all
    from fewest.experiments.paper.everything import Plan

    own = place(data_dir, data, csv, target, positive, n_clusters)
    return run_all(Plan(out, names_in(data), splits, quick, own, jobs))


def names_in(data: str | None) -> list[str] | None:
    """Names of the datasets asked for, each once; None for all."""
    if data is None:
        return None
    names = list(dict.fromkeys(name.strip() for name in data.split(",") if name.strip()))
    if not names:
        raise UsageError("--data names no dataset", do="fewest paper list")
    return names


@datasets.command("list")
def list_datasets(data_dir: DataDir = None, as_json: Json = False) -> int:
    """List the datasets; those that are found are loaded and checked."""
    import json
    from dataclasses import asdict

    from fewest.apps.cli._text import clean
    from fewest.datasets import catalogue

    if data_dir is not None and not data_dir.is_dir():
        raise DataError(f"--data-dir {data_dir} is not a folder", do="name the folder with the data")
    listed = catalogue(data_dir)
    if as_json:
        print(json.dumps([asdict(one) for one in listed], indent=1))
        return 0
    for one in listed:
        positives = "?" if one.positives is None else f"{one.positives:,}"
        sizes = f"{one.rows:>7,} rows  {one.features:>2} features  {positives:>6} positives"
        print(f"{one.name:<10}  {'found' if one.found else '-':<5}  {sizes}  {one.licence}")
        if one.where:
            print(clean(f"  {one.where}" + (f": {one.problem}" if one.problem else "")))
        print(f"  get it: {one.get}")
    return 0
