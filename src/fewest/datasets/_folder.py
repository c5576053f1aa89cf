"""Tables of a data folder: one CSV each, with rows and checksums in the ``schema.json`` beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from fewest.datasets._books import Book
from fewest.datasets._cells import outcomes, read_bytes, read_cells, refuse_missing, typed
from fewest.datasets._dataset import Dataset, dataset
from fewest.errors import DataError

SCHEMA = "schema.json"


class Described(NamedTuple):
    """What a folder's schema says of one table."""

    file: Path
    sha256: str
    rows: int | None
    target: str


def describe_folder(book: Book, folder: Path) -> Described:
    """What the folder's schema says of a dataset, or an error that says why that cannot be known."""
    file = folder / SCHEMA
    try:
        schema = json.loads(file.read_text(encoding="utf-8"))
        entry: dict[str, Any] = schema["datasets"][book.name]
        return Described(folder / entry["file"], entry["sha256"], entry.get("rows"), schema["target_column"])
    except FileNotFoundError:
        raise DataError(f"there is no {SCHEMA} in {folder}", do="name the folder with the tables") from None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise DataError(
            f'{file} does not describe a dataset "{book.name}": {type(error).__name__}',
            do="use the schema.json that came with the tables",
        ) from error


def load_table(book: Book, folder: Path) -> Dataset:
    """Read one table of a data folder and check it against the folder's schema."""
    described = describe_folder(book, folder)
    file = described.file
    if not file.is_file():
        raise DataError(f"there is no file {file.name} in {folder}", do=f"get it: {book.get}")
    content, sha256 = read_bytes(file, book)
    if sha256 != described.sha256:
        raise DataError(
            f"{file.name} in {folder} is not the file {SCHEMA} describes (its sha256 differs)",
            do=f"get it: {book.get}",
        )
    cells = read_cells(content, file.name)
    refuse_missing([name for name in (*book.names, described.target) if name not in cells], file.name)
    if described.rows is not None and len(cells) != described.rows:
        raise DataError(
            f"{file.name} has {len(cells):,} rows where {SCHEMA} says {described.rows:,}", do=f"get it: {book.get}"
        )
    y = outcomes(cells[described.target], file.name)
    return dataset(book, typed(cells, book.columns, file.name), y)
