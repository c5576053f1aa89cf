"""The paper's tables, one module each: measured here, split by split, with the printed figures beside them.

``find("trees")`` gives a table, `run_table` measures it, `summarise` compares: as ``fewest paper table trees`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewest.datasets import Dataset
from fewest.errors import UsageError, check_count, check_word
from fewest.experiments.paper.base import Printed, Record, Table, TableColumn, Tell, Unit, silent
from fewest.experiments.paper.data import Place, Rows, data_folder, load_split
from fewest.experiments.paper.own_data import OwnData
from fewest.experiments.paper.runner import FileStore, Store, run_table
from fewest.experiments.paper.summary import as_dict, as_markdown, as_text, summarise

if TYPE_CHECKING:
    from fewest.experiments.paper.everything import Results

__all__ = [
    "FileStore",
    "OwnData",
    "Printed",
    "Record",
    "Rows",
    "Store",
    "Table",
    "TableColumn",
    "Unit",
    "as_dict",
    "as_markdown",
    "as_text",
    "data_folder",
    "find",
    "load_split",
    "names",
    "run",
    "run_table",
    "summarise",
]

# Name -> module and class; a module is loaded when its table is asked for.
_TABLES = {
    "sev1": ("points", "Sev1Table"),
    "sevc": ("points", "SevClusterTable"),
    "sevcf": ("points", "SevFlexibleTable"),
    "trees": ("trees", "TreesTable"),
    "allopt1": ("allopt", "AllOpt1Table"),
    "alloptc": ("allopt", "AllOptClusterTable"),
    "expo": ("allopt", "ExpoTable"),
    "expo_curve": ("expo_curve", "ExpoCurveTable"),
    "sizes": ("sizes", "SizesTable"),
    "sensitivity": ("points", "SensitivityTable"),
    "floors": ("floors", "FloorsTable"),
    "counterfactuals": ("counterfactuals", "CounterfactualsTable"),
}


def run(
    data: OwnData | Dataset, *, out: str | Path, splits: int | Sequence[tuple[Any, Any]] | None = None,
    quick: bool = False, n_jobs: int = 1, tell: Tell = silent,
) -> Results:  # fmt: skip
    """Every table and figure of the paper on a table of yours, and the page of all; what is finished is kept.

    Parameters
    ----------
    data : OwnData or Dataset
        A table with its labels; of a `fewest.datasets.Dataset` 1 is the class being explained.
    out : path
        Folder of the pages; a run that was stopped goes on from what is there.
    splits : int, or list of (training rows, test rows)
        The first seeds, this many, or splits of yours, as positions in the table given. Default: 10; 1 when quick.
    quick, n_jobs, tell
        As in `find` and `run_table`.

    Returns
    -------
    Results
        Tables, figures and cases; ``left_out`` and ``failed`` say what is not there, and why.

    Examples
    --------
    >>> from fewest.datasets import load
    >>> run(load("german"), out="my-pages", splits=0)
    Traceback (most recent call last):
    fewest.errors.UsageError: splits is 0
      Try: use a whole number from 1 on, or pairs of row positions
    """
    everything = import_module(f"{__name__}.everything")
    own = data if isinstance(data, OwnData) else OwnData.read(data.X, data.y, 1, name=data.name)
    count = None
    if isinstance(splits, int):
        check_count("splits", splits, do=", or pairs of row positions")
        count = splits
    elif splits is not None:
        own = own.with_splits(splits)
    plan = everything.Plan(out, None, count, quick, own, n_jobs)
    results: Results = everything.everything(plan, tell, partial(everything.write_page, plan))
    everything.write_page(plan, results)
    return results


def names() -> tuple[str, ...]:
    """Names that `find` knows.

    Examples
    --------
    >>> "trees" in names()
    True
    """
    return tuple(_TABLES)


def find(name: str, folder: Place = None, quick: bool = False, preset: str | None = None) -> Table:
    """One of `names()`, bound to the folder of the paper's data (default: FEWEST_DATA), and to full or quick settings.

    ``preset``, where the table has some, leaves its lines of the paper's procedure (``paper``), of ours (``ours``), or
    ``both``, and measures nothing else.

    Examples
    --------
    >>> find("trees").title
    'The model performance with different tree-based methods'
    """
    if name not in _TABLES:
        raise UsageError(f'there is no table "{name}"', do=f"choose from {', '.join(_TABLES)}")
    module, kind = _TABLES[name]
    table: Table = getattr(import_module(f"{__name__}.{module}"), kind)(folder=folder, quick=quick, preset=preset)
    if preset is not None and not table.presets:
        raise UsageError(f'the table "{name}" has one procedure', do="leave --preset out")
    if preset is not None:
        check_word("preset", preset, table.presets)
    return table
