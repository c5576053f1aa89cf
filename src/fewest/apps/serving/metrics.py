"""Counts and times in the text format that Prometheus reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters and histograms, by name and labels.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.count("fewest_requests_total", path="/healthz", status="200")
    >>> print(metrics.text(()))
    # TYPE fewest_requests_total counter
    fewest_requests_total{path="/healthz",status="200"} 1
    <BLANKLINE>
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._times: dict[str, dict[Labels, list[float]]] = defaultdict(dict)

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        """Count something."""
        self._counts[name][tuple(labels.items())] += by

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Put a time into a histogram: one count per bound, the count of all, and the sum."""
        cells = self._times[name].setdefault(tuple(labels.items()), [0.0] * (len(BOUNDS) + 2))
        for k, bound in enumerate(BOUNDS):
            cells[k] += seconds <= bound
        cells[-2] += 1
        cells[-1] += seconds

    def text(self, gauges: Iterable[tuple[str, Mapping[str, str], float]]) -> str:
        """Everything, with gauges read now, as name, labels and value."""
        lines: list[str] = []
        for name, counts in sorted(self._counts.items()):
            lines.append(f"# TYPE {name} counter")
            lines += [_line(name, labels, value) for labels, value in sorted(counts.items())]
        for name, times in sorted(self._times.items()):
            lines.append(f"# TYPE {name} histogram")
            for labels, cells in sorted(times.items()):
                lines += _histogram(name, labels, cells)
        last = ""
        for name, given, value in sorted(gauges, key=lambda gauge: gauge[0]):
            if name != last:
                lines.append(f"# TYPE {name} gauge")
                last = name
            lines.append(_line(name, tuple(given.items()), value))
        return "\n".join(lines) + "\n"


def _histogram(name: str, labels: Labels, cells: list[float]) -> list[str]:
    ends = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
    lines = [_line(f"{name}_bucket", (*labels, ("le", end)), cell) for end, cell in zip(ends, cells, strict=False)]
    return [*lines, _line(f"{name}_count", labels, cells[-2]), _line(f"{name}_sum", labels, cells[-1])]


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escape(text)}"' for key, text in labels)
    return f"{name}{{{inside}}} {value:.10g}" if inside else f"{name} {value:.10g}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
