"""Files that survive a kill: complete or absent, one writer per folder, checksums for all."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fewest.errors import DataError, FewestError, MissingExtraError, UsageError
from fewest.tables.files import append_bytes, write_bytes

LOCK = ".lock"
LEFTOVER = ".*.part"
AGAIN = "then run the same command again: what was done is kept"
INSTALL = 'pip install "fewest[runs]"'


def need_arrow(what: str) -> None:
    """Refuse what cannot be done without pyarrow."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"{what} needs pyarrow", do=INSTALL) from error


def put(path: Path, data: bytes) -> None:
    """Write a file of a run folder; an error says what to do."""
    try:
        write_bytes(path, data)
    except OSError as error:
        raise cannot_write(path, error) from error


def append(path: Path, data: bytes) -> None:
    """Add to a file of a run folder; an error says what to do."""
    try:
        append_bytes(path, data)
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> FewestError:
    """What to say of a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DataError(f"{path.name} cannot be written: the disk is full", do=f"make room, {AGAIN}")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UsageError(f"{path} cannot be written: no permission", do=f"choose another folder, or allow it, {AGAIN}")
    return DataError(f"{path.name} cannot be written: {error.strerror or error}", do=f"look at the disk, {AGAIN}")


def first_line(error: Exception) -> str:
    """What an error of another library says, in a line."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def digest(data: bytes) -> str:
    """SHA-256 of some bytes, as text."""
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


def refuse_links(folder: Path) -> None:
    """Refuse a folder in which a file is a link: what is read or written there would be somewhere else."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink() or (entry.name == LOCK and entry.stat(follow_symlinks=False).st_nlink > 1):
                    raise DataError(
                        f"{folder} holds a link ({entry.name}) that leads out of it",
                        do="put the file itself there; leave a folder alone that you do not trust",
                    )
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}", do="check the path") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only writer of a folder. The lock of a process that has died is free: the system lets go of it."""
    try:
        from filelock import FileLock, Timeout
    except ImportError as error:
        raise MissingExtraError("writing a run folder needs filelock", do=INSTALL) from error
    refuse_links(folder)
    path = folder / LOCK
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        owner = ""
        with suppress(OSError, UnicodeError):
            owner = path.read_text(encoding="ascii").strip()
        raise UsageError(
            f"another process ({owner or 'unknown'}) is at work on {folder}", do="wait for it, or choose another folder"
        ) from error
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        with suppress(OSError):  # some systems let nobody write what is locked
            path.write_text(f"{os.getpid()}\n", encoding="ascii")
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        lock.release()
