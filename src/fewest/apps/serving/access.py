"""Who may ask, and how often: keys known by their sums, and a token bucket for each."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable
from pathlib import Path

from fewest.errors import UsageError

LINE = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,64}):(?P<sum>[0-9a-fA-F]{64})")
MAKE = "write name:sha256, with the sum from: printf %s KEY | sha256sum"


class Keys:
    """API keys: name -> SHA-256 of the key, in hexadecimal; the keys themselves are nowhere."""

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
    """Keys of a file, ``name:sha256`` per line; empty lines and lines that begin with # are left out."""
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


class Buckets:
    """Token buckets: each key may send ``rate`` requests a second (0: no limit), and ``burst`` at once after a pause.

    ``clock`` gives seconds, never backwards.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.burst = max(1.0, burst)
        self.clock = clock
        self._held: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> float:
        """Take a token. 0 if there was one; else the seconds until there will be, and nothing is taken."""
        if self.rate == 0:
            return 0.0
        now = self.clock()
        tokens, before = self._held.get(name, (self.burst, now))
        tokens = min(self.burst, tokens + (now - before) * self.rate)
        if tokens < 1:
            self._held[name] = tokens, now
            return (1 - tokens) / self.rate
        self._held[name] = tokens - 1, now
        return 0.0
