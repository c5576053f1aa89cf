"""The paper's tables, one module each: measured here, split by split, with the printed figures beside them.

``find("trees")`` gives a table, `run` measures it, `summarise` compares; ``fewest paper table trees`` does all three.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from fewest.errors import UsageError, check_word
from fewest.experiments.paper.base import Printed, Record, Table, TableColumn, Unit
from fewest.experiments.paper.data import Rows, data_folder, load_split
from fewest.experiments.paper.runner import FileStore, Store, run
from fewest.experiments.paper.summary import as_dict, as_markdown, as_text, summarise

__all__ = [
    "FileStore",
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
    "counterfactuals": ("counterfactuals", "CounterfactualsTable"),
}


def names() -> tuple[str, ...]:
    """Names that `find` knows.

    Examples
    --------
    >>> "trees" in names()
    True
    """
    return tuple(_TABLES)


def find(name: str, folder: str | Path | None = None, quick: bool = False, preset: str | None = None) -> Table:
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
