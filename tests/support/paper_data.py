"""Where tests find the paper's data: FEWEST_DATA, or the folder shared/data beside this clone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(autouse=True)
def paper_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name the folder beside this clone where no other is named."""
    if not os.environ.get("FEWEST_DATA") and SHARED.is_dir():
        monkeypatch.setenv("FEWEST_DATA", str(SHARED))
