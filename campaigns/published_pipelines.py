"""Pipelines after patterns that people publish, with the pages they are found on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import published_steps as own
from published_steps import NUMBERS, TEXT

Maker = Callable[[], Any]


def table(n: int, seed: int, holes: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    """Made-up applications for credit: four numbers, two of text; with ``holes`` some incomes and debts are missing."""
    random = np.random.default_rng([seed, n])
    X = pd.DataFrame({
        "income": random.gamma(4, 8, n).round(1),
        "debt": random.gamma(2, 8, n).round(1),
        "age": random.integers(19, 75, n).astype(float),
        "years": random.integers(0, 18, n).astype(float),
        "job": pd.Series(random.choice(["clerk", "nurse", "smith", "cook"], n), dtype="str"),
        "home": pd.Series(random.choice(["own", "rent", "free"], n), dtype="str"),
    })  # fmt: skip
    burden = X["debt"] / (X["income"] + 1) - 0.02 * X["years"] + 0.5 * ((X["home"] == "rent") & (X["job"] == "cook"))
    y = (burden + random.normal(scale=0.15, size=n) > burden.median()).to_numpy().astype(int)
    if holes:
        for name in ("income", "debt"):
            X[name] = X[name].where(random.random(n) > 0.15)
    return X, y


def logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=5000)


def boosted() -> GradientBoostingClassifier:
    return GradientBoostingClassifier(n_estimators=25, random_state=0)


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(12, max_depth=5, random_state=0)


def encoded(numbers: Any) -> Any:
    """Numbers through one transformer, text one-hot."""
    return make_column_transformer((numbers, NUMBERS), (OneHotEncoder(handle_unknown="ignore"), TEXT))


def numbers_only(*steps: Any) -> Any:
    return make_pipeline(make_column_transformer(("passthrough", NUMBERS)), *steps)


def debt_share(frame: pd.DataFrame) -> pd.DataFrame:
    """A user's own function of two columns beside the columns themselves."""
    return frame[NUMBERS].assign(share=frame["debt"] / (frame["debt"] + frame["income"] + 1))


def _from(module: str, name: str, **options: Any) -> Any:
    return getattr(import_module(module), name)(**options)


def _category_encoders() -> Any:
    encoder = _from("category_encoders", "TargetEncoder", cols=TEXT)
    return make_pipeline(encoder, StandardScaler(), logistic())


def _binary_encoders() -> Any:
    return make_pipeline(_from("category_encoders", "BinaryEncoder", cols=TEXT), forest())


def _feature_engine() -> Any:
    maths = _from("feature_engine.creation", "MathFeatures", variables=["income", "debt"], func=["sum", "max"])
    relative = _from("feature_engine.creation", "RelativeFeatures", variables=["debt"], reference=["age"],
                     func=["div", "sub"])  # fmt: skip
    return make_pipeline(FunctionTransformer(_numbers), maths, relative, boosted())


def _numbers(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[NUMBERS]


def _imblearn() -> Any:
    make = import_module("imblearn.pipeline").make_pipeline
    return make(FunctionTransformer(_numbers), PolynomialFeatures(2, interaction_only=True, include_bias=False),
                _from("imblearn.over_sampling", "SMOTE", random_state=0), forest())  # fmt: skip


# Name: the pattern, what it needs beyond scikit-learn, and whether the table has holes
PIPELINES: dict[str, tuple[Maker, str, bool]] = {
    "sklearn: mixed types": (
        lambda: make_pipeline(encoded(make_pipeline(SimpleImputer(strategy="median"), StandardScaler())), logistic()),
        "", True,
    ),
    "sklearn: PCA and logistic regression": (
        lambda: make_pipeline(encoded(StandardScaler()), PCA(5), logistic()), "", False,
    ),
    "sklearn: PCA and a forest": (lambda: numbers_only(StandardScaler(), PCA(3), forest()), "", False),
    "sklearn: products": (
        lambda: numbers_only(StandardScaler(), PolynomialFeatures(2), logistic()), "", False,
    ),
    "sklearn: union of PCA and the best": (
        lambda: numbers_only(
            StandardScaler(), FeatureUnion([("pca", PCA(2)), ("best", SelectKBest(k=1))]), RidgeClassifier()
        ), "", False,
    ),
    "sklearn: splines and their products": (
        lambda: numbers_only(SplineTransformer(4, degree=2), PolynomialFeatures(2, interaction_only=True), logistic()),
        "", False,
    ),
    "sklearn: nearest neighbours fill": (
        lambda: make_pipeline(make_column_transformer((KNNImputer(n_neighbors=4), NUMBERS)), forest()), "", True,
    ),
    "sklearn: distances to clusters": (
        lambda: numbers_only(StandardScaler(), KMeans(5, random_state=0, n_init=2), logistic()), "", False,
    ),
    "sklearn: rows of length one": (
        lambda: numbers_only(Normalizer(), ExtraTreesClassifier(10, max_depth=5, random_state=0)), "", False,
    ),
    "sklearn: target means and a net": (
        lambda: make_pipeline(
            make_column_transformer((own.RowStatistics(), NUMBERS), (TargetEncoder(random_state=0), TEXT)),
            MLPClassifier((6,), solver="lbfgs", max_iter=300, random_state=0),
        ), "", False,
    ),
    "sklearn: discriminants": (
        lambda: make_pipeline(encoded(StandardScaler()), LinearDiscriminantAnalysis(), logistic()), "", False,
    ),
    "sklearn: kernel map": (
        lambda: make_pipeline(encoded(StandardScaler()), Nystroem(n_components=8, random_state=0), logistic()),
        "", False,
    ),
    "a function of two columns": (
        lambda: make_pipeline(FunctionTransformer(debt_share), HistGradientBoostingClassifier(max_iter=15)), "", True,
    ),
    "category_encoders: target means": (_category_encoders, "category_encoders", False),
    "category_encoders: binary digits": (_binary_encoders, "category_encoders", False),
    "feature_engine: sums and ratios": (_feature_engine, "feature_engine", False),
    "imblearn: products, drawn rows, a forest": (_imblearn, "imblearn", False),
    "optbinning: weight of evidence": (lambda: make_pipeline(own.WeightOfEvidence(), logistic()), "", False),
    "competitions: ratios": (lambda: make_pipeline(own.CreditRatios(), boosted()), "", False),
    "competitions: crossed levels": (lambda: make_pipeline(own.CrossedLevels(), boosted()), "", False),
    "competitions: beyond the group": (
        lambda: make_pipeline(own.GroupDifferences(), HistGradientBoostingClassifier(max_iter=15)), "", False,
    ),
    "competitions: household sizes": (lambda: make_pipeline(own.FamilySizes(), forest()), "", False),
    "competitions: hashed levels": (lambda: make_pipeline(own.HashedLevels(), logistic()), "", False),
}  # fmt: skip


def fitted(name: str, n: int, seed: int = 0) -> tuple[Any, pd.DataFrame, np.ndarray]:
    """A pipeline on its table."""
    make, _, holes = PIPELINES[name]
    X, y = table(n, seed, holes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nets that stop early, libraries on their way out
        return make().fit(X, y), X, y
