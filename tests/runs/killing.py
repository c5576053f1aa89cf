"""Kill a run with SIGKILL at random moments, resume it, and compare bytes; prints one JSON line.

Forks from a warm process, so that a trial takes a fraction of a second: ``python killing.py FOLDER TRIALS SEED``.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import fewest as fw
from fewest.runs import explain_files


def make(folder: Path) -> fw.Explainer:
    """A small model and 6,000 cases."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(6_000, 6)).round(3), columns=list("abcdef"))
    y = X.sum(axis=1) + rng.normal(size=len(X)) > 0
    decision = fw.Decision(LogisticRegression().fit(X, y))
    X.to_parquet(folder / "cases.parquet", row_group_size=1_000)
    return fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)


def child(explainer: fw.Explainer, folder: Path, out: Path) -> int:
    """The run, in a process of its own; its number."""
    number = os.fork()
    if number == 0:
        try:
            explain_files(explainer, folder / "cases.parquet", out, n_jobs=1, part_rows=300)
        finally:
            os._exit(0)
    return number


def fingerprint(out: Path) -> str:
    """One SHA-256 over names and bytes of all files."""
    total = hashlib.sha256()
    for file in sorted(out.iterdir()):
        total.update(file.name.encode() + b"\0" + file.read_bytes())
    return total.hexdigest()


def main(folder: Path, trials: int, seed: int) -> None:
    """Trials until so many kills have hit a running process."""
    explainer, rng = make(folder), random.Random(seed)
    began = time.monotonic()
    whole = fingerprint(
        explain_files(explainer, folder / "cases.parquet", folder / "whole", n_jobs=1, part_rows=300).path
    )
    out, kills, same, parts = folder / "killed", 0, 0, []
    os.waitpid(child(explainer, folder, out), 0)
    shutil.rmtree(out)
    began = time.monotonic()
    os.waitpid(child(explainer, folder, out), 0)
    duration = time.monotonic() - began
    while kills < trials:
        shutil.rmtree(out, ignore_errors=True)
        number = child(explainer, folder, out)
        time.sleep(rng.uniform(0, duration))
        os.kill(number, signal.SIGKILL)
        if os.WIFEXITED(os.waitpid(number, 0)[1]):
            continue  # it had ended before
        kills += 1
        parts.append(len(list(out.glob("part-?????.parquet"))) if out.exists() else 0)
        os.waitpid(child(explainer, folder, out), 0)
        same += fingerprint(out) == whole
    print(json.dumps({"kills": kills, "same": same, "parts": parts, "seconds": duration}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
