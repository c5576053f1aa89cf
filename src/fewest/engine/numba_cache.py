"""Compiled functions: cached on disk until any source they may be built from changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit

# For functions that only compiled code calls: a Python entry would take most of the time to compile, and counting
# references to the arrays they are handed most of the time to run.
inner = partial(njit, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy", _nrt=False)


@cache
def _digest() -> str:
    """Fingerprint of the sources that compiled entries are built from: modules with such, and the private ones beside.

    Constants of private modules are frozen into compiled code, so these count too.
    """
    sources = {file: file.read_bytes() for file in sorted(Path(__file__).parents[1].rglob("*.py"))}
    marks = (b"from fewest.engine.numba_cache import", b"from numba import")
    compiled = {file for file, source in sources.items() if any(mark in source for mark in marks)}
    beside = {file for file in sources if file.name.startswith("_") and file.parent in {one.parent for one in compiled}}
    return sha256(b"".join(sources[file] for file in sorted(compiled | beside))).hexdigest()


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that Python calls, cached on disk until any module it may be built from changes.

    Left alone, the cache looks at the function's own file only and goes on using code from before a change elsewhere.
    """
    compiled: Any = njit(cache=True, nogil=True)(function)
    try:
        _ = compiled._cache._cache_file._source_stamp
        compiled._cache._cache_file._source_stamp = _digest()
    except (AttributeError, OSError):
        compiled = njit(nogil=True)(function)
    return compiled  # type: ignore[no-any-return]
