"""Text for terminals: no control characters from data, progress on stderr only."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def clean(text: str) -> str:
    r"""Text without control characters, so that a value of a table cannot steer the terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


# What the library calls a thing in Python -> what the command line calls it. Parts that it has no option for are left
# out. Longer ones first: some hold others.
IN_OPTIONS = {
    r', or pass unseen="allow" if the model accepts it': "",
    r'; on_positive="allow" proves what cannot be reached': "",
    r'centre="(\w+)"': r"--centre \1",
    r"explain with alternatives=": "explain with --alternatives ",
    r"allow_pickle=True": "--allow-pickle",
    r"`?positive=`?": "--positive",
    r"width=": "--width",
}
STATUS_WORDS = {"ALREADY_NEGATIVE": "accepted", "UNREACHABLE": "not possible", "BUDGET": "stopped early"}


def in_options(text: str) -> str:
    """A remedy in the words of the command line."""
    for said, option in IN_OPTIONS.items():
        text = re.sub(said, option, text)
    return text


def status_word(status: str) -> str:
    """A status as people read it."""
    return STATUS_WORDS.get(status, status.lower().replace("_", " "))


def label_key(label: Any) -> str:
    """The same text for labels that mean the same: 1, 1.0 and "1"."""
    try:
        return repr(float(label))
    except (TypeError, ValueError):
        return str(label).strip()


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far a long job is, on stderr: a bar on a terminal, elsewhere a line per ten per cent."""
    if sys.stderr.isatty():
        with _bar(what) as advance:
            yield advance
    else:
        yield _lines(what)


def _lines(what: str) -> Callable[[int, int], None]:
    last = 0

    def advance(done: int, total: int) -> None:
        nonlocal last
        tenth = 10 * done // max(1, total)
        if tenth > last:
            last = tenth
            print(f"{what}  {done:,}/{total:,}  {10 * tenth} %", file=sys.stderr, flush=True)

    return advance


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
