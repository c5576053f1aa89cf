"""Files are complete or absent: written beside their place, then moved there."""

from __future__ import annotations

import os
from pathlib import Path


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 file so that nobody ever sees a part of it."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file so that nobody ever sees a part of it."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
