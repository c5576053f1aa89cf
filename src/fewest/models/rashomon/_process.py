"""Starts a backend in a child process, waits for it, and turns what can go wrong into errors that name the fix."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from signal import Signals
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fewest.errors import FewestError, MissingExtraError, ModelError, TimeLimitError, UsageError, check_word
from fewest.models.rashomon import _child

Ints = npt.NDArray[np.int32]

BACKENDS = {"praxis": ("_praxis", "praxis", "tree-praxis"), "treefarms": ("_treefarms", "treefarms", "treefarms")}
SMALLER = "make it smaller: a larger regularization, or a smaller bound or depth"


class Grown(NamedTuple):
    """What a backend found: splits as `_child` describes them, and the trees it counts before the exact bound."""

    parent: Ints
    column: Ints
    counted: int


def run_backend(
    backend: str, job: dict[str, Any], time_limit: float | None = None, memory_limit: float | None = None
) -> Grown:
    """Run a backend's ``grow`` in a child process."""
    check_word("backend", backend, BACKENDS)
    module, package, distribution = BACKENDS[backend]
    if find_spec(package) is None:
        raise MissingExtraError(f"the {backend} backend needs {distribution}", do='pip install "fewest[trees]"')
    script = Path(_child.__file__)
    with TemporaryDirectory(prefix="fewest-") as folder:
        given, result, said = (Path(folder) / name for name in ("job.npz", "result.npz", "said.txt"))
        np.savez(given, **job, memory_limit=memory_limit or 0.0)
        with said.open("wb") as errors:
            try:
                done = subprocess.run(
                    [sys.executable, str(script), module, str(given), str(result)],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, timeout=time_limit, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise TimeLimitError(
                    f"the {backend} backend did not finish in {time_limit:g} seconds",
                    do=f"raise time_limit, or {SMALLER}",
                ) from None
        if done.returncode != 0:
            raise _failure(backend, done.returncode, said.read_text(errors="replace").strip(), memory_limit)
        with np.load(result) as held:
            return Grown(held["parent"], held["column"], int(held["counted"]))


def _failure(backend: str, code: int, said: str, memory_limit: float | None) -> FewestError:
    """What an exit code means."""
    if code == _child.REFUSED:
        return UsageError(said, do="raise the regularization")
    last = said.splitlines()[-1] if said else "it said nothing"
    if code == _child.NO_MEMORY or "bad_alloc" in said or "MemoryError" in said:
        allowed = "" if memory_limit is None else f" of {memory_limit:g} GB"
        return ModelError(f"the {backend} backend ran out of memory{allowed}", do=f"raise memory_limit, or {SMALLER}")
    if code < 0:
        return ModelError(
            f"the {backend} backend was stopped by signal {Signals(-code).name}: {last}",
            do=f"it may have run out of memory; {SMALLER}, or take the other backend",
        )
    return ModelError(f"the {backend} backend failed: {last}", do="take the other backend, or report this")
