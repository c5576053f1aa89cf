"""``fewest demo``: German Credit from raw columns to a report, in one command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest import references
from fewest.cli._files import write_result
from fewest.cli._text import progress
from fewest.datasets import Dataset, load
from fewest.decision import Decision
from fewest.errors import UsageError
from fewest.explainer import Explainer
from fewest.explanations import Explanations

FILES = ("report.html", "explanations.json", "explanations.csv")
TITLE = "Whom does the model refuse, and what would have turned it? German Credit"


def run(folder: Path, model: str, as_json: bool) -> int:
    """Train, explain, print, write."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out {folder} is a file", do="name a folder")
    out = explain_german(model)
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        write_result(out, folder / name, TITLE, "refused")
    first = sentence(out)
    if as_json:
        files = [str(folder / name) for name in FILES]
        print(json.dumps({"model": model, "summary": out.summary(), "sentence": first, "files": files}, indent=1))
        return 0
    print(out.summary())
    print(f"\n{first}\n")
    print(f"Open {folder / FILES[0]} in a browser; the answers are also in {FILES[1]} and {FILES[2]} beside it.")
    return 0


def explain_german(model: str) -> Explanations:
    """Explain all 1,000 cases with a model trained on four fifths of them."""
    german, fitted, X_train, y_train = train_german(model)
    decision = Decision(fitted, positive="bad")
    reference = references.single(decision, X_train, y_train, schema=german.schema)
    with progress("explaining") as advance:
        return Explainer(decision, reference).explain(german.X, progress=advance)


def train_german(model: str) -> tuple[Dataset, Any, pd.DataFrame, npt.NDArray[np.str_]]:
    """German Credit, a model trained on four fifths of it, and those rows with their labels."""
    from sklearn.model_selection import train_test_split

    german = load("german")
    X_train, _, y_train, _ = train_test_split(
        german.X, german.labels, test_size=0.2, stratify=german.labels, random_state=0
    )
    return german, pipeline(german, model).fit(X_train, y_train), X_train, y_train


def pipeline(data: Dataset, model: str) -> Any:
    """One-hot text columns, standardised numbers, and the model asked for."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    text = [feature.name for feature in data.schema.features if feature.kind == "category"]
    numbers = [feature.name for feature in data.schema.features if feature.is_numeric]
    encode = ColumnTransformer(
        [
            ("text", OneHotEncoder(handle_unknown="ignore", sparse_output=False), text),
            ("numbers", StandardScaler(), numbers),
        ]
    )
    return Pipeline([("encode", encode), ("decide", _classifier(model))])


def _classifier(model: str) -> Any:
    if model == "boosted":
        from sklearn.ensemble import GradientBoostingClassifier

        return GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0)
    if model == "mlp":
        from sklearn.neural_network import MLPClassifier

        return MLPClassifier((32,), alpha=1.0, max_iter=2000, random_state=0)
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=0.1, max_iter=1000)


def sentence(out: Explanations) -> str:
    """The first answer that changes two features, the first answer of all where there is none."""
    sev = out.answers.moved.sum(axis=1)
    for wanted in (sev == 2, sev >= 1):
        if wanted.any():
            row = int(np.flatnonzero(wanted)[0])
            return f"Case {out[row].label}: {out[row]}"
    return "The model refuses nobody."
