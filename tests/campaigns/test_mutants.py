"""A slice of the campaign of mutants finds nothing; and a file that ends, hangs or fills its process is counted."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

for _needed in ("resource", "skops.io", "onnxruntime", "skl2onnx", "xgboost", "lightgbm"):
    pytest.importorskip(_needed)
mutants = pytest.importorskip("mutants")

SCRIPT = Path(str(mutants.__file__))


@pytest.mark.slow
def test_a_slice_of_every_format_is_received_without_harm(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    command = [sys.executable, str(SCRIPT), "--count", "3", "--log", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    found = {line["format"]: line for line in map(json.loads, log.read_text().splitlines())}
    assert set(found) == set(mutants.FORMATS)
    assert all(line["mutants"] == 3 for line in found.values())
    assert sum(line.get("refused", 0) for line in found.values()) > 7
    assert "other" not in found["fewest"], "its members have checksums"


def end(*_: Any) -> str:
    faulthandler.disable()
    os.kill(os.getpid(), signal.SIGSEGV)
    return "same"


def spin(*_: Any) -> str:
    while True:
        pass


def fill(*_: Any) -> str:
    """More than 32 MiB, which could come from what the process has freed, and less than the limit of 64."""
    return "same" if np.ones(6 << 20).sum() else "other"


HARM = {"crash": end, "hang": spin, "memory": fill, "other": lambda *_: "other"}


@pytest.mark.parametrize("counted", HARM)
def test_what_must_not_be_is_counted(counted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the same children, with a file that does harm between two that do none."""
    monkeypatch.setattr(mutants, "outcome", lambda path, *_: HARM[counted]() if path.name == "bad" else "same")
    monkeypatch.setattr(mutants, "SECONDS", 1)
    monkeypatch.setattr(mutants, "BYTES", 1 << 23)
    files = [(tmp_path / name, None, None) for name in ("good", "bad", "good")]
    assert mutants.in_children(files) == ["same", counted, "same"]
