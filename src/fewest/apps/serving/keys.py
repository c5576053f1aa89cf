"""API keys: a file of names and SHA-256 sums; the keys themselves are nowhere."""

from __future__ import annotations

import hashlib
import hmac
import re
from pathlib import Path

from fewest.errors import UsageError

LINE = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,64}):(?P<sum>[0-9a-fA-F]{64})")
MAKE = "write name:sha256, with the sum from: printf %s KEY | sha256sum"


class Keys:
    """Who may ask.

    Parameters
    ----------
    sums : dict
        Name -> SHA-256 of the key, in hexadecimal.

    Examples
    --------
    >>> keys = Keys({"bank": hashlib.sha256(b"secret").hexdigest()})
    >>> keys.who("secret"), keys.who("wrong")
    ('bank', None)
    """

    def __init__(self, sums: dict[str, str]) -> None:
        self.sums = {name: value.lower() for name, value in sums.items()}

    def who(self, key: str) -> str | None:
        """Name of the one who holds a key; every line is looked at, in constant time."""
        shown = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        found = None
        for name, known in self.sums.items():
            if hmac.compare_digest(shown, known):
                found = name
        return found


def read_keys(path: Path) -> Keys:
    """Keys of a file; empty lines and lines that begin with # are left out.

    Parameters
    ----------
    path : Path
        One ``name:sha256`` per line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the keys file {path.name} cannot be read: {type(error).__name__}", do=MAKE) from error
    sums: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = LINE.fullmatch(text)
        if match is None:
            # The line is not shown: it may be a key that was written there by mistake.
            raise UsageError(f"line {number} of {path.name} is not of the form name:sha256", do=MAKE)
        if match["name"] in sums:
            raise UsageError(f'line {number} of {path.name}: "{match["name"]}" stands there already', do="rename one")
        sums[match["name"]] = match["sum"]
    if not sums:
        raise UsageError(f"{path.name} holds no key", do=MAKE)
    return Keys(sums)
