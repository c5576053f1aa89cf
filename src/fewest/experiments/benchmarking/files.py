"""Files in, a run folder out: millions of rows from Parquet, each step in a process of its own so that memory shows."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fewest.experiments.benchmarking.measure import Row, at_most, skipped
from fewest.experiments.benchmarking.million import table

WRITTEN_AT_ONCE = 200_000
TRAINED_ON = 20_000
GIGABYTES = 1.5
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


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
        _step("make", folder, kind, rows)
        predict = _step("predict", folder, kind, rows)
        explain = _step("explain", folder, kind, rows)
    detail = (
        f"{rows / explain['wall']:,.0f} rows/s with {explain['jobs']} processes ({explain['wall']:.0f} s), "
        f"{explain['cpu']:.0f} s CPU against {predict['cpu']:.0f} s of read and predict_proba over the same file, "
        f"run folder {explain['megabytes']:,.0f} MB (the cases are not kept), {explain['counts']}"
    )
    yield at_most(name, explain["cpu"] / predict["cpu"], limit, "x predict_proba", detail)
    detail = f"{explain['own']:.2f} here and {explain['worker']:.2f} in the largest of {explain['jobs']} workers"
    yield at_most(f"{name}, memory", explain["gigabytes"], GIGABYTES, "GB", detail)


def _step(step: str, folder: str, kind: str, rows: int) -> dict[str, Any]:
    """One step in a fresh process; what it printed last."""
    call = [sys.executable, "-m", "fewest.experiments.benchmarking.files", step, folder, kind, str(rows)]
    done = subprocess.run(call, capture_output=True, text=True, check=True, env={**os.environ, **ONE_THREAD})
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def make(folder: Path, kind: str, rows: int) -> dict[str, Any]:
    """Train a model on other rows, and write the cases, a group of rows at a time."""
    import joblib
    import pyarrow as pa
    from pyarrow import parquet
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    import fewest as fw

    X, y = table(TRAINED_ON, 1)
    text = [column for column in X if column.startswith("text")]
    encoder = make_column_transformer((StandardScaler(), [c for c in X if c not in text]), (OneHotEncoder(), text))
    models = {
        "linear": LogisticRegression(C=0.1, max_iter=500),
        "boosted": GradientBoostingClassifier(n_estimators=200, max_depth=3, random_state=0),
    }
    decision = fw.Decision(make_pipeline(encoder, models[kind]).fit(X, y))
    joblib.dump(decision.model, folder / "model.joblib")
    fw.references.single(decision, X, y).save(folder / "references.json")
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

    import fewest as fw
    from fewest.runs import explain_files

    decision = fw.Decision(joblib.load(folder / "model.joblib"))
    explainer = fw.Explainer(decision, fw.references.load(folder / "references.json", decision))
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


def main(step: str, folder: str, kind: str, rows: str) -> None:
    """One step, by name."""
    place = Path(folder)
    result = make(place, kind, int(rows)) if step == "make" else {"predict": predict, "explain": explain}[step](place)
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
