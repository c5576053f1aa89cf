"""Compiled functions: cached on disk until any source they may be built from changes, and a line for those who wait."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from threading import Timer
from typing import Any

from numba import njit
from numba.core import event

PATIENCE = 1.0  # seconds
COMPILING = "fewest: compiling the search, once after install; this takes up to half a minute"

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
        file = compiled._cache._cache_file
        _ = file._source_stamp
        file._source_stamp = _digest()
        _drop_unreadable(file)
    except (AttributeError, OSError):
        compiled = njit(nogil=True)(function)
    return compiled  # type: ignore[no-any-return]


def _drop_unreadable(file: Any) -> None:
    """Begin an index anew that names classes which are gone: those that an earlier version of this package left."""
    try:
        file._load_index()
    except (AttributeError, ImportError):
        file.flush()


def is_cached(compiled: Any) -> bool:
    """Whether some version of an entry is at hand: compiled in this process, or on disk and not older than its source.

    Where that is not known it counts as not at hand.
    """
    try:
        return bool(compiled.overloads) or bool(compiled._cache._cache_file._load_index())
    except (AttributeError, OSError):
        return False


class LongCompiling(event.Listener):  # type: ignore[misc]
    """Says once, on standard error, that something of this package compiles for long."""

    def __init__(self) -> None:
        self._clock: Timer | None = None
        self._depth, self._said = 0, False

    def on_start(self, event: Any) -> None:
        """A compilation begins, maybe within another."""
        if not self._depth and not event.data["dispatcher"].py_func.__module__.startswith("fewest."):
            return
        self._depth += 1
        if self._depth == 1 and not self._said:
            self._clock = Timer(PATIENCE, self._say)
            self._clock.daemon = True
            self._clock.start()

    def on_end(self, event: Any) -> None:
        """A compilation has ended, well or not."""
        if not self._depth:
            return
        self._depth -= 1
        if self._depth == 0 and self._clock is not None:
            self._clock.cancel()

    def _say(self) -> None:
        self._said = True
        print(COMPILING, file=sys.stderr, flush=True)


event.register("numba:compile", LongCompiling())
