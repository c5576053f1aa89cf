"""Opens an address in the user's browser, and shows it to nobody else on this machine.

A browser cannot live under the limits of a command's child: the child asks its parent, which has none.
"""

from __future__ import annotations

import atexit
import html
import os
import re
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PIPE = "FEWEST_OPENER"  # environment variable: the file through which a child asks
OPEN = "--open"
ADDRESS = re.compile(r"http://[\w.:\[\]-]+/\?token=[\w-]+")


@dataclass
class BrowserOpener:
    """Opens the first address it gets; a further one says that the first was used."""

    _redirect: Path | None = None
    _asked: bool = False

    def __call__(self, address: str) -> None:
        """Open an address, or forget the one that was opened."""
        self.forget()
        if not self._asked and ADDRESS.fullmatch(address):
            self._redirect = private_redirect(address)
            atexit.register(self.forget)
            # Everybody on this machine can see with what a browser is started: not with the token.
            webbrowser.open(self._redirect.as_uri())
        self._asked = True

    def forget(self) -> None:
        """Remove the file that leads to an address, if there is one."""
        if self._redirect is not None:
            self._redirect.unlink(missing_ok=True)
            self._redirect = None


def private_redirect(address: str) -> Path:
    """A page that only the owner of this process can read, and that leads to an address."""
    handle, name = tempfile.mkstemp(prefix="fewest-", suffix=".html")  # made with mode 0600
    place = html.escape(address)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={place}"><a href="{place}">Open</a>\n')
    return Path(name)


def opener() -> Callable[[str], None]:
    """What opens addresses for this process: its parent, where it is a child with limits."""
    pipe = os.environ.get(PIPE)
    if pipe is None:
        return BrowserOpener()

    def ask(address: str) -> None:
        with suppress(OSError):
            os.write(int(pipe), f"{address}\n".encode())

    return ask


def ask_parent(pipe: tuple[int, int]) -> None:
    """In the child: let addresses be opened through the pipe, also by a program that takes its place."""
    os.close(pipe[0])
    os.set_inheritable(pipe[1], True)
    os.environ[PIPE] = str(pipe[1])


def open_for_child(pipe: tuple[int, int]) -> None:
    """In the parent: open what comes through the pipe, beside other work."""
    os.close(pipe[1])

    def work() -> None:
        opens = BrowserOpener()
        with os.fdopen(pipe[0], encoding="utf-8", errors="replace") as lines:
            for line in lines:
                opens(line.strip())

    threading.Thread(target=work, daemon=True).start()
