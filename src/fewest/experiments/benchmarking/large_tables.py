"""Millions of mixed rows, in memory, and from Parquet into a run folder; each step in its own process, for memory."""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from fewest import references
from fewest.datasets import load
from fewest.decision import Decision
from fewest.experiments.benchmarking.measure import Row, at_most, cpu, fresh, skipped, timed
from fewest.explainer import Explainer
from fewest.persistence.models import load_model
from fewest.references import References

WRITTEN_AT_ONCE = 200_000
TRAINED_ON = 20_000
GIGABYTES = 1.5
ROUNDS = 3  # of reading and explaining a file, in turn; the one in the middle counts
FULL = "FEWEST_BENCH_FULL"
NO_ARROW = 'pyarrow is not here: pip install "fewest[runs]"'
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def linear_million(rows: int = 1_000_000) -> Iterator[Row]:
    """A million mixed rows in memory, end to end; memory in a process that has nothing but them and the model."""
    result = _step("million", rows)
    detail = (
        f"explain {result['explain']:.1f} s, predict_proba {result['predict']:.1f} s CPU, {result['positive']} cases"
    )
    yield at_most(f"LR {rows:,} x 25 end to end", result["explain"] / result["predict"], 2.2, "x predict_proba", detail)
    name = f"LR {rows:,} x 25 memory"
    if _no_arrow():
        yield skipped(name, "<= 0.8", NO_ARROW)
        return
    with tempfile.TemporaryDirectory() as folder:
        _step("make", rows, folder, "linear")
        peak = _step("memory", rows, folder)
    detail = (
        f"peak of a process that reads the table and explains it: {peak['libraries']:.2f} before the table, "
        f"{peak['table']:.2f} with it; one predict_proba of all rows takes {result['gigabytes']:.2f}"
    )
    yield at_most(name, peak["explained"], 0.8, "GB", detail)


def files_linear() -> Iterator[Row]:
    """Mixed rows through a logistic regression: a million, or ten million with FEWEST_BENCH_FULL=1."""
    yield from _workload("LR", "linear", 10_000_000 if os.environ.get(FULL) else 1_000_000, 3)


def files_boosted() -> Iterator[Row]:
    """Mixed rows through 200 boosted trees: 200,000, or a million with FEWEST_BENCH_FULL=1."""
    yield from _workload("GBDT 200x3", "boosted", 1_000_000 if os.environ.get(FULL) else 200_000, 3)


def _no_arrow() -> bool:
    return find_spec("pyarrow") is None


