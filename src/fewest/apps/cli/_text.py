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
    r', or pass unseen="allow" if the model accepts it': ", or pass --unseen skip, or allow if the model accepts it",
    r"references\.single or clusters": "--references single or clusters",
    r'; on_positive="allow" proves what cannot be reached': "",
    r'centre="(\w+)"': r"--centre \1",
    r'constraints=Only\("([^"]+)", "(\w+)"\)': r"--only \1=\2",
    r"explain with alternatives=": "explain with --alternatives ",
    r"allow_pickle=True": "--allow-pickle",
    r"`?positive=`?": "--positive",
    r"width=": "--width",
}


def in_options(text: str) -> str:
    """A remedy in the words of the command line."""
    for said, option in IN_OPTIONS.items():
        text = re.sub(said, option, text)
    return text


def label_key(label: Any) -> str:
    """The same text for labels that mean the same: 1, 1.0 and "1"."""
    try:
        return repr(float(label))
    except (TypeError, ValueError):
        return str(label).strip()


@contextmanager
def progress(what: str) -> Iterator[Callable[..., None]]:
    """Show how far a long job is, on stderr: a bar on a terminal, elsewhere a line now and then.

    It yields what is to be called with the rows done, the rows in all (None: not known) and the counts per status.
    """
    if not sys.stderr.isatty():
        yield _line_writer(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total, counts=None: bar.update(
            task, completed=done, total=total, description=_words(what, done, total, counts)
        )


def _line_writer(what: str) -> Callable[..., None]:
    """A line per ten per cent, or each time the rows have doubled where nobody knows how many there are."""
    due: float | None = None

    def advance(done: int, total: int | None, counts: dict[str, int] | None = None) -> None:
        nonlocal due
        if done >= ((total or 0) / 10 if due is None else due):
            due = (10 * done // total + 1) * total / 10 if total else 2 * done
            print(_words(what, done, total, counts), file=sys.stderr, flush=True)

    return advance


def _words(what: str, done: int, total: int | None, counts: dict[str, int] | None) -> str:
    from fewest.results.explanation import Status

    known = ", ".join(f"{Status(name).words} {count:,}" for name, count in (counts or {}).items() if count)
    share = f"{100 * done // total} %" if total else ""
    return f"{what}  {done:,}{'' if total is None else f'/{total:,}'}  {known or share}"
