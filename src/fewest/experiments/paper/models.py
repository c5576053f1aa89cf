"""The paper's four models on raw tables, and what the tables measure of a model and of its explanations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from inspect import signature
from itertools import groupby
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin

from fewest import credibility, references
from fewest.credibility import Credibility
from fewest.decision import Decision
from fewest.errors import FewestWarning, PositiveReferenceError, UsageError
from fewest.experiments.paper.data import Place, Rows
from fewest.experiments.paper.own_data import TEST_SHARE, OwnData
from fewest.experiments.peers.base import possible_values
from fewest.explainer import Explainer
from fewest.references import References
from fewest.references.clusters import DEFAULTS
from fewest.results.metrics import closeness
from fewest.tables.schema import Schema

WARM_UP = 3
CASES = 1000  # the authors explain the positives among the first thousand test rows
Densities = tuple[Credibility, Credibility]
MODELS = ("GBDT", "L1LR", "L2LR", "MLP")
# Clusters, and how much softer positively scored rows belong to them: the authors' settings per dataset.
CLUSTERS = {
    "adult": (7, 3.0),
    "compas": (5, 2.0),
    "diabetes": (4, 1.01),
    "fico": (4, 3.0),
    "german": (3, 1.01),
    "headline": (2, 1.01),
    "mimic": (4, 1.01),
    "mimic_demo": (4, 1.01),
}
# Lines of SEV-cluster -> how they are named, and what `references.clusters` is given beside the number and m.
CLUSTER_WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "clusters paper": ("paper's procedure", {"preset": "paper"}),
    "clusters authors": ("authors' code", {"preset": "authors"}),
    "clusters": ("ours (default)", {}),
}
PROCEDURES = ("clusters paper", "clusters")  # those that figures and single cases have; tables have the code's too
MAPPED = "pacmap"  # what the paper's procedure and the authors' code need beside the core

# Choices that the tables leave to `references`, as the published units were measured with them.
MEASURED_WITH: dict[str, dict[str, Any]] = {
    "single": {"centre": "mean"},
    "clusters": {
        "centre": "median", "embedding": "identity", "assignment": "sparsest", "select": "silhouette",
        "random_state": 0, "max_rows": 20_000, "min_share": 0.02,
    },
    "mixture": {"covariance": "full", "regularization": None, "random_state": 0, "max_rows": 20_000},
}  # fmt: skip
# Parameters of the models then; German Credit has a C of its own.
MODELS_THEN: dict[tuple[str, str], dict[str, Any]] = {
    ("L1LR", "fico"): {"C": 0.01, "l1_ratio": 1.0, "solver": "liblinear"},
    ("L2LR", "fico"): {"C": 0.01, "l1_ratio": 0.0, "solver": "liblinear"},
    ("L2LR", "german"): {"C": 0.1, "l1_ratio": 0.0, "solver": "liblinear"},
    ("GBDT", "fico"): {"n_estimators": 200, "max_depth": 3, "learning_rate": 0.1, "random_state": 42},
    ("MLP", "fico"): {"hidden_layer_sizes": (128, 128), "early_stopping": True, "random_state": 42},
}
TEST_SHARE_THEN = 0.2


def clusters_of(dataset: str, place: Place = None) -> tuple[int, float]:
    """Number of clusters and ``m`` of a dataset; of a table of yours, what it was read with.

    Examples
    --------
    >>> clusters_of("fico")
    (4, 3.0)
    """
    if isinstance(place, OwnData) and dataset == place.name:
        return place.n_clusters, place.m
    if dataset not in CLUSTERS:
        raise UsageError(
            f'there are no clusters set for a dataset "{dataset}"',
            do=f"choose from {', '.join(CLUSTERS)}, or pass a table of yours: fewest.experiments.paper.OwnData",
        )
    return CLUSTERS[dataset]


def ways_here(among: Sequence[str] = tuple(CLUSTER_WAYS)) -> tuple[str, ...]:
    """Lines of SEV-cluster that can be measured with what is installed."""
    return tuple(way for way in among if not CLUSTER_WAYS[way][1] or find_spec(MAPPED) is not None)


def changed_defaults() -> dict[str, Any]:
    """What is done otherwise today than when the published units were measured, as plain values.

    Defaults of references and densities, parameters of the models, and the share of test rows.

    It belongs to the settings of a table: a changed default makes new units, and units that hold are not lost.
    """
    out: dict[str, Any] = {}
    for kind, known in MEASURED_WITH.items():
        make = credibility.mixture if kind == "mixture" else getattr(references, kind)
        defaults = {name: each.default for name, each in signature(make).parameters.items()}
        now = {**defaults, **(DEFAULTS if kind == "clusters" else {})}
        out |= {f"{kind}.{name}": str(now[name]) for name, value in known.items() if now[name] != value}
    for (kind, dataset), known in MODELS_THEN.items():
        now = estimator(kind, dataset).get_params()
        out |= {f"{kind}.{dataset}.{name}": str(now[name]) for name, value in known.items() if now[name] != value}
    return out if TEST_SHARE == TEST_SHARE_THEN else {**out, "test_share": TEST_SHARE}


def estimator(kind: str, dataset: str, quick: bool = False) -> Any:
    """An unfitted model; the authors regularise less on German Credit."""
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    if kind in ("L1LR", "L2LR"):
        strength = 0.1 if dataset == "german" else 0.01
        return LogisticRegression(C=strength, l1_ratio=1.0 if kind == "L1LR" else 0.0, solver="liblinear")
    if kind == "GBDT":
        return GradientBoostingClassifier(n_estimators=20 if quick else 200, max_depth=3, random_state=42)
    return MLPClassifier((8,) if quick else (128, 128), early_stopping=True, random_state=42)


def fit(kind: str, dataset: str, X: pd.DataFrame, y: Any, quick: bool = False) -> Any:
    """The model behind an encoder, fitted.

    As in the authors' experiments the encoder knows the negatively labelled rows, so that the mean reference is the
    origin; those of the training part only. Columns stay in order, but for levels of many, which go to the end.
    """
    from sklearn.pipeline import make_pipeline

    encoder = _encoder(X).fit(X[y == 0])
    model = estimator(kind, dataset, quick).fit(encoder.transform(X), y)
    return make_pipeline(encoder, model)


class PaperModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One of the paper's models as an estimator of raw rows with labels 0 and 1."""

    def __init__(self, kind: str, dataset: str, quick: bool = False) -> None:
        self.kind = kind
        self.dataset = dataset
        self.quick = quick

    def fit(self, X: pd.DataFrame, y: Any) -> Self:
        """Fit encoder and model."""
        self.pipeline_ = fit(self.kind, self.dataset, X, y, self.quick)
        self.classes_ = self.pipeline_.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> Any:
        """Chances of both classes (n, 2)."""
        return self.pipeline_.predict_proba(X)

    def predict(self, X: pd.DataFrame) -> Any:
        """Label of each row (n,)."""
        return self.pipeline_.predict(X)


