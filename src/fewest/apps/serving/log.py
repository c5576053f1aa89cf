"""The log of a service: one JSON object per line. It never raises, and strangers cannot make it long."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TextIO

RATION = 20  # lines a second of one event, where anybody can cause them


@dataclass(frozen=True)
class Log:
    """Writes events: names, counts, times and hashes, never values.

    Default: to stderr, as it is when the event is written. Lines that could not be written, or were more than the
    ration, are counted in ``left_out`` of the next one of their kind.

    Examples
    --------
    >>> import io
    >>> stream = io.StringIO()
    >>> Log(stream)("model ready", model="credit")
    >>> stream.getvalue()[-43:]
    '"event": "model ready", "model": "credit"}\\n'
    """

    stream: TextIO | None = None
    clock: Callable[[], float] = time.monotonic
    _written: Counter[tuple[str, int]] = field(default_factory=Counter)
    _left_out: Counter[str] = field(default_factory=Counter)

    def __call__(self, event: str, *, rationed: bool = False, **fields: Any) -> None:
        """Write one event; ``rationed``: anybody can cause it, as often as they like."""
        self._left_out[event] += 1
        if rationed and not self._in_ration(event):
            return
        if self._left_out[event] > 1:
            fields["left_out"] = self._left_out[event] - 1
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            line = json.dumps({"time": now, "event": event, **fields}, default=str)
            print(line, file=self.stream or sys.stderr, flush=True)
        except (OSError, ValueError, TypeError):  # no room, nobody who reads, nothing that can be written
            return
        del self._left_out[event]

    def _in_ration(self, event: str) -> bool:
        second = event, int(self.clock())
        if second not in self._written:
            for old in [key for key in self._written if key[0] == event]:
                del self._written[old]
        self._written[second] += 1
        return self._written[second] <= RATION


class Forward(logging.Handler):
    """Passes what the HTTP library has to say to a log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record's text; no trace, which could hold values."""
        self.log("server", rationed=True, level=record.levelname.lower(), text=record.getMessage())
