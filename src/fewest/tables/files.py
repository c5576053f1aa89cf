"""Files are complete or absent: written beside their place, then moved there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file so that nobody ever sees a part of it: beside its place, onto the disk, and moved there."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _write(beside, os.O_CREAT | os.O_TRUNC, data)
        os.replace(beside, path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
    with suppress(OSError):  # the folder's own entry, where the system can
        number = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def write_text(path: str | Path, text: str) -> None:
    """The same for UTF-8 text."""
    write_bytes(path, text.encode("utf-8"))


def append_bytes(path: str | Path, data: bytes) -> None:
    """Add to a file and wait until it is on the disk."""
    _write(Path(path), os.O_APPEND, data)


def _write(path: Path, flags: int, data: bytes) -> None:
    number = os.open(path, os.O_WRONLY | flags | getattr(os, "O_BINARY", 0), 0o666)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(number, left) :]
        os.fsync(number)
    finally:
        os.close(number)