def _encoder(X: pd.DataFrame) -> Any:
    """Standardised numbers and binary columns where they stand, then one column per level."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    def is_number(column: str) -> bool:
        return bool(pd.api.types.is_numeric_dtype(X[column].dtype))

    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    binary = OneHotEncoder(handle_unknown="ignore", drop="if_binary", sparse_output=False)
    many = [column for column in X if not is_number(column) and X[column].nunique() > 2]
    runs = groupby((column for column in X if column not in many), is_number)
    parts: list[Any] = [(StandardScaler() if number else binary, list(columns)) for number, columns in runs]
    return make_column_transformer(*parts, *([(levels, many)] if many else []))


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings of references that are decided positive: tables count them, nothing else is to be done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewestWarning)
        yield


def accepted(make: Callable[..., References], *given: Any, **settings: Any) -> References | None:
    """References whose centres the model accepts; None where it accepts none."""
    try:
        with quietly():
            return make(*given, **settings)
    except PositiveReferenceError:
        return None


def densities_of(decision: Decision, rows: Rows, components: int) -> Densities:
    """The authors' mixture, and the one that does not punish a rare level with -1e5."""
    table, labels = rows.X_train, rows.y_train
    return (
        credibility.mixture(decision, table, labels, paper=True, n_components=components),
        credibility.mixture(decision, table, labels, n_components=components),
    )


def performance(model: Any, rows: Rows) -> dict[str, float]:
    """Accuracy at one half and AUC, on training and on test rows."""
    from sklearn.metrics import roc_auc_score

    figures = {}
    for part, X, y in (("train", rows.X_train, rows.y_train), ("test", rows.X_test, rows.y_test)):
        score = model.predict_proba(X)[:, 1]
        figures[f"{part}_accuracy"] = float(np.mean((score >= 0.5) == (y == 1)))
        figures[f"{part}_auc"] = float(roc_auc_score(y, score))
    return figures


def explain(decision: Decision, refs: References, rows: Rows, densities: Densities) -> dict[str, float]:
    """Figures of one way to explain."""
    explainer = Explainer(decision, refs, n_jobs=1, unseen="allow")
    cases = rows.X_test.iloc[:CASES]
    cases = cases[decision.refuses(refs.schema.conform(cases, unseen="allow"))]
    if len(cases) == 0:
        return {"decided": 0.0}
    explainer.look_inside(cases)
    explainer.explain(cases.iloc[:WARM_UP])  # what is compiled on the first call is not part of a case's time
    out = explainer.explain(cases)
    sev, counts, near = out.sev.dropna(), out.counts(), closeness(out)
    answered = out.answers.moved.any(axis=1)
    turned, moved = out.turned()[answered], out.answers.moved[answered]
    # Known levels, and whole numbers where only these occur: in the table itself, whatever the references were given.
    original = Schema.infer(rows.X_train).features
    possible = [~moved[:, j] | possible_values(turned, feature) for j, feature in enumerate(original)]
    return {
        "decided": float(len(cases)),
        "sev": float(sev.mean()) if len(sev) else math.nan,
        "unreachable": float(counts["UNREACHABLE"]),
        "stopped": float(counts["BUDGET"]),
        "flexibility_used": float(out.summary().get("flexibility used", math.nan)),
        "milliseconds": 1e3 * out.seconds / len(out),
        "l_inf": near.mean_l_inf,
        "l_inf_median": near.median_l_inf,
        "gower": near.mean_gower,
        **(likelihoods(turned, densities) if len(turned) else {}),
        "possible": float(np.all(possible, axis=0).mean()) if len(turned) else math.nan,
    }


def likelihoods(rows: pd.DataFrame, densities: Densities) -> dict[str, float]:
    """Mean and median log-likelihood of rows under both mixtures."""
    authors, sane = (density.log_density(rows) for density in densities)
    return {
        "log_likelihood": float(authors.mean()),
        "log_likelihood_median": float(np.median(authors)),
        "sane_log_likelihood": float(sane.mean()),
        "sane_log_likelihood_median": float(np.median(sane)),
    }
