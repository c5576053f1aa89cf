"""Millions of mixed rows, in memory, and from Parquet into a run folder; each step in its own process, for memory."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
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
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def linear_million(rows: int = 1_000_000) -> Iterator[Row]:
    """A million mixed rows in memory, end to end."""
    result = _step("million", rows, environment={})
    detail = (
        f"explain {result['explain']:.1f} s, predict_proba {result['predict']:.1f} s CPU, {result['positive']} cases"
    )
    yield at_most(f"LR {rows:,} x 25 end to end", result["explain"] / result["predict"], 10, "x predict_proba", detail)
    yield at_most(f"LR {rows:,} x 25 memory", result["gigabytes"], 2, "GB", "peak of the whole process")


def files_linear(rows: int = 10_000_000) -> Iterator[Row]:
    """Ten million mixed rows through a logistic regression."""
    yield from _workload("LR", "linear", rows, 10)


def files_boosted(rows: int = 1_000_000) -> Iterator[Row]:
    """A million mixed rows through 200 boosted trees."""
    yield from _workload("GBDT 200x3", "boosted", rows, 40)


def _workload(title: str, kind: str, rows: int, limit: float) -> Iterator[Row]:
    name = f"{title} {rows:,} x 25 Parquet to run folder"
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        yield skipped(name, f"<= {limit:g}", 'pyarrow is not here: pip install "fewest[runs]"')
        return
    with tempfile.TemporaryDirectory() as folder:
        _step("make", rows, folder, kind)
        predict = _step("predict", rows, folder)
        explain = _step("explain", rows, folder)
    detail = (
        f"{rows / explain['wall']:,.0f} rows/s with {explain['jobs']} processes ({explain['wall']:.0f} s), "
        f"{explain['cpu']:.0f} s CPU against {predict['cpu']:.0f} s of read and predict_proba over the same file, "
        f"run folder {explain['megabytes']:,.0f} MB (the cases are not kept), {explain['counts']}"
    )
    yield at_most(name, explain["cpu"] / predict["cpu"], limit, "x predict_proba", detail)
    detail = f"{explain['own']:.2f} here and {explain['worker']:.2f} in the largest of {explain['jobs']} workers"
    yield at_most(f"{name}, memory", explain["gigabytes"], GIGABYTES, "GB", detail)


def _step(step: str, rows: int, *more: str, environment: dict[str, str] = ONE_THREAD) -> dict[str, Any]:
    """One step in a fresh process; what it printed last."""
    return dict(json.loads(fresh(["-m", __name__, step, str(rows), *more], environment)))


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
    """CPU seconds of predict_proba and of explain on rows in memory, and the peak memory."""
    decision, refs = _fitted("linear")
    explainer = Explainer(decision, refs)
    explainer.explain(table(1_000, 1)[0])
    cases, _ = table(rows)
    _, predict = timed(lambda: decision.model.predict_proba(cases))
    out, spent = timed(lambda: explainer.explain(cases))
    peak = _gigabytes(resource.RUSAGE_SELF)
    return {"predict": predict, "explain": spent, "gigabytes": peak, "positive": out.counts()["EXPLAINED"]}


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
    """The same file into a run folder, with all cores and without a copy of the cases.

    The compiled searches are in the cache already.
    """
    import joblib

    from fewest.runs import explain_files

    decision = Decision(joblib.load(folder / "model.joblib"))
    explainer = Explainer(decision, references.load(folder / "references.json", decision))
    n_jobs = explainer.n_jobs
    began, before = time.monotonic(), _cpu()
    run = explain_files(explainer, folder / "cases.parquet", folder / "run", n_jobs=n_jobs, keep_cases=False)
    wall, cpu = time.monotonic() - began, _cpu() - before
    own, worker = (_gigabytes(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    size = sum(file.stat().st_size for file in run.path.iterdir()) / 1e6
    total = own + (n_jobs * worker if n_jobs > 1 else 0.0)
    counts = ", ".join(f"{count:,} {name.lower()}" for name, count in run.counts.items() if count)
    return {
        "wall": wall, "cpu": cpu, "jobs": n_jobs, "own": own, "worker": worker, "gigabytes": total, "megabytes": size,
        "counts": counts,
    }  # fmt: skip


def _cpu() -> float:
    """CPU seconds of this process and of those it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _gigabytes(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1e6


def main(step: str, rows: str, folder: str = "", kind: str = "") -> None:
    """One step, by name."""
    steps = {
        "million": lambda: million(int(rows)),
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
