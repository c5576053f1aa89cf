"""A bar for long work, where somebody is looking: in a notebook's cell, or on stderr of a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from fewest.errors import UsageError

SECONDS = 2.0  # of work before a bar appears
Progress = Callable[[int, int], None]


@contextmanager
def watched(progress: Progress | bool | None) -> Iterator[Progress]:
    """What to call with (cases done, cases in all): the function given, or a bar.

    None is a bar in notebooks and terminals once the work has taken `SECONDS`; True is one from the start; False is
    none at all.

    Examples
    --------
    >>> with watched(lambda done, of: print(f"{done} of {of}")) as step:
    ...     step(3, 10)
    3 of 10
    """
    if callable(progress):
        yield progress
        return
    if progress not in (None, True, False):
        raise UsageError(f"progress is {progress!r}", do="pass a function of two counts, True, False or None")
    bar = ProgressBar(None if progress is False else _place(), 0.0 if progress else SECONDS)
    try:
        yield bar
    finally:
        bar.close()


class ProgressBar:
    """Shows counts at a place, from some seconds after it was made."""

    def __init__(self, place: Callable[[str, float], None] | None, after: float) -> None:
        self.place, self.due, self.is_shown = place, time.monotonic() + after, False

    def __call__(self, done: int, total: int) -> None:
        """Show how many are done, if it is time to."""
        if self.place is not None and time.monotonic() >= self.due:
            self.is_shown = True
            self.place(f"{done:,} of {total:,} cases", done / total)

    def close(self) -> None:
        """Take the bar away, if there is one."""
        if self.place is not None and self.is_shown:
            self.place("", 1.0)


def _place() -> Callable[[str, float], None] | None:
    """Where a bar can be shown; None where nobody looks."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and hasattr(shell, "kernel"):
        return _cell()
    return _terminal if sys.stderr.isatty() else None


def _cell() -> Callable[[str, float], None]:
    """A place in the output of a notebook's cell."""
    display: Any = import_module("IPython.display")
    handle = display.DisplayHandle()
    is_new = True

    def show(words: str, share: float) -> None:
        nonlocal is_new
        html = f'<progress value="{share:.3f}" max="1"></progress> {words}' if words else ""
        (handle.display if is_new else handle.update)(display.HTML(html))
        is_new = False

    return show


def _terminal(words: str, share: float) -> None:
    """The line of a terminal that is written over again and again."""
    full = round(24 * share)
    bar = f"{'━' * full}{' ' * (24 - full)} {words}" if words else ""
    print(f"\r\x1b[K{bar}", end="", file=sys.stderr, flush=True)
