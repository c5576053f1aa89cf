"""A command in a child process with limits: whatever a file of somebody else does to it ends there.

Models, run folders and tables are opened in the child, by native code that may believe what they say. This process
looks at none of it: it passes signals on, waits, and says how the child ended.
"""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from fewest.apps import limits, opener
from fewest.errors import ModelError

RESERVED = 4.0  # GB of address space that libraries take and never touch
SHARE = 0.75  # of the machine's memory that a command may take
LOADING = 120.0  # seconds of work that loading a model may take
PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGCONT", "SIGUSR1", "SIGUSR2")
ENDINGS = {
    "SIGXCPU": ("it took more processor time than a model may", "look at the model: is it the one you mean?"),
    "SIGKILL": ("it was killed, most likely for lack of memory", "use a machine with more memory, or fewer --jobs"),
}
MEMORY = "FEWEST_MEMORY"  # environment variable: GB that a command may take
CRASHES = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGSYS", *ENDINGS)
_inside = False  # whether this process is such a child


def enter(arguments: Sequence[str], *, listens: bool = False) -> int | None:
    """Go on in a child with limits: None there; in the parent, when the child has ended, its exit code.

    `ModelError` in the parent where the child was ended by what it did.

    Parameters
    ----------
    arguments : sequence of str
        Those of the command: the child may write in the folders they name, in the working folder, and where temporary
        files and compiled code go.
    listens : bool
        Whether it may open sockets for others to call; it never calls anybody.
    """
    folders = [*_writable(arguments)]
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    pipe = os.pipe() if opener.OPEN in arguments else None
    # A signal that comes between the fork and the parent's readiness to pass it on waits until then.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [getattr(signal, name) for name in (*PASSED_ON, "SIGTSTP")])
    child = os.fork()
    if child != 0:
        _pass_signals_on(child)
    else:
        os.setpgid(0, 0)  # the parent passes on what the terminal sends; twice would be once too often
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if child != 0:
        if pipe is not None:
            opener.open_for_child(pipe)
        return _wait(child)
    if pipe is not None:
        opener.ask_parent(pipe)
    limits.leave_no_core()
    limits.end_with_parent()
    limits.limit_memory(RESERVED + float(os.environ.get(MEMORY) or SHARE * _machine_memory()))
    limits.write_only_in(folders)
    if not listens:
        limits.leave_no_network()
    global _inside
    _inside = True
    return None


@contextmanager
def loading() -> Iterator[None]:
    """Let the system end this process, if it is such a child, where loading a model takes too long."""
    if _inside:
        limits.limit_processor(LOADING)
    yield
    if _inside:
        limits.limit_processor(math.inf)


def _pass_signals_on(child: int) -> None:
    """Send the child what this process is sent."""

    def pass_on(number: int, _: FrameType | None) -> None:
        os.kill(child, number)

    def stop(_: int, __: FrameType | None) -> None:
        os.kill(child, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)

    for name in PASSED_ON:
        signal.signal(getattr(signal, name), pass_on)
    signal.signal(signal.SIGTSTP, stop)


def _wait(child: int) -> int:
    """The exit code of the child, when it has ended."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    name = signal.Signals(-code).name
    if name not in CRASHES:
        return 128 - code
    why, do = ENDINGS.get(name, (f"it crashed ({name})", "save the model again; do not use a file you do not trust"))
    raise ModelError(f"the process that opened the files ended: {why}", do=do)


def _machine_memory() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30


def _writable(arguments: Iterable[str]) -> Iterator[Path]:
    """Folders the command may have to write in."""
    yield Path.cwd()
    yield from limits.scratch_places()
    for argument in arguments:
        named = Path(argument.partition("=")[2] if argument.startswith("-") else argument)
        if named.name:
            yield next((folder for folder in (named, *named.absolute().parents) if folder.is_dir()), Path.cwd())
