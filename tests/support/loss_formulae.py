"""All-Opt's losses read literally, row by row and feature by feature, and small sessions to hold them against."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.decision import Decision
from fewest.models.training import AllOptClassifier, Architecture, Optimizer, SevLoss
from fewest.models.training._session import Session
from fewest.models.training._trainer import AllOptTerm, Batch
from fewest.references import References

torch = pytest.importorskip("torch")

MODELS = ("logistic", "mlp", "boosted")
C1, C2 = 0.7, 0.3


def _flexible(decision: Decision, X: Any, y: Any) -> References:
    return fw.references.single(decision, X, y, on_positive="allow").flexible(0.1)


REFERENCES = {
    "single": "single",
    "nearest cluster": partial(fw.references.clusters, n_clusters=3, assignment="features"),
    "sparsest clusters": partial(fw.references.clusters, n_clusters=3, assignment="sparsest"),
    "flexible": _flexible,
}


def table(seed: int, n: int = 160) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "debt": rng.normal(size=n),
            "job": rng.choice(["none", "clerk", "driver"], n),
            "age": rng.integers(18, 80, n),
            "owner": rng.choice(["yes", "no"], n),
        }
    )
    score = frame["debt"] * 1.5 + (frame["job"] == "none") - (frame["age"] - 45) / 20 - 0.5
    return frame, np.where(score + rng.normal(size=n) > 0, "bad", "good")


def small_booster() -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0)


def session(
    model: str, references: str, loss: SevLoss, seed: int = 0, encoder: str | None = None
) -> tuple[Session, AllOptTerm]:
    """A model after a short warm-up, with the term over all rows."""
    frame, labels = table(seed)
    estimator = AllOptClassifier(
        model, REFERENCES[references], warmup_epochs=4, epochs=1, positive="bad", device="cpu", loss=loss,
        architecture=Architecture(hidden=(6, 5), knots=4, booster=small_booster(), encoder=encoder),
        optimizer=Optimizer(0.05),
    )  # fmt: skip
    begun, _ = estimator._begin(frame, labels)
    begun.trainer.run("warm-up", 4)
    return begun, AllOptTerm(C1, C2, loss, begun.new_targets(), lambda epoch: None, begun.schema.names)


def batch(begun: Session) -> Batch:
    numbers = torch.arange(len(begun.frame))
    rows = begun.trainer.rows
    return Batch(numbers, rows, begun.head.logits(rows))


def literal(begun: Session, loss: SevLoss) -> float:
    """The sum of both terms, row by row and feature by feature, on raw rows and the exported model."""
    references = begun.references
    assert references is not None
    model, frame = begun.model(), begun.frame
    chance = list(model.classes_).index(begun.positive)

    def f(rows: list[pd.Series[Any]]) -> Any:
        return model.predict_proba(begun.schema.conform(pd.DataFrame(rows), unseen="allow"))[:, chance]

    free = [one for one in begun.schema.features if loss.features is None or one.name in loss.features]
    of_references = f([row for _, row in references.frame.iterrows()])
    queries = np.flatnonzero(f([row for _, row in frame.iterrows()]) >= 0.5)
    candidates = references.candidates(frame)[queries]
    rows = []
    for i, numbers in zip(queries, candidates, strict=True):
        for number in numbers:
            query, reference = frame.iloc[i], references.frame.iloc[int(number)]
            start, goal = (reference, query) if loss.kind == "plus" else (query, reference)
            for feature in free:
                moved = start.copy()
                moved[list(feature.columns)] = goal[list(feature.columns)]
                rows.append(moved)
    values = f(rows).reshape(len(queries), -1)
    best = 1 - values.max(axis=1) if loss.kind == "plus" else values.min(axis=1)
    assert len(queries) > 20
    sev = np.maximum(best, 0.5 - loss.margin).mean()
    return float(C1 * sev + C2 * np.maximum(of_references[candidates], 0.5 - loss.reference_margin).mean())


def odds(*chances: float) -> Any:
    return torch.logit(torch.tensor(chances, dtype=torch.float64))
