"""Model files changed by chance, in ways that leave their format whole, loaded and scored in children with limits.

    python campaigns/mutants.py [--format NAME ...] [--count N] [--seconds N] [--seed N] [--log FILE]

Counts for each format: refused; same scores; other scores; no scores (loaded, and an error when it scored); and what
must not be: crash, hang (over 10 CPU seconds), memory (over 1 GB more), raised (an error at loading that is not ours).
Ends with 6 where one of these was seen. The file that did it is kept beside the log.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # one thread, said before anything counts the cores; tests import this among other things
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")

import numpy as np

import mutant_makers

FORMATS = tuple(mutant_makers.MAKERS)
SECONDS, BYTES = 10, 1 << 30
AT_ONCE = 50  # files one child takes in turn
BAD = ("crash", "hang", "memory", "raised")
WRONG = 6
LIBRARIES = """
fewest.persistence.explainers fewest.persistence._onnx_model skops.io onnx onnxruntime xgboost lightgbm sklearn.ensemble
sklearn.svm
"""
OUTCOMES = ("refused", "same", "other", "no scores", *BAD)


def rows_for(name: str) -> Any:
    """Rows that an honest file of this name takes."""
    import pandas as pd

    X, _ = mutant_makers.table()
    if name.endswith(".fewest"):
        return pd.DataFrame(X, columns=["a", "b", "c"])
    if name == "levels.txt":
        return np.column_stack([X[:, :2], np.digitize(X[:, 2], [-1, -0.5, 0, 0.5, 1])])
    return X


def scores(path: Path, rows: Any) -> Any:
    """What the model of a file gives."""
    from fewest.persistence import load_model

    model = load_model(path)
    try:
        known = model.predict_proba(rows) if hasattr(model, "predict_proba") else model.decision_function(rows)
        return np.asarray(known, dtype=float)
    except Exception:
        return None


def outcome(path: Path, rows: Any, wanted: Any) -> str:
    """How a file is received; asked in a process that may end over it."""
    from fewest.errors import FewestError

    try:
        found = scores(path, rows)
    except FewestError:
        return "refused"
    except Exception:
        return "raised"
    if found is None:
        return "no scores"
    return "same" if np.array_equal(found, wanted, equal_nan=True) else "other"


def in_children(files: Sequence[tuple[Path, Any, Any]]) -> list[str]:
    """The outcome of each file, from a child with limits of time and memory; the next child goes on after a bad one."""
    results: list[str] = []
    while len(results) < len(files):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                for file in files[len(results) :]:
                    os.write(write, bytes([OUTCOMES.index(_limited(*file))]))
            finally:
                os._exit(0)
        os.close(write)
        with open(read, "rb") as answers:
            results += [OUTCOMES[code] for code in answers.read()]
        _, status = os.waitpid(child, 0)
        if len(results) < len(files):
            ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            results.append("hang" if ended in (signal.SIGXCPU, signal.SIGKILL) else "crash")
    return results


def _limited(path: Path, rows: Any, wanted: Any) -> str:
    """The outcome under limits that begin now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime) + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before = _status("VmHWM")
    resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") + 8 * BYTES, resource.RLIM_INFINITY))
    result = outcome(path, rows, wanted)
    return "memory" if _status("VmHWM") - before > BYTES else result


def _status(key: str) -> int:
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * next(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{key}:"))


def honest_scores(kind: str, folder: Path) -> dict[str, tuple[Path, Any, Any]]:
    """Files of a format with their rows and scores; asked in a child, so that this process never starts threads."""
    out = {}
    for path in sorted((folder / kind).iterdir()):
        saved = folder / f"{kind}-{path.name}.npy"
        child = os.fork()
        if child == 0:
            try:
                np.save(saved, scores(path, rows_for(path.name)))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        out[path.name] = (path, rows_for(path.name), np.load(saved))
    return out


def seeds(kinds: Sequence[str]) -> Path:
    """The folder of honest files, made in a child for the same reason."""
    folder = Path(tempfile.mkdtemp())
    child = os.fork()
    if child == 0:
        code = 1
        try:
            warnings.simplefilter("ignore")
            mutant_makers.written(folder, kinds)
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("the honest files could not be made")
    return folder


def campaign(
    kind: str, count: int, seed: int, folder: Path, until: float = float("inf"), keep: Path | None = None
) -> Counter[str]:
    """Outcomes of so many mutants of a format; the same for the same seed."""
    warnings.simplefilter("ignore")
    files = honest_scores(kind, folder)
    found: Counter[str] = Counter()
    for first in range(seed, seed + count, AT_ONCE):
        if time.monotonic() > until:
            break
        bent = []
        for number in range(first, min(first + AT_ONCE, seed + count)):
            chance = random.Random(f"{kind} {number}")
            path, rows, wanted = files[chance.choice(list(files))]
            try:
                data = mutant_makers.mutant(kind, path.read_bytes(), chance)
            except Exception:
                # A second change to a file that the first one broke.
                found["not made"] += 1
                continue
            bent.append((folder / f"bent-{kind}-{number}{path.suffix}", rows, wanted))
            bent[-1][0].write_bytes(data)
        for (path, _, _), result in zip(bent, in_children(bent), strict=True):
            found[result] += 1
            if result in BAD and keep is not None:
                shutil.copy(path, keep / f"{result}-{path.name}")
            path.unlink()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", nargs="*", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each format")
    parser.add_argument("--seed", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--log", type=Path)
    options = parser.parse_args(arguments)
    # Libraries are loaded once, here; children only use them.
    for library in LIBRARIES.split():
        import_module(library)
    folder, wrong = seeds(options.format), False
    for kind in options.format:
        keep = options.log.parent if options.log else None
        found = campaign(kind, options.count, options.seed, folder, time.monotonic() + options.seconds, keep)
        line = {"format": kind, "first": options.seed, "mutants": found.total(), **found}
        print(json.dumps(line), flush=True)
        if options.log:
            with options.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        wrong |= any(found[outcome] for outcome in BAD)
    return WRONG if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
