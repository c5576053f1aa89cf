"""Killed at any moment, a run goes on and ends in the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
if not hasattr(os, "fork"):
    pytest.skip("there is no SIGKILL here", allow_module_level=True)

ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def trials(folder: Path, count: int, seed: int) -> dict[str, Any]:
    script = Path(__file__).with_name("killing.py")
    done = subprocess.run(
        [sys.executable, str(script), str(folder), str(count), str(seed)],
        capture_output=True, text=True, check=False, env={**os.environ, **ONE},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_three_kills_leave_no_trace(tmp_path: Path) -> None:
    result = trials(tmp_path, 3, 0)
    assert result["same"] == result["kills"] == 3
    assert any(0 < parts < 20 for parts in result["parts"])


@pytest.mark.slow
def test_a_hundred_kills_leave_no_trace(tmp_path: Path) -> None:
    result = trials(tmp_path, 100, 1)
    assert result["same"] == result["kills"] == 100
    assert len(set(result["parts"])) > 5
