"""Write docs/benchmarks/speed.md from what `fewest bench --json` printed.

fewest bench --json > speed.jsonl; python benchmarks/speed_page.py speed.jsonl
"""

from __future__ import annotations

import json
import platform
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "speed.md"
LIBRARIES = ("numpy", "scikit-learn", "numba", "lightgbm", "xgboost-cpu")


def main(path: str) -> None:
    rows = [json.loads(line) for line in Path(path).read_text().splitlines() if line.startswith("{")]
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    met = sum(row["met"] is True for row in rows)
    lines = [
        "# Speed, measured",
        "",
        f"Printed by `fewest bench --json` on {date.today()} and written here by `benchmarks/speed_page.py`: {met} of "
        f"{len(rows)} targets met. Python {platform.python_version()}, {versions}; two shared cores. Ratios are of CPU",
        "seconds on one thread inside one run; *x predict_proba* compares with the final model on rows that are",
        "encoded already, *end to end* with the whole pipeline on raw rows. Plain BFS asks the model about one raw",
        "row at a time, stops at 20,000 vertices per query, and is charged the vertices it would still have to ask.",
        "",
        "| workload | measured | target | met | figures |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        value = "-" if row["value"] is None else f"{row['value']:g} {row['unit']}"
        mark = {True: "yes", False: "**no**", None: "not run"}[row["met"]]
        detail = row["detail"].replace("|", "/")
        lines.append(f"| {row['name']} | {value} | {row['target']} | {mark} | {detail} |")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
