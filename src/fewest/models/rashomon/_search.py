"""The members of a Rashomon set: splits found by PRAXIS in a child process, unfolded to all trees within the bound.

Rows are counted and objectives added up here, in whole rows; what PRAXIS rounds does not matter any more.
"""

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

from fewest.errors import FewestError, MissingExtraError, ModelError, TimeLimitError, UsageError
from fewest.models.rashomon import _kernels, _praxis

Ints = npt.NDArray[np.int32]
Masks = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]

SCRIPT = Path(_praxis.__file__)
SMALLER = "make it smaller: a larger regularization, or a smaller bound or max_depth"
MAX_OPTIONS = 50_000_000
SAME = 1e-10  # objectives closer than this (relative) are the same: sums of decimals are rounded


class Grown(NamedTuple):
    """What was found: splits as `_praxis` describes them, and the trees it counts before the exact bound."""

    parent: Ints
    column: Ints
    counted: int


def run_praxis(job: dict[str, Any], time_limit: float | None = None, memory_limit: float | None = None) -> Grown:
    """Run PRAXIS in a child process; what can go wrong becomes errors that name the fix."""
    if find_spec("praxis") is None:
        raise MissingExtraError("the search for near-optimal trees needs tree-praxis", do='pip install "fewest[trees]"')
    with TemporaryDirectory(prefix="fewest-") as folder:
        given, result, said = (Path(folder) / name for name in ("job.npz", "result.npz", "said.txt"))
        np.savez(given, **job, memory_limit=memory_limit or 0.0)
        with said.open("wb") as errors:
            try:
                done = subprocess.run(
                    [sys.executable, str(SCRIPT), str(given), str(result)],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, timeout=time_limit, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise TimeLimitError(
                    f"the search for near-optimal trees did not finish in {time_limit:g} seconds",
                    do=f"raise time_limit, or {SMALLER}",
                ) from None
        if done.returncode != 0:
            raise _failure(done.returncode, said.read_text(errors="replace").strip(), memory_limit)
        with np.load(result) as held:
            return Grown(held["parent"], held["column"], int(held["counted"]))


def _failure(code: int, said: str, memory_limit: float | None) -> FewestError:
    """What an exit code means."""
    if code == _praxis.REFUSED:
        return UsageError(said, do="raise the regularization")
    last = said.splitlines()[-1] if said else "it printed nothing"
    if code == _praxis.NO_MEMORY or "bad_alloc" in said or "MemoryError" in said:
        allowed = "" if memory_limit is None else f" of {memory_limit:g} GB"
        return ModelError(
            f"the search for near-optimal trees ran out of memory{allowed}", do=f"raise memory_limit, or {SMALLER}"
        )
    if code < 0:
        return ModelError(
            f"the search for near-optimal trees was stopped by signal {Signals(-code).name}: {last}",
            do=f"it may have run out of memory; {SMALLER}",
        )
    return ModelError(f"the search for near-optimal trees failed: {last}", do=f"{SMALLER}; or report this")


class Patterns(NamedTuple):
    """Distinct rows of a binary table as masks (bit c is column c), with the rows of either label (m, 2)."""

    mask: Masks
    weight: Counts


class Members(NamedTuple):
    """All trees: ``leaf[start[t]:start[t + 1]]`` are the places of tree t, from left to right.

    Places are what the other arrays describe, each once.
    """

    start: Counts
    leaf: npt.NDArray[np.int32]
    needs: Masks
    forbids: Masks
    counts: Counts


def as_patterns(bits: npt.NDArray[np.uint8], positive: npt.NDArray[np.bool_]) -> Patterns:
    """Collapse a binary table."""
    mask = np.zeros(len(bits), dtype=np.uint64)
    for column in range(bits.shape[1]):
        mask |= bits[:, column].astype(np.uint64) << np.uint64(column)
    distinct, place = np.unique(mask, return_inverse=True)
    weight = np.zeros((len(distinct), 2), dtype=np.int64)
    np.add.at(weight, (place, positive.astype(np.int64)), 1)
    return Patterns(distinct, weight)


def unfold(grown: Grown, patterns: Patterns, price: float, bound: float, max_trees: int) -> Members:
    """All trees made of the splits whose objective, in rows, is at most ``1 + bound`` times the least."""
    needs, forbids = _kernels.paths(grown.parent, grown.column)
    place_of, firsts = _places(needs, forbids)
    needs, forbids = needs[firsts], forbids[firsts]
    counts = np.asarray(_kernels.count_rows(needs, forbids, *patterns))
    positive = decisions(counts)
    rows, errors = counts.sum(axis=1)[place_of], counts.min(axis=1)[place_of]
    best = _kernels.cheapest(grown.parent, rows, errors, price)
    limit = (best[0, 0] + price * best[0, 1]) * (1 + bound) * (1 + SAME)
    budget = _kernels.budgets(grown.parent, rows, best, price, limit)
    room = min(MAX_OPTIONS, 16 * max_trees + 1_000_000)
    options, begin, count = _kernels.list_options(
        grown.parent, errors, positive[place_of], budget, price, max_trees, room
    )
    if count < 0 or count > max_trees:
        raise too_large(grown.counted if count < 0 else int(count), max_trees, exact=count >= 0)
    start, leaf = _kernels.write_trees(options, begin, place_of)
    used, leaf = np.unique(leaf, return_inverse=True)
    return Members(start, leaf.astype(np.int32), needs[used], forbids[used], counts[used])


def decisions(counts: Counts) -> npt.NDArray[np.bool_]:
    """Whether leaves with these rows of either label decide positive: by majority, and where it is a tie."""
    return np.asarray(counts[:, 1] >= counts[:, 0])


def too_large(count: int, max_trees: int, exact: bool) -> ModelError:
    """The error for a set that is not unfolded."""
    size = f"{count:,} trees" if exact else f"up to {count:,} trees"
    return ModelError(
        f"the Rashomon set has {size}, more than max_trees = {max_trees:,}", do=f"{SMALLER}; or raise max_trees"
    )


def _places(needs: Masks, forbids: Masks) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Place of each node, and one node of each place: nodes reached by the same tests in any order are one place."""
    order = np.lexsort((forbids, needs))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(needs[order]) != 0) | (np.diff(forbids[order]) != 0)
    place_of = np.empty(len(order), dtype=np.int64)
    place_of[order] = np.cumsum(new) - 1
    return place_of, order[new]
