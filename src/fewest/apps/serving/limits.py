"""What the system holds a worker to: memory, processor time, no core file, and an end when the server ends."""

from __future__ import annotations

import math
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

LIBRARIES = 3.0  # GB of address space that the libraries of a model take, most of it never touched
OUT_OF_MEMORY = 12  # exit code of a worker that ran out of it
DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def address_space() -> int | None:
    """Bytes of address space this process has; None where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        import resource

        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return None


def limit_memory(gigabytes: float, *, for_good: bool) -> None:
    """Let allocations fail beyond so much more than now. Where the system cannot, this does nothing.

    Parameters
    ----------
    gigabytes : float
    for_good : bool
        Whether the limit cannot be raised again.
    """
    now = address_space()
    if now is None:
        return
    import resource

    size = now + int(gigabytes * 2**30)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        size = min(size, most)
    resource.setrlimit(resource.RLIMIT_AS, (size, size if for_good else most))


def limit_processor(seconds: float) -> None:
    """Let the system end this process after so many more seconds of work, should nobody else do so."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds) + 1, most))


def leave_no_core() -> None:
    """No core file: it would hold cases."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_with_parent() -> None:
    """Be killed when the server ends, also in the middle of an answer (Linux)."""
    if sys.platform != "linux":
        return
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
