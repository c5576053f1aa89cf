"""Measure rows per core-second, with files and with Spark, and write the figures into docs/spark.md.

    python benchmarks/spark_sizing.py [SHARE] > sizing.jsonl
    python benchmarks/spark_sizing.py sizing.jsonl

SHARE (default 1) scales the numbers of rows; a file of what was printed only writes the page again. Every step runs in
a process of its own, with one thread each. CPU seconds are counted over all processes of the step, so that others at
work on the machine do not show.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "spark.md"
BEGIN, END = "<!-- measured: written by benchmarks/spark_sizing.py -->", "<!-- end of what was measured -->"
WORKLOADS = {"LR, 25 features": 600_000, "GBDT, 200 trees of depth 3": 300_000, "MLP, 32 + 16 units": 300_000}
TRAINED_ON, WARM, FILES = 20_000, 4_000, 8
TOTALS, CORES = (10**6, 10**7, 10**8, 10**9), (100, 1000)
ONE_CORE = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
}  # fmt: skip
MEASURED = (
    "model", "rows", "files: CPU s", "rows per core-second", "Spark: CPU s (of it Java)", "rows per core-second",
    "Spark / files",
)  # fmt: skip
NEEDED = (
    "model", "first use in a Python process, CPU s", "peak memory of the process, MB", "explainer, kB",
    "answers, bytes per row",
)  # fmt: skip
SIZED = ("model", "rows per core-second", "rows", "core-hours", *(f"{cores:,} cores" for cores in CORES))
Figures = dict[str, Any]


def make(folder: Path, title: str, rows: int) -> Figures:
    """A model fitted on other rows, pickled as an explainer; cases in some files, and a few rows to warm up with."""
    import joblib
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    import fewest as fw
    from fewest.experiments.benchmarking.large_tables import table

    final = {
        "LR": LogisticRegression(C=0.1, max_iter=500),
        "GBDT": GradientBoostingClassifier(n_estimators=200, max_depth=3, random_state=0),
        "MLP": MLPClassifier((32, 16), early_stopping=True, tol=1e-3, n_iter_no_change=3, random_state=0),
    }[title.split(",")[0]]
    X, y = table(TRAINED_ON, 1)
    numbers, text = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), text))
    decision = fw.Decision(make_pipeline(encode, final).fit(X, y))
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    joblib.dump(explainer, folder / "explainer.joblib")
    for name, count, parts in (("warm", WARM, 1), ("cases", rows, FILES)):
        (folder / name).mkdir()
        for k in range(parts):
            cases, _ = table(count // parts, 10 + k)
            cases.to_parquet(folder / name / f"{k}.parquet", index=False)
    return {"bytes": (folder / "explainer.joblib").stat().st_size}


def files(folder: Path, rows: int) -> Figures:
    """Into a run folder, in one process."""
    import joblib

    from fewest.runs import explain_files

    explainer = joblib.load(folder / "explainer.joblib")
    explain_files(explainer, folder / "warm", folder / "warm-run", n_jobs=1)
    began, cpu = time.monotonic(), time.process_time()
    run = explain_files(explainer, folder / "cases", folder / "run", n_jobs=1, keep_cases=False)
    assert run.rows == rows
    return {"cpu": time.process_time() - cpu, "wall": time.monotonic() - began, "counts": run.counts}


def spark(folder: Path, rows: int) -> Figures:
    """From the same files to Parquet, by Spark with one task at a time."""
    import joblib
    from pyspark.sql import SparkSession

    from fewest.runs.spark import explain

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    explainer = joblib.load(folder / "explainer.joblib")
    seconds = []
    for name in ("warm", "warm", "cases"):
        began, cpu, java = time.monotonic(), tree_cpu(), tree_cpu("java")
        answers = explain(session.read.parquet(str(folder / name)), explainer)
        answers.write.mode("overwrite").parquet(str(folder / "answers"))
        seconds.append((tree_cpu() - cpu, tree_cpu("java") - java, time.monotonic() - began))
    assert session.read.parquet(str(folder / "answers")).count() == rows
    size = sum(file.stat().st_size for file in (folder / "answers").iterdir())
    memory = max(peak(pid) for pid in family(os.getpid()) if "pyspark.daemon" in command(pid))
    session.stop()
    (first, java_first, _), (again, java_again, _), (cpu, java, wall) = seconds
    start = (first - java_first) - (again - java_again)
    return {
        "cpu": cpu, "java": java, "wall": wall, "start": start, "megabytes": memory, "bytes_per_row": size / rows,
    }  # fmt: skip


def family(pid: int) -> list[int]:
    """This process and all that come from it."""
    parent = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    members = [pid]
    for member in members:
        members += [child for child, of in parent.items() if of == member]
    return members


def tree_cpu(within: str = "") -> float:
    """CPU seconds of the whole family, with those that have ended; or of those of this name."""
    total = 0
    for pid in family(os.getpid()):
        try:
            if within not in command(pid).split(" ")[0]:
                continue
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += sum(int(field) for field in fields[11:15])
    return total / os.sysconf("SC_CLK_TCK")


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def peak(pid: int) -> float:
    """Most memory it ever had, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def step(name: str, folder: Path, title: str, rows: int) -> Figures:
    """One step in a fresh process; what it printed last."""
    call = [sys.executable, __file__, name, str(folder), title, str(rows)]
    done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **ONE_CORE})
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def measure(title: str, rows: int) -> Figures:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        made = step("make", folder, title, rows)
        steps = {"files": step("files", folder, title, rows), "spark": step("spark", folder, title, rows)}
    figures = {"title": title, "rows": rows, **made, **steps}
    print(json.dumps(figures), flush=True)
    return figures


