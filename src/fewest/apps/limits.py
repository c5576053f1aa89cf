"""Limits a process puts on itself before it opens a file of somebody else: they hold for it and all it starts.

Memory, processor time and core files everywhere but on Windows; on Linux also no network (seccomp) and no writing
outside named folders (Landlock). None of them can be taken back. What a system cannot do is left out.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import signal
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

# The numbers below are part of Linux's interface to programs; prctl(2), seccomp(2), landlock(7).
DEATH_SIGNAL, NO_NEW_PRIVILEGES, SET_SECCOMP, SECCOMP_FILTER = 1, 38, 22, 2
SOCKET_CALL = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}  # architecture, number of socket(2)
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
# Write, remove, make and (from the version named) rename, truncate; reading and running stay as they are.
WRITE_FILE, REMOVE, MAKE, REFER, TRUNCATE = 1 << 1, 0b11 << 4, 0b1111111 << 6, 1 << 13, 1 << 14
CONNECT_TCP = 1 << 1
DEVICES = (Path("/dev/null"), Path("/dev/tty"), Path("/dev/shm"))  # what every process may write to
SIGNALS_OUTSIDE = 0b11  # abstract sockets and signals to processes outside


def limit_memory(gigabytes: float, *, for_good: bool = True) -> None:
    """Let allocations fail beyond this much more than now, where the system can; ``for_good`` it cannot be raised."""
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        size = now + int(gigabytes * 2**30)
        if most != resource.RLIM_INFINITY:
            size = min(size, most)
        resource.setrlimit(resource.RLIMIT_AS, (size, size if for_good else most))


def limit_processor(seconds: float) -> None:
    """Let the system end this process after this many more seconds of work; the next call sets another limit."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        limit = most if math.isinf(seconds) else math.ceil(time.process_time() + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, most))


def leave_no_core() -> None:
    """No core file: it would hold cases."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_with_parent() -> None:
    """Be killed when the process that started this one ends (Linux)."""
    if sys.platform == "linux":
        _libc().prctl(DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)


def leave_no_network() -> bool:
    """Refuse every new internet socket; whether the system could."""
    known = SOCKET_CALL.get(platform.machine())
    if sys.platform != "linux" or known is None:
        return False
    architecture, call = known
    allow, refuse = 0x7FFF0000, 0x00050000 | 13  # SECCOMP_RET_ALLOW; SECCOMP_RET_ERRNO with EACCES
    load, equal, end = 0x20, 0x15, 0x06
    # Load a word of the call, compare it, jump this far if it is equal, that far if it is not.
    steps = [
        (load, 0, 0, 4), (equal, 0, 5, architecture),
        (load, 0, 0, 0), (equal, 0, 3, call),
        (load, 0, 0, 16), (equal, 2, 0, int(socket.AF_INET)), (equal, 1, 0, int(socket.AF_INET6)),
        (end, 0, 0, allow), (end, 0, 0, refuse),
    ]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(code)))
    libc = _libc()
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(SET_SECCOMP, SECCOMP_FILTER, program, 0, 0) == 0)


def write_only_in(folders: Iterable[Path]) -> bool:
    """Refuse writing outside these folders, calls to other machines and signals to others; whether the system could."""
    if sys.platform != "linux":
        return False
    libc = _libc()
    version = libc.syscall(LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return False
    access = WRITE_FILE | REMOVE | MAKE | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    words = [access, *([CONNECT_TCP] if version >= 4 else []), *([SIGNALS_OUTSIDE] if version >= 6 else [])]
    rules = struct.pack(f"{len(words)}Q", *words)
    ruleset = libc.syscall(LANDLOCK_CREATE, rules, len(rules), 0)
    if ruleset < 0:
        return False
    for path in {*DEVICES, *folders}:
        with suppress(OSError):
            allowed = access if path.is_dir() else access & (WRITE_FILE | TRUNCATE)
            inside = os.open(path, os.O_PATH | os.O_CLOEXEC)
            libc.syscall(LANDLOCK_ADD, ruleset, 1, struct.pack("=Qi", allowed, inside), 0)
            os.close(inside)
    done = libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and libc.syscall(LANDLOCK_RESTRICT, ruleset, 0) == 0
    os.close(ruleset)
    return bool(done)


def scratch_places() -> Iterator[Path]:
    """Where temporary files and compiled code go."""
    yield Path(tempfile.gettempdir())
    yield Path(os.environ.get("NUMBA_CACHE_DIR") or Path.home() / ".cache")
    yield from Path(__file__).parents[1].rglob("__pycache__")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
