"""What a service may take: sizes, times, places. One frozen value, checked once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from fewest.errors import UsageError

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class ServiceSettings:
    """How a service listens and what it allows.

    Parameters
    ----------
    host, port : str, int
        Where to listen; port 0 takes a free one.
    keys : Path, optional
        File of API keys, ``name:sha256`` per line. Needed unless the host is a loopback address.
    workers : int
        Processes per model.
    memory : float
        GB that a worker may take for its answers, on top of the loaded model.
    time_limit : float
        Seconds after which the search stops; cases left end as BUDGET.
    grace : float
        Further seconds after which the worker is stopped.
    max_body : int
        Bytes of a request.
    max_instances, max_alternatives : int
        Cases of a request, and sets listed per case.
    queue : int
        Requests of a model that may wait, for each key.
    patience : float
        Seconds that a request may wait for a worker in all, or take to arrive, or its answer to be taken.
    connections : int
        Connections at a time; one key has at most half of them, where there are several.
    head_limit : float
        Seconds in which the head of the first request must be there.
    rate, burst : float
        Requests per second of each key, and how many at once; rate 0 sets no limit.
    start_limit : float
        Seconds a worker may take to load its model.

    Examples
    --------
    >>> ServiceSettings(workers=2).time_limit
    10.0
    """

    host: str = "127.0.0.1"
    port: int = 8000
    keys: Path | None = None
    workers: int = 1
    memory: float = 2.0
    time_limit: float = 10.0
    grace: float = 5.0
    max_body: int = 1_000_000
    max_instances: int = 1_000
    max_alternatives: int = 20
    queue: int = 256
    patience: float = 15.0
    connections: int = 1_000
    head_limit: float = 5.0
    rate: float = 100.0
    burst: float = 200.0
    start_limit: float = 300.0
    # Where a worker finds the function that loads a model, as module:name; tests put a bad model here.
    loader: str = "fewest.persistence:load"

    def __post_init__(self) -> None:
        may_be_zero = ("port", "rate", "max_alternatives")
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, int | float) and not (value > 0 or (value == 0 and part.name in may_be_zero)):
                raise UsageError(f"{part.name} is {value}", do="use a positive number")
        if self.keys is None and self.host not in LOOPBACK:
            raise UsageError(
                f"without keys the service is for this machine only, and {self.host} is open to others",
                do="pass --keys FILE, or listen on 127.0.0.1",
            )

    @property
    def hard_limit(self) -> float:
        """Seconds after which a worker that has not answered is stopped."""
        return self.time_limit + self.grace

    @property
    def longest(self) -> float:
        """Seconds after which every request has an answer: it arrives, waits, and is asked with others, then alone."""
        return 2 * self.patience + 2 * self.hard_limit
