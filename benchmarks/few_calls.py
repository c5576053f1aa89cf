"""A model whose call is expensive and whose rows are cheap: how many calls and rows a table of cases takes.

python benchmarks/few_calls.py; the model is a stand-in for those that read their training rows anew at every call: it
encodes them, and a row attends to all of them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fewest as fw
from fewest.datasets import load
from fewest.engine.search import levelwise

CASES = (1, 10, 60, 300)


class InContext:
    """Scores rows by attention to the training rows, which are encoded at every call."""

    def __init__(self, X: pd.DataFrame, y: Any, layers: int = 24, width: int = 192) -> None:
        self.text = list(X.select_dtypes(exclude="number").columns)
        self.numbers = [name for name in X.columns if name not in self.text]
        self.levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(X[self.text])
        self.scale = StandardScaler().fit(X[self.numbers])
        random = np.random.default_rng(0)
        self.rows, self.y, self.classes_ = self._plain(X), np.asarray(y), np.array([0, 1])
        self.feature_names_in_ = np.array(X.columns, dtype=object)
        d = self.rows.shape[1]
        self.layers = [random.normal(size=(width, width)) / width**0.5 for _ in range(layers)]
        self.first = random.normal(size=(d, width)) / d**0.5
        self.calls, self.seen, self.seconds = 0, 0, 0.0

    def _plain(self, X: pd.DataFrame) -> np.ndarray:
        return np.hstack([self.levels.transform(X[self.text]), self.scale.transform(X[self.numbers])])

    def _encoded(self, rows: np.ndarray) -> np.ndarray:
        hidden = rows @ self.first
        for layer in self.layers:
            hidden = hidden + 0.1 * np.tanh(hidden @ layer)
        return hidden

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Chances of both classes."""
        began = time.process_time()
        context, asked = self._encoded(self.rows), self.first
        near = np.tanh(self._plain(X) @ asked) @ np.tanh(context).T / 6.0
        weight = np.exp(near - near.max(axis=1, keepdims=True))
        chance = np.einsum("ij,j->i", weight, self.y) / weight.sum(axis=1)
        self.calls, self.seen = self.calls + 1, self.seen + len(X)
        self.seconds += time.process_time() - began
        return np.column_stack([1.0 - chance, chance])


@contextmanager
def plain_waves() -> Iterator[None]:
    """Level by level as it was: every level in waves, nearest sets first, nothing learned from other cases."""
    most, likely = levelwise._ONE_CALL, levelwise._Group._likely
    levelwise._ONE_CALL, levelwise._Group._likely = 0, lambda self: iter(())
    try:
        yield
    finally:
        levelwise._ONE_CALL, levelwise._Group._likely = most, likely


def counted(explainer: fw.Explainer, cases: pd.DataFrame) -> tuple[int, int, float, list[Any]]:
    """Calls, rows and CPU seconds in the model, and the answers, of one table."""
    model = explainer.decision.model
    model.calls, model.seen, model.seconds = 0, 0, 0.0
    out = explainer.explain(cases)
    return model.calls, model.seen, model.seconds, [str(answer) for answer in out]


def main() -> None:
    warnings.simplefilter("ignore")
    german = load("german")
    y = (german.labels == "bad").astype(int)
    model = InContext(german.X, y)
    decision = fw.Decision(model, positive=1, threshold=float(np.quantile(model.predict_proba(german.X)[:, 1], 0.7)))
    references = fw.references.single(decision, german.X, y, centre="median", on_positive="allow")
    explainer = fw.Explainer(decision, references, n_jobs=1, max_nodes=20_000)
    refused = german.X[decision.refuses(german.X)]
    explainer.explain(refused.iloc[:1])  # what is measured of a model once
    print("| cases | calls | rows | s in the model | calls before | rows before | s before | other answers |")
    print("|---|---|---|---|---|---|---|---|")
    for cases in CASES:
        asked = refused.iloc[:cases]
        calls, rows, seconds, answers = counted(explainer, asked)
        with plain_waves():
            calls_before, rows_before, before, others = counted(explainer, asked)
        differ = sum(one != other for one, other in zip(answers, others, strict=True))
        print(
            f"| {len(asked)} | {calls} | {rows:,} | {seconds:.2f} | {calls_before} | {rows_before:,} | {before:.2f} "
            f"| {differ} |"
        )


if __name__ == "__main__":
    main()
