"""The page about datasets says what is true."""

import re
from pathlib import Path

import pytest

from fewest.datasets import book, names

PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


@pytest.mark.parametrize("name", names())
def test_the_table_has_the_sizes_and_files_of_the_codebook(name: str) -> None:
    line = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{name}` |"))
    known = book(name)
    _, _, files, rows, features, positives, *_ = (cell.strip() for cell in line.split("|"))
    assert re.findall(r"`([^`]+)`", files) == list(known.files)
    assert rows.split()[0] == f"{known.rows:,}"
    assert features == str(len(known.columns))
    assert positives == ("" if known.positives is None else f"{known.positives:,}")
