"""Write docs/benchmarks/speed.md and growth.svg from what `fewest bench --json` and the sizing for Spark printed.

fewest bench --json > speed.jsonl; python benchmarks/spark_sizing.py > sizing.jsonl
python benchmarks/speed_page.py speed.jsonl [sizing.jsonl]

Rows measured again by themselves take the place of those on the page, with the day:

fewest bench --only any-value --json > some.jsonl; python benchmarks/speed_page.py --again some.jsonl
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections import Counter
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spark_sizing import CORES, duration, markdown, per_second

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "speed.md"
LIBRARIES = ("numpy", "scikit-learn", "numba", "lightgbm", "xgboost-cpu")
COLOURS = ("#0072b2", "#e69f00", "#009e73")
GROWTH = (
    "## How the cost of a case grows", "",
    "One thing is varied at a time, the rest stays as `growth_ladders.py` has it; the exponent is that of a power law",
    "fitted by least squares in logarithms (2: twice the value, four times the cost). Features, trees and depth of the",
    "ensembles are the search alone; the others are `explain` on raw rows, from frame to answers. The dashed lines are",
    "the fits. What sets may be left out decides how the search grows with features and depth: no power law holds for",
    "all models there, and the rows called *dense* above are what it costs where little can be left out. A *bit* is a",
    "split that case and reference answer differently; all other splits are decided before the search.", "",
    "![CPU time of a case against what was varied](growth.svg)", "",
)  # fmt: skip
BILLION = 10**9
Lines = list[dict[str, Any]]


def table(rows: Lines, before: dict[str, str]) -> list[str]:
    """The measured targets, with what the page said of the same rows before."""
    lines = ["| workload | measured | before | target | met | figures |", "|---|---|---|---|---|---|"]
    for row in rows:
        value = "-" if row["value"] is None else f"{row['value']:g} {row['unit']}"
        mark = {True: "yes", False: "**no**", None: "not run"}[row["met"]]
        detail = row["detail"].replace("|", "/")
        cells = (row["name"], value, before.get(row["name"], "-"), row["target"], mark, detail)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def draw(ladders: Lines, place: Path) -> None:
    """CPU time of a case against what was varied: a panel for each, logarithmic, with the fitted lines."""
    import matplotlib as mpl
    import numpy as np
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "fewest"
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    named = [row["name"].removeprefix("growth with ").split(", ", 1) for row in ladders]
    colours = dict(zip(dict.fromkeys(model for _, model in named), COLOURS, strict=False))
    panels = dict(zip(dict.fromkeys(varied for varied, _ in named), figure.subplots(2, 3).ravel(), strict=False))
    ticks: dict[str, list[float]] = {}
    for row, (varied, model) in zip(ladders, named, strict=True):
        value, seconds = np.transpose(row["points"])
        line = np.exp(np.polyval(np.polyfit(np.log(value), np.log(seconds), 1), np.log(value)))
        panels[varied].loglog(value, 1e6 * seconds, "o", color=colours[model], label=f"{model}: {row['value']:.2f}")
        panels[varied].loglog(value, 1e6 * line, "--", color=colours[model])
        ticks[varied] = sorted({*ticks.get(varied, ()), *value.tolist()})
        panels[varied].set_xticks(ticks[varied], [f"{number:,.0f}" for number in ticks[varied]])
        panels[varied].set_xticks([], minor=True)
        panels[varied].set(xlabel=varied, ylabel="microseconds per case")
        panels[varied].legend(title="exponent", loc="upper left" if row["value"] > 0 else "upper right")
    for empty in figure.axes[len(panels) :]:
        empty.set_axis_off()
    figure.savefig(place, metadata={"Date": None})


def growth(ladders: Lines, before: dict[str, str]) -> list[str]:
    """The passage on growth; the exponents with what was measured."""
    return ["", *GROWTH, *table(ladders, before)]


def earlier(page: str) -> dict[str, str]:
    """Workload -> what a page says was measured."""
    cells = [line.split(" | ") for line in page.splitlines() if line.startswith("| ") and line.count(" | ") > 3]
    return {row[0].removeprefix("| "): row[1] for row in cells if row[1] != "measured"}


def billion(sizing: Lines) -> list[str]:
    """What a billion cases cost, by the rows per core-second that Spark had; the slowest run of each model."""
    slowest = {line["title"]: line for line in sorted(sizing, key=per_second, reverse=True)}
    rows = []
    for title in dict.fromkeys(line["title"] for line in sizing):
        speed = per_second(slowest[title])
        hours = BILLION / speed / 3600
        rows.append((title, f"{speed:,}", f"{hours:,.3g}", *(duration(hours / cores) for cores in CORES)))
    header = ("model", "rows per core-second", "core-hours", *(f"{cores:,} cores" for cores in CORES))
    return [
        "", "## A billion cases on Spark", "",
        "Rows per core-second are CPU time of all processes of a Spark job from Parquet to Parquet, measured on one",
        "core by `benchmarks/spark_sizing.py`; the rest is division. [Spark](../spark.md) says what else a cluster",
        "needs.", "",
        *markdown(header, rows)[:-1],
    ]  # fmt: skip


def read(path: str) -> Lines:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.startswith("{")]


def again(path: str) -> None:
    """Put rows that were measured by themselves in the place of those on the page; new ones after them."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    before, place = earlier("\n".join(lines)), 0
    for row in read(path):
        line = table([{**row, "detail": f"{row['detail']} (measured {date.today()})"}], before)[2]
        known = [k for k, old in enumerate(lines) if old.startswith(f"| {row['name']} |")]
        place = known[0] if known else place + 1
        lines[place : place + len(known)] = [line]
    marks = Counter(line.split(" | ")[4] for line in lines if line.count(" | ") >= 5)
    met, count = marks["yes"], sum(marks[mark] for mark in ("yes", "**no**", "not run"))
    text = re.sub(r"\d+ of\s+\d+ targets met", f"{met} of {count} targets met", "\n".join(lines))
    PAGE.write_text(text + "\n", encoding="utf-8")


def main(path: str, sizing: str = "") -> None:
    rows, old = read(path), PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    before, day = earlier(old), re.search(r"on (\d{4}-\d\d-\d\d)", old)
    ladders = [row for row in rows if row.get("points")]
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
        f"*Before* is what this page said on {day.group(1) if day else 'no day before'}.",
        "",
        *table([row for row in rows if not row.get("points")], before),
    ]
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    if ladders:
        lines += growth(ladders, before)
        draw(ladders, PAGE.with_name("growth.svg"))
    if sizing:
        lines += billion(read(sizing))
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    again(sys.argv[2]) if sys.argv[1] == "--again" else main(*sys.argv[1:])
