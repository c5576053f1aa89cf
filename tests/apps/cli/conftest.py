from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


@dataclass(frozen=True)
class Files:
    """A small model and its tables on disk."""

    folder: Path
    train: Path
    data: Path
    skops: Path
    joblib: Path
    model: Any

    @property
    def arguments(self) -> list[str]:
        """The shortest complete call."""
        return ["explain", str(self.data), "--model", str(self.skops), "--train", str(self.train), "--target", "risk"]


def table(n: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "debt": random.integers(0, 100, n),
            "age": random.integers(18, 80, n),
            "code": random.choice(["A07", "B10", "C42"], n),
        }
    )
    y = np.where(X["debt"] + 10 * (X["code"] == "A07") - 0.3 * X["age"] > 40, "bad", "good")
    return X, y


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("cli")
    X, y = table()
    encode = make_column_transformer((OneHotEncoder(), ["code"]), (StandardScaler(), ["debt", "age"]))
    model = make_pipeline(encode, LogisticRegression(C=10)).fit(X, y)
    X.assign(risk=y).to_csv(folder / "train.csv", index=False)
    X.to_csv(folder / "data.csv", index=False)
    joblib.dump(model, folder / "model.joblib")
    skops_io = pytest.importorskip("skops.io")
    skops_io.dump(model, folder / "model.skops")
    names = ("train.csv", "data.csv", "model.skops", "model.joblib")
    return Files(folder, *(folder / name for name in names), model)