def markdown(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """A table and the empty line after it."""
    return [f"| {' | '.join(cells)} |" for cells in (header, ("---",) * len(header), *rows)] + [""]


def speeds(line: Figures) -> tuple[str, ...]:
    """What was measured of a model."""
    rows, here, there = line["rows"], line["files"]["cpu"], line["spark"]["cpu"]
    java = f"{there:.1f} ({line['spark']['java']:.1f})"
    return (
        line["title"], f"{rows:,}", f"{here:.1f}", f"{rows / here:,.0f}", java, f"{rows / there:,.0f}",
        f"{there / here:.2f}",
    )  # fmt: skip


def needs(line: Figures) -> tuple[str, ...]:
    """What a Python process takes beside the time."""
    s = line["spark"]
    kilobytes = f"{line['bytes'] / 1000:,.0f}"
    return line["title"], f"{s['start']:.1f}", f"{s['megabytes']:.0f}", kilobytes, f"{s['bytes_per_row']:.0f}"


def sizes(line: Figures) -> list[tuple[str, ...]]:
    """What follows from it."""
    speed = per_second(line)
    hours = {rows: rows / speed / 3600 for rows in TOTALS}
    return [
        (line["title"], f"{speed:,}", f"{rows:,}", f"{hours[rows]:,.3g}", *(duration(hours[rows] / n) for n in CORES))
        for rows in TOTALS
    ]


def per_second(line: Figures) -> int:
    return round(line["rows"] / line["spark"]["cpu"])


def duration(hours: float) -> str:
    seconds = hours * 3600
    return f"{seconds:.3g} s" if seconds < 60 else f"{seconds / 60:.3g} min" if hours < 1 else f"{hours:.3g} h"


def write(lines: list[Figures]) -> None:
    """Put the figures between the marks; of a model that was measured more than once, the slowest run counts."""
    slowest_of = {line["title"]: line for line in sorted(lines, key=per_second, reverse=True)}
    sized = [slowest_of[title] for title in dict.fromkeys(line["title"] for line in lines)]
    slowest = min(lines, key=per_second)
    tables = [
        *markdown(MEASURED, [speeds(line) for line in lines]),
        *markdown(NEEDED, [needs(line) for line in lines]),
        *markdown(SIZED, [cells for line in sized for cells in sizes(line)]),
        f"For a billion rows and {slowest['title']}: {TOTALS[-1]:,} / {per_second(slowest):,} / 3,600 = "
        f"{TOTALS[-1] / per_second(slowest) / 3600:,.3g} core-hours.",
    ]
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text("\n".join([before + BEGIN, "", *tables, "", END + after]), encoding="utf-8")


def main(given: str = "1") -> None:
    if Path(given).is_file():
        lines = [json.loads(line) for line in Path(given).read_text(encoding="utf-8").splitlines()]
    else:
        counts = {title: max(WARM, round(rows * float(given)) // FILES * FILES) for title, rows in WORKLOADS.items()}
        lines = [measure(title, rows) for title, rows in counts.items()]
    write(lines)


if __name__ == "__main__":
    if sys.argv[1:2] in (["make"], ["files"], ["spark"]):
        place, title, rows = Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
        steps = {"make": lambda: make(place, title, rows), "files": lambda: files(place, rows)}
        print(json.dumps(steps.get(sys.argv[1], lambda: spark(place, rows))()))
    else:
        main(*sys.argv[1:])
