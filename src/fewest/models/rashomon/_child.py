"""Runs a backend in a process of its own: it can be stopped, held to a memory limit, and crash alone.

Started as a script, so that it loads numpy and the backend's compiled module and nothing else. A backend is a module
with ``PACKAGE``, ``CORE`` (its compiled module) and ``grow(core, bits, positive, regularization, bound, depth, most)``,
which returns the splits of near-optimal trees as two arrays, and how many trees it counts. Split s tests ``column[s]``
at node ``parent[s]``; its children are the nodes 2 s + 1 (where the column is 1) and 2 s + 2; node 0 is the root. The
splits of a node stand together, by column, after those of its parent. Beyond ``most`` trees no splits are given.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np

REFUSED, NO_MEMORY = 3, 4


def load_core(package: str, core: str) -> Any:
    """A package's compiled module without the package: those import widgets and plots, two seconds' worth."""
    outer = find_spec(package)
    assert outer is not None
    spec = PathFinder.find_spec(f"{package}.{core}", outer.submodule_search_locations)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def limit_memory(gigabytes: float) -> None:
    """Let allocations beyond so much fail; where the system cannot, this does nothing."""
    try:
        import resource
    except ImportError:
        return
    size = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def main(backend: str, job: str, result: str) -> int:
    """Do one job; the exit code says how it went, a refusal is told on stderr."""
    with np.load(job) as held:
        settings = {name: held[name] if held[name].ndim else held[name].item() for name in held.files}
    limit = settings.pop("memory_limit")
    if limit > 0:
        limit_memory(limit)
    module = import_module(backend)
    try:
        parent, column, counted = module.grow(load_core(module.PACKAGE, module.CORE), **settings)
        np.savez(result, parent=parent, column=column, counted=counted)
    except MemoryError:
        return NO_MEMORY
    except ValueError as error:
        print(error, file=sys.stderr)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
