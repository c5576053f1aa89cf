"""Files that survive a kill: complete or absent, one writer per folder, checksums for all."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fewest.errors import DataError, FewestError, UsageError

LOCK = ".lock"
LEFTOVER = ".*.part"
AGAIN = "then run the same command again: what was done is kept"


def put(path: Path, data: bytes) -> None:
    """Write a file beside its place, wait until it is on the disk, and move it there.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> put(path, b"whole")
    >>> path.read_bytes()
    b'whole'
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            _write_all(number, data)
            os.fsync(number)
        finally:
            os.close(number)
        os.replace(beside, path)
        _settle(path.parent)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def append(path: Path, data: bytes) -> None:
    """Add to a file and wait until it is on the disk."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            _write_all(number, data)
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        raise cannot_write(path, error) from error


def _write_all(number: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(number, left) :]


def _settle(folder: Path) -> None:
    """Make the folder's own entry durable, where the system can."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def cannot_write(path: Path, error: OSError) -> FewestError:
    """What to say of a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DataError(f"{path.name} cannot be written: the disk is full", do=f"make room, {AGAIN}")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UsageError(f"{path} cannot be written: no permission", do=f"choose another folder, or allow it, {AGAIN}")
    return DataError(f"{path.name} cannot be written: {error.strerror or error}", do=f"look at the disk, {AGAIN}")


def digest(data: bytes) -> str:
    """SHA-256 of some bytes, as text.

    Examples
    --------
    >>> digest(b"")[:12]
    'e3b0c44298fc'
    """
    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}", do="check the path") from error


def sweep(folder: Path) -> None:
    """Remove what a killed writer left beside its place."""
    for leftover in folder.glob(LEFTOVER):
        leftover.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only writer of a folder. The lock of a process that has died is free: the system lets go of it.

    Where the system knows no file locks (Windows), nobody is kept out.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with locked(folder):
    ...     (folder / LOCK).exists()
    True
    >>> (folder / LOCK).exists()
    False
    """
    path = folder / LOCK
    number = _take(path)
    try:
        os.ftruncate(number, 0)
        os.write(number, f"{os.getpid()}\n".encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(number)


def _take(path: Path) -> int:
    """Open and lock the file; again where its last owner removed it in between."""
    while True:
        try:
            number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise cannot_write(path, error) from error
        if not _lock(number):
            owner = os.read(number, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(number)
            raise UsageError(
                f"another process ({owner}) is at work on {path.parent}", do="wait for it, or choose another folder"
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(number), path.stat()):
                return number
        os.close(number)


def _lock(number: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
