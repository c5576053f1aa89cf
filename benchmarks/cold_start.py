"""The first answer after install: CPU seconds with nothing compiled yet, and in the next process.

    python benchmarks/cold_start.py

Each line is a model on 4,000 rows of numbers, categories and missing values; 250 refused cases are explained. Every
figure is a process of its own with one thread; `NUMBA_CACHE_DIR` is empty for the first and kept for the second.
``explain`` is the call alone, ``process`` everything but fitting the model: imports, references and the call.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

ROWS, CASES = 4_000, 250
NUMBERS, CATEGORIES = 9, 4


def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, some of them missing, and categories; who pays back depends on all of them."""
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(ROWS, NUMBERS)).round(3), columns=[f"number {k}" for k in range(NUMBERS)])
    levels = random.integers(0, 4, size=(ROWS, CATEGORIES))
    risk = X.to_numpy() @ random.normal(size=NUMBERS) + 0.6 * X["number 0"] * X["number 1"]
    risk += random.normal(size=(CATEGORIES, 4))[np.arange(CATEGORIES), levels].sum(axis=1)
    for k in range(CATEGORIES):
        X[f"category {k}"] = np.array(["a", "b", "c", "d"], dtype=object)[levels[:, k]]
    X.loc[random.random(ROWS) < 0.1, "number 3"] = np.nan
    return X, np.where(risk + random.normal(size=ROWS) > 1.0, "bad", "good")


def pipeline(model: Any, *, scaled: bool = False, filled: bool = False) -> Any:
    """The model after the usual steps."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    steps = [*([SimpleImputer()] if filled else []), *([StandardScaler()] if scaled else [])]
    numbers = make_pipeline(*steps) if steps else "passthrough"
    columns = [f"number {k}" for k in range(NUMBERS)], [f"category {k}" for k in range(CATEGORIES)]
    split = ColumnTransformer([("n", numbers, columns[0]), ("c", OneHotEncoder(handle_unknown="ignore"), columns[1])])
    return make_pipeline(split, model)


def logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return pipeline(LogisticRegression(max_iter=1000), scaled=True, filled=True)


def boosted() -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return pipeline(GradientBoostingClassifier(random_state=0), filled=True)


def histogram() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return pipeline(HistGradientBoostingClassifier(random_state=0))


def xgboost() -> Any:
    from xgboost import XGBClassifier

    return pipeline(XGBClassifier(n_estimators=100, n_jobs=1, random_state=0))


def network() -> Any:
    from sklearn.neural_network import MLPClassifier

    return pipeline(MLPClassifier((32, 16), max_iter=60, random_state=0), scaled=True, filled=True)


def opaque() -> Any:
    from sklearn.naive_bayes import GaussianNB

    return pipeline(GaussianNB(), scaled=True, filled=True)


MODELS: dict[str, Callable[[], Any]] = {
    "logistic regression": logistic,
    "gradient boosting": boosted,
    "histogram boosting": histogram,
    "xgboost": xgboost,
    "network": network,
    "opaque": opaque,
}


def measure(name: str) -> dict[str, Any]:
    """What one process spends on the first question it is asked."""
    import warnings

    warnings.simplefilter("ignore")
    X, y = table()
    model = MODELS[name]()
    target = (y == "bad").astype(int) if name == "xgboost" else y
    model.fit(X, target)
    positive = 1 if name == "xgboost" else "bad"
    began = time.process_time()
    import fewest as fw

    decision = fw.Decision(model, positive=positive)
    references = fw.references.single(decision, X, target)
    cases = X[decision.refuses(X)].iloc[:CASES]
    explainer = fw.Explainer(decision, references, n_jobs=1)
    asked = time.process_time()
    out = explainer.explain(cases)
    ended = time.process_time()
    return {
        "explain": ended - asked,
        "process": ended - began,
        "sev": out.to_frame().sev.astype(float).fillna(-1).tolist(),
    }


def ask(name: str, cache: str) -> dict[str, Any]:
    """The same in a process of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    print(f"{'':<20} {'first process':>24}   {'second process':>24}")
    print(f"{'CPU seconds':<20} {'explain':>12}{'process':>12}   {'explain':>12}{'process':>12}")
    for name in MODELS:
        with tempfile.TemporaryDirectory() as cache:
            first, second = ask(name, cache), ask(name, cache)
        assert first["sev"] == second["sev"], name
        figures = "   ".join(f"{one['explain']:>12.1f}{one['process']:>12.1f}" for one in (first, second))
        print(f"{name:<20} {figures}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
