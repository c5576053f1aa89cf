"""Tables in, results out. A result file is complete or absent: it is written beside its place and then moved there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fewest.errors import DataError, FewestError, MissingExtraError, UsageError
from fewest.results.explanations import Explanations
from fewest.tables.files import write_text

RESULTS = (".json", ".csv", ".html")


def read_table(path: Path, text: Sequence[str] = ()) -> pd.DataFrame:
    """Read a CSV (also gzip-compressed) or Parquet file; columns named in ``text`` are text, whatever they hold."""
    if not path.is_file():
        raise DataError(f"there is no file {path}", do="check the path")
    name = path.name.lower()
    try:
        if name.endswith((".csv", ".csv.gz")):
            _refuse_twins(path)
            return pd.read_csv(path, low_memory=False, dtype=dict.fromkeys(text, "str"))
        if name.endswith((".parquet", ".pq")):
            return pd.read_parquet(path)
    except ImportError as error:
        raise MissingExtraError(f"reading {path.name} needs pyarrow", do="pip install pyarrow") from error
    except FewestError:
        raise
    except (ValueError, OSError, EOFError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path.name} cannot be read as a table: {first}", do="check that it is whole") from error
    raise DataError(f"{path.name} is of no known kind of table", do="pass .csv, .csv.gz or .parquet")


def _refuse_twins(path: Path) -> None:
    """Refuse a header with the same name twice: pandas would rename the second one and nobody would know."""
    header = pd.read_csv(path, header=None, nrows=1, dtype="str").iloc[0]
    twins = header[header.duplicated() & header.notna()]
    if len(twins):
        raise DataError(f'{path.name} has the column "{twins.iloc[0]}" more than once', do="keep one of them")


def check_result_path(path: Path | None) -> None:
    """Refuse a result file of unknown kind before any work is done."""
    if path is None:
        return
    if path.suffix.lower() not in RESULTS:
        raise UsageError(f"--out {path.name}: the kind of file is not known", do="let it end in .json, .csv or .html")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"--out {path}: a file cannot be written here", do="name a file in a folder that exists")


def write_result(explanations: Explanations, path: Path, title: str, verb: str) -> None:
    """Write explanations as JSON, CSV or an HTML report, by the file's ending."""
    kind = path.suffix.lower()
    if kind == ".json":
        write_text(path, explanations.to_json() + "\n")
    elif kind == ".csv":
        write_text(path, as_csv(explanations))
    else:
        from fewest.reporting import html

        write_text(path, html(explanations, title, verb=verb))


def as_csv(explanations: Explanations) -> str:
    """The table of answers as CSV that is safe to open in a spreadsheet; lists are JSON inside their cells."""
    from fewest.runs import views

    table = explanations.to_frame()
    table.insert(0, "case", table.index)
    return views.as_csv(table).decode()
