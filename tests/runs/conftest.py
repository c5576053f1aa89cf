from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fewest as fw


def table(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "debt": random.integers(0, 100, n),
            "age": random.integers(18, 80, n),
            "rate": np.round(random.normal(size=n), 3),
            "code": random.choice(["A07", "B10", "C42"], n),
            "home": random.choice(["own", "rent, cheap", 'the "villa"'], n),
        }
    )
    signal = X["debt"] + 10 * (X["code"] == "A07") - 0.3 * X["age"] + 12 * X["rate"] + 9 * (X["home"] == "own")
    return X, np.where(signal > 40, "bad", "good")


@dataclass(frozen=True)
class Subject:
    """A small model, an explainer of it and its cases on disk."""

    explainer: fw.Explainer
    cases: pd.DataFrame
    csv: Path
    parquet: Path

    @property
    def decision(self) -> fw.Decision:
        return self.explainer.decision


@pytest.fixture(scope="session")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("scale")
    X, y = table(400, 1)
    text = ["code", "home"]
    encode = make_column_transformer((OneHotEncoder(), text), (StandardScaler(), ["debt", "age", "rate"]))
    decision = fw.Decision(make_pipeline(encode, LogisticRegression()).fit(X, y), positive="bad")
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    cases, _ = table(700)
    cases.to_csv(folder / "cases.csv", index=False)
    cases.to_parquet(folder / "cases.parquet", row_group_size=150)
    return Subject(explainer, cases, folder / "cases.csv", folder / "cases.parquet")


@pytest.fixture(scope="session")
def fingerprint() -> Callable[[Path], dict[str, str]]:
    """Name and SHA-256 of every file of a folder."""

    def read(folder: Path) -> dict[str, str]:
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}

    return read


@pytest.fixture(scope="session")
def everything() -> tuple[fw.Explainer, pd.DataFrame]:
    """Features of all kinds, with missing values, and a model that takes them."""
    random = np.random.default_rng(3)
    n = 240
    X = pd.DataFrame(
        {
            "number": np.where(random.random(n) < 0.2, np.nan, np.round(random.normal(size=n), 2)),
            "count": np.where(random.random(n) < 0.2, np.nan, random.integers(0, 9, n)),
            "flag": random.random(n) < 0.5,
            "job": pd.Categorical(random.choice(['ä, "q"', "b", "c"], n)),
            "text": pd.Series(random.choice(["x", "y"], n)).where(random.random(n) > 0.2, None),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(random.integers(0, 90, n), "D"),
            "own": (random.random(n) < 0.5).astype(int),
            "left": random.normal(size=n).round(3),
            "right": random.normal(size=n).round(3),
        }
    )
    X["rent"] = 1 - X["own"]

    def score(rows: pd.DataFrame) -> np.ndarray:
        days = (rows["day"] - pd.Timestamp("2026-01-01")).dt.days.to_numpy()
        parts = rows["number"].fillna(0.3) + rows["count"].fillna(2) / 3 + rows["flag"] + (rows["job"] == "b")
        parts = parts + (rows["text"] == "x") + days / 40 + rows["own"] + rows["left"] * rows["right"]
        return np.asarray(parts, dtype=float) / 10

    decision = fw.Decision(score, threshold=0.3)
    schema = fw.Schema.infer(X, {"home": ["own", "rent"], "both": ["left", "right"]})
    lowest = X.iloc[np.argsort(score(X))[:2]]
    refs = fw.references.supplied(decision, lowest, schema=schema, assignment="sparsest")
    return fw.Explainer(decision, refs, n_jobs=1, weights={"count": 0.5}), X
