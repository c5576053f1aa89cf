"""SEV-T on a million rows: the search alone and end to end against `predict`, and against the paper's algorithm."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fewest import references
from fewest.decision import Decision
from fewest.experiments.benchmarking.measure import Row, at_least, at_most, cpu
from fewest.experiments.benchmarking.yardsticks import negative_paths, plain_sev_t
from fewest.explainer import Explainer

ROWS = 1_000_000
PLAIN_ROWS = 1_000
LEAVES = 32


def sample(rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Ten numbers, of which an interaction of three and two more decide."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 10)).round(3)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] - 0.5 * X[:, 4]
    y = (signal + random.normal(size=rows) > 0).astype(int)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(10)]), y


def tree_million(rows: int = ROWS) -> Iterator[Row]:
    """A tree of 32 leaves, a million rows."""
    from sklearn.tree import DecisionTreeClassifier

    X_train, y_train = sample(20_000, 1)
    model = DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0).fit(X_train, y_train)
    decision = Decision(model)
    refs = references.leaves(decision, X_train, y_train)
    X, _ = sample(rows)
    reach = refs.reach()
    cases = X[decision.verdicts(X).positive]
    codes = reach.tree.encode(cases)
    reach.search(codes[:10])
    arrays = cases.to_numpy()
    inner = DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0).fit(X_train.to_numpy(), y_train)
    search = cpu(lambda: reach.search(codes))
    predict = cpu(lambda: inner.predict(arrays))
    detail = (
        f"{1e9 * search / len(cases):.0f} ns/query against {1e9 * predict / len(cases):.0f} ns/row, "
        f"{len(cases):,} queries, {len(reach.leaf)} negative of {len(reach.tree.leaves)} leaves"
    )
    yield at_most("SEV-T search, 32 leaves", search / predict, 2, "x predict", detail)
    explainer = Explainer(decision, refs, n_jobs=1)
    explainer.explain(X.iloc[:1000])
    whole, alone = cpu(lambda: explainer.explain(X), repeats=3), cpu(lambda: model.predict(X), repeats=3)
    detail = f"explain {whole:.2f} s, predict {alone:.2f} s CPU, {rows:,} rows"
    yield at_most(f"SEV-T {rows:,} rows end to end", whole / alone, 15, "x predict", detail)
    few = arrays[:PLAIN_ROWS].astype(np.float32)
    inside = model.tree_
    paths = negative_paths(inside, inside.value[:, 0, 1] >= decision.cut)
    began = time.process_time()
    counts = [plain_sev_t(inside, paths, case) for case in few]
    plain = (time.process_time() - began) / len(few)
    if counts != reach.search(codes[:PLAIN_ROWS])[1].tolist():
        raise AssertionError("the paper's algorithm and the search do not agree")
    detail = f"{1e6 * plain:.0f} us/query, the same {len(few):,} answers"
    yield at_least("SEV-T against Algorithm 3 in Python", plain / (search / len(cases)), 1000, "x faster", detail)
