"""Tables in, results out. A result file is complete or absent: it is written beside its place and then moved there."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fewest.apps.cli._text import clean
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
            way = _separators(path)
            _refuse_twins(path, way["sep"])
            return pd.read_csv(path, low_memory=False, dtype=dict.fromkeys(text, "str"), **way)
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


def _separators(path: Path) -> dict[str, Any]:
    """How a CSV file divides columns and writes decimals, by its first rows; said where it is not the usual way."""
    first = pd.read_csv(path, header=None, nrows=1, sep="\0", dtype="str", engine="python", quoting=3).iloc[0, 0]
    plain = re.sub(r'"[^"]*"', "", first)
    if plain.count(";") <= plain.count(","):
        return {"sep": ",", "decimal": "."}
    cells = pd.read_csv(path, sep=";", dtype="str", nrows=1000).stack()
    commas, points = (cells.str.fullmatch(rf"\s*[-+]?\d+{mark}\d+\s*").any() for mark in (",", r"\."))
    decimal = "," if commas and not points else "."
    said = " and decimal commas" if decimal == "," else ""
    print(clean(f"{path.name}: read with semicolons between columns{said}"), file=sys.stderr)
    return {"sep": ";", "decimal": decimal}


def _refuse_twins(path: Path, sep: str) -> None:
    """Refuse a header with the same name twice: pandas would rename the second one and nobody would know."""
    header = pd.read_csv(path, header=None, nrows=1, dtype="str", sep=sep).iloc[0]
    twins = header[header.duplicated() & header.notna()]
    if len(twins):
        raise DataError(f'{path.name} has the column "{twins.iloc[0]}" more than once', do="keep one of them")


def check_place(path: Path, endings: Sequence[str], wrong: str, option: str = "--out") -> None:
    """Refuse a file of another kind, or in no folder, before any work is done."""
    if path.suffix.lower() not in endings:
        known = " or ".join(", ".join(endings).rsplit(", ", 1))
        raise UsageError(f"{option} {path.name}: {wrong}", do=f"let it end in {known}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"{option} {path}: a file cannot be written here", do="name a file in a folder that exists")


def check_folder(out: Path | None) -> None:
    """Refuse a file where a folder is wanted."""
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file", do="name a folder")


def save(path: Path, page: str) -> None:
    """Write a page, or say why it cannot be written."""
    try:
        write_text(path, page)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}", do="choose another place") from error


def write_result(explanations: Explanations, path: Path, title: str, verb: str, enough: bool = False) -> None:
    """Write explanations as JSON, CSV or an HTML report, by the file's ending; ``enough`` not as CSV."""
    kind = path.suffix.lower()
    if kind == ".json":
        write_text(path, explanations.to_json(enough=enough) + "\n")
    elif kind == ".csv":
        explanations.to_csv(path)
    else:
        from fewest.reporting import html

        write_text(path, html(explanations, title, verb=verb, enough=enough))
