"""Structured logs: one JSON object per line on stderr; names, counts, times and hashes, never values."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO


class Log:
    """Writes events to a stream; default: stderr, as it is when the event is written."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream

    def __call__(self, event: str, **fields: Any) -> None:
        """Write one event."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": event, **fields}, default=str)
        print(line, file=self.stream or sys.stderr, flush=True)


class Forward(logging.Handler):
    """Passes what the HTTP library has to say to a log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record's text; no trace, which could hold values."""
        self.log("server", level=record.levelname.lower(), text=record.getMessage())