def _workload(title: str, kind: str, rows: int, limit: float) -> Iterator[Row]:
    name = f"{title} {rows:,} x 25 Parquet to run folder"
    if _no_arrow():
        yield skipped(name, f"<= {limit:g}", NO_ARROW)
        return
    with tempfile.TemporaryDirectory() as folder:
        _step("make", rows, folder, kind)
        rounds = [(_step("predict", rows, folder), _step("explain", rows, folder)) for _ in range(ROUNDS)]
    rounds.sort(key=lambda both: both[1]["cpu"] / both[0]["cpu"])
    predict, explain = rounds[len(rounds) // 2]
    detail = (
        f"{rows / explain['wall']:,.0f} rows/s ({explain['wall']:.0f} s) with one process, "
        f"{explain['cpu']:.1f} s CPU against {predict['cpu']:.1f} s of read and predict_proba over the same file, "
        f"run folder {explain['megabytes']:,.0f} MB (the cases are not kept), {explain['counts']}"
    )
    yield at_most(name, explain["cpu"] / predict["cpu"], limit, "x predict_proba", detail)
    yield at_most(f"{name}, memory", explain["gigabytes"], GIGABYTES, "GB", "peak of the process")


def _step(step: str, rows: int, *more: str) -> dict[str, Any]:
    """One step in a fresh process, on one thread; what it printed last."""
    return dict(json.loads(fresh(["-m", __name__, step, str(rows), *more], ONE_THREAD)))


def table(rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """25 features: 15 numbers, 5 integers, 5 text columns of 4 to 12 levels; and labels."""
    random = np.random.default_rng(seed)
    columns: dict[str, object] = {f"number{j}": random.normal(size=rows) for j in range(15)}
    columns |= {f"count{j}": random.integers(0, 10, rows) for j in range(5)}
    for j in range(5):
        levels = np.array([f"level {k}" for k in range(4 + 2 * j)])
        columns[f"text{j}"] = pd.Categorical.from_codes(random.integers(0, len(levels), rows), levels).astype("str")
    X = pd.DataFrame(columns)
    signal = sum(X[f"number{j}"].to_numpy() * (1 + j % 3) for j in range(15)) + X["count0"].to_numpy() - 4.5
    return X, (signal + random.normal(size=rows) > 0).astype(int)


def million(rows: int) -> dict[str, Any]:
    """CPU seconds of predict_proba and of explain on rows in memory, in turns, on one thread; and the former's peak."""
    decision, refs = _fitted("linear")
    explainer = Explainer(decision, refs, n_jobs=1)
    explainer.explain(table(1_000, 1)[0])
    cases, _ = table(rows)
    rounds, peak = [], 0.0
    for _ in range(ROUNDS):
        _, predict = timed(lambda: decision.model.predict_proba(cases))
        peak = peak or _gigabytes()
        out, spent = timed(lambda: explainer.explain(cases))
        rounds.append((predict, spent))
    predict, spent = sorted(rounds, key=lambda both: both[1] / both[0])[ROUNDS // 2]
    return {"predict": predict, "explain": spent, "gigabytes": peak, "positive": out.counts()["EXPLAINED"]}


def memory(folder: Path) -> dict[str, Any]:
    """The peak of a process that explains a table in memory; it is read a column at a time, which takes no more."""
    from pyarrow import parquet

    explainer = _loaded(folder)
    explainer.explain(table(1_000, 1)[0])
    libraries, file = _gigabytes(), parquet.ParquetFile(folder / "cases.parquet")
    columns = {name: file.read([name], use_threads=False)[name].to_pandas() for name in file.schema_arrow.names}
    cases = pd.DataFrame(columns, copy=False)
    held = _gigabytes()
    explainer.explain(cases)
    return {"libraries": libraries, "table": held, "explained": _gigabytes()}


def _loaded(folder: Path) -> Explainer:
    import joblib

    decision = Decision(joblib.load(folder / "model.joblib"))
    return Explainer(decision, references.load(folder / "references.json", decision), n_jobs=1)


def _fitted(kind: str) -> tuple[Decision, References]:
    """A pipeline fitted on rows that are not among the cases, and its typical accepted case."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y = table(TRAINED_ON, 1)
    text = [column for column in X if column.startswith("text")]
    encoder = make_column_transformer((StandardScaler(), [c for c in X if c not in text]), (OneHotEncoder(), text))
    models = {
        "linear": LogisticRegression(C=0.1, max_iter=500),
        "boosted": GradientBoostingClassifier(n_estimators=200, max_depth=3, random_state=0),
    }
    decision = Decision(make_pipeline(encoder, models[kind]).fit(X, y))
    return decision, references.single(decision, X, y)


def make(folder: Path, kind: str, rows: int) -> dict[str, Any]:
    """Train a model on other rows, and write the cases, a group of rows at a time."""
    import joblib
    import pyarrow as pa
    from pyarrow import parquet

    decision, refs = _fitted(kind)
    joblib.dump(decision.model, folder / "model.joblib")
    refs.save(folder / "references.json")
    writer = None
    for seed, first in enumerate(range(0, rows, WRITTEN_AT_ONCE)):
        cases = pa.Table.from_pandas(table(min(WRITTEN_AT_ONCE, rows - first), 10 + seed)[0], preserve_index=False)
        writer = writer or parquet.ParquetWriter(folder / "cases.parquet", cases.schema)
        writer.write_table(cases)
    assert writer is not None
    writer.close()
    return {"rows": rows}


def predict(folder: Path) -> dict[str, Any]:
    """CPU seconds of reading the file and of `predict_proba`, a batch at a time."""
    import joblib
    from pyarrow import parquet

    model = joblib.load(folder / "model.joblib")
    began = time.process_time()
    for batch in parquet.ParquetFile(folder / "cases.parquet").iter_batches(20_000, use_threads=False):
        model.predict_proba(batch.to_pandas())
    return {"cpu": time.process_time() - began}


def explain(folder: Path) -> dict[str, Any]:
    """The same file into a run folder, in one process and without a copy of the cases; searches are compiled before."""
    from fewest.runs import explain_files

    explainer = _loaded(folder)
    explainer.explain(table(1_000, 1)[0])
    shutil.rmtree(folder / "run", ignore_errors=True)
    began, before = time.monotonic(), time.process_time()
    run = explain_files(explainer, folder / "cases.parquet", folder / "run", n_jobs=1, keep_cases=False)
    wall, cpu = time.monotonic() - began, time.process_time() - before
    size = sum(file.stat().st_size for file in run.path.iterdir()) / 1e6
    counts = ", ".join(f"{count:,} {name.lower()}" for name, count in run.counts.items() if count)
    return {"wall": wall, "cpu": cpu, "gigabytes": _gigabytes(), "megabytes": size, "counts": counts}


def _gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main(step: str, rows: str, folder: str = "", kind: str = "") -> None:
    """One step, by name."""
    steps = {
        "million": lambda: million(int(rows)),
        "memory": lambda: memory(Path(folder)),
        "make": lambda: make(Path(folder), kind, int(rows)),
        "predict": lambda: predict(Path(folder)),
        "explain": lambda: explain(Path(folder)),
    }
    print(json.dumps(steps[step]()))


if __name__ == "__main__":
    main(*sys.argv[1:])


def model_files() -> Iterator[Row]:
    """A model file of about 1 MB: reading and auditing it, and a whole command with its child process and without."""
    from skops.io import dump

    german = load("german")
    X, target = german.X.select_dtypes("number"), german.target
    model = HistGradientBoostingClassifier(max_iter=300, random_state=0).fit(X, german.labels)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dump(model, folder / "model.skops")
        X.iloc[:20].to_csv(folder / "cases.csv", index=False)
        X.assign(**{target: german.labels}).to_csv(folder / "train.csv", index=False)
        size = (folder / "model.skops").stat().st_size
        read = cpu(lambda: load_model(folder / "model.skops"))
        yield at_most("load and audit of a skops HistGB", read, 0.5, "s CPU", f"{size / 1e6:.2f} MB")
        explain = ["explain", "cases.csv", "--model", "model.skops", "--train", "train.csv", "--target", target]
        explain += ["--positive", "bad", "--out", "out.json"]
        here, child = (_command([*options, *explain], folder) for options in (["--in-process"], []))
        yield at_most("a command with its child process", child / here, 1.5, "x in one process", f"{child:.2f} s CPU")


def _command(arguments: list[str], folder: Path) -> float:
    """CPU seconds of a command with all its processes, median of three after one that compiles."""
    call = [sys.executable, "-c", "import sys; from fewest.apps.cli import main; sys.exit(main())", *arguments]
    seconds = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(call, cwd=folder, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(seconds[1:])
