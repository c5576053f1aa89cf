"""Token buckets: each key may send ``rate`` requests a second, and ``burst`` at once after a pause."""

from __future__ import annotations

import time
from collections.abc import Callable


class Buckets:
    """One bucket per name.

    Parameters
    ----------
    rate : float
        Tokens that come back per second; 0 sets no limit.
    burst : float
        Tokens a bucket holds, at least one.
    clock : callable
        Seconds, never backwards.

    Examples
    --------
    >>> buckets = Buckets(rate=2, burst=1, clock=lambda: 0.0)
    >>> buckets.take("bank"), buckets.take("bank"), buckets.take("clinic")
    (0.0, 0.5, 0.0)
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
