"""PRAXIS (tree-praxis): the splits of all near-optimal trees, read off its AND/OR graph, in a process of its own.

Started as a script, so that it loads numpy and the compiled module and nothing else, can be stopped, held to a memory
limit, and crash alone. Split s tests ``column[s]`` at node ``parent[s]``; its children are the nodes 2 s + 1 (where the
column is 1) and 2 s + 2; node 0 is the root. The splits of a node stand together, by column, after those of its parent.
Beyond ``max_counted`` trees no splits are given.

PRAXIS counts in whole rows: it rounds the price of a leaf, ``regularization * n``, to an integer. Here the price is
rounded down, so that no tree looks dearer than it is, and the budget is the exact objective of a tree that looks best.
That names a few splits too many, and none too few; the exact bound is applied when they are unfolded.
"""

from __future__ import annotations

import math
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np
import numpy.typing as npt

REFUSED, NO_MEMORY = 3, 4
MANY_ROWS = 20_000


def grow(
    core: Any, bits: npt.NDArray[np.uint8], positive: npt.NDArray[np.bool_], regularization: float, bound: float,
    max_depth: int, max_counted: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int]:  # fmt: skip
    """Splits that near-optimal trees make, and how many trees it counts."""
    times, price, hidden = rounded_price(len(bits), regularization)
    model = core.PRAXIS()
    settings = {
        "X": np.repeat(bits, times, axis=0),
        "y": np.repeat(positive, times).astype(np.int32),
        "lambda_reg": price / (len(bits) * times),
        "depth_budget": max_depth,
        "key_mode": "exact",
        # With this much lookahead its estimate of a subtree is the exact optimum.
        "lookahead_k": max_depth - 1,
        "majority_leaf_only": True,
    }
    model.fit(**settings, rashomon_mult=0.0)
    best = model.get_min_objective() + hidden * len(model.get_tree_paths(0)[0])
    model = core.PRAXIS()
    model.fit(**settings, root_budget=math.floor(best * (1 + bound) * (1 + 1e-9)))
    count = int(model.count_trees())
    if count > max_counted:
        return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32), count
    graph = model.export_andor_graph()
    rows = [(s.parent_trie_id, s.feature, s.left_trie_id, s.right_trie_id) for s in graph.split_nodes]
    parent, column, left, right = np.array(rows, dtype=np.int32).reshape(-1, 4).T
    node_of = np.zeros(2 * len(rows) + 1, dtype=np.int32)
    node_of[left] = 2 * np.arange(len(rows)) + 1
    node_of[right] = 2 * np.arange(len(rows)) + 2
    node_of[graph.root_trie_id] = 0
    return node_of[parent], column, count


def rounded_price(n: int, regularization: float) -> tuple[int, int, float]:
    """How often to repeat the rows, the price of a leaf in whole rows, and by how much the exact price is above it.

    Few rows are repeated where that makes the price whole, or more nearly so.
    """
    best = (1, 0, math.inf)
    for times in range(1, max(1, MANY_ROWS // n) + 1):
        exact = regularization * n * times
        price = math.floor(exact + 1e-9)
        above = max(0.0, round(exact - price, 9))
        if price > 0 and above / times < best[2] / best[0]:
            best = (times, price, above)
    if best[1] == 0:
        raise ValueError(f"with regularization {regularization:g} a leaf costs less than one of {n} rows")
    return best


def load_core() -> Any:
    """The package's compiled module without the package, which imports widgets and plots, two seconds' worth."""
    outer = find_spec("praxis")
    assert outer is not None
    spec = PathFinder.find_spec("praxis._core", outer.submodule_search_locations)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def limit_memory(gigabytes: float) -> None:
    """Let allocations beyond this fail; where the system cannot, this does nothing."""
    try:
        import resource
    except ImportError:
        return
    size = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def main(job: str, result: str) -> int:
    """Do one job; the exit code says how it went, a refusal is explained on stderr."""
    with np.load(job) as held:
        settings = {name: held[name] if held[name].ndim else held[name].item() for name in held.files}
    limit = settings.pop("memory_limit")
    if limit > 0:
        limit_memory(limit)
    try:
        parent, column, counted = grow(load_core(), **settings)
        np.savez(result, parent=parent, column=column, counted=counted)
    except MemoryError:
        return NO_MEMORY
    except ValueError as error:
        print(error, file=sys.stderr)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
