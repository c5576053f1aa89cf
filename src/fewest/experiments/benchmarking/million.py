"""A million mixed rows through a logistic-regression pipeline; run in a process of its own."""

from __future__ import annotations

import json
import resource
import time

import numpy as np
import pandas as pd


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


def main(rows: int) -> None:
    """Print CPU seconds of predict_proba and of explain, and the peak memory."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    import fewest as fw

    X, y = table(20_000, 1)
    text = [c for c in X if c.startswith("text")]
    encoder = make_column_transformer((StandardScaler(), [c for c in X if c not in text]), (OneHotEncoder(), text))
    model = make_pipeline(encoder, LogisticRegression(C=0.1, max_iter=500)).fit(X, y)
    decision = fw.Decision(model)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y))
    explainer.explain(X.iloc[:1000])
    del X, y
    cases, _ = table(rows)
    began = time.process_time()
    model.predict_proba(cases)
    predict = time.process_time() - began
    began = time.process_time()
    out = explainer.explain(cases)
    explain = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    counts = out.counts()
    print(json.dumps({"predict": predict, "explain": explain, "gigabytes": peak, "positive": counts["EXPLAINED"]}))


if __name__ == "__main__":
    main(1_000_000)
