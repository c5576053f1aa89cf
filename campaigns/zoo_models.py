"""The zoo's models: name -> a function that fits one on raw rows and labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

Fit = Callable[[pd.DataFrame, Any], Any]
DAY = 8.64e13  # nanoseconds
SEED = {"random_state": 0}


def is_number(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)


def is_date(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_datetime64_any_dtype(column.dtype)


def as_float(frame: Any) -> Any:
    """Numbers, nullable or not, and dates as days."""
    out = pd.DataFrame(frame)
    return np.column_stack(
        [
            out[name].to_numpy("datetime64[ns]").astype("int64") / DAY if is_date(out[name])
            else out[name].to_numpy(dtype=float, na_value=np.nan)
            for name in out
        ]
    )  # fmt: skip


def as_text(frame: Any) -> Any:
    """Levels of any type as text; what is missing is a level."""
    return pd.DataFrame(frame).astype(object).map(lambda value: "missing" if pd.isna(value) else str(value))


def bins(n: int, encode: str) -> KBinsDiscretizer:
    return KBinsDiscretizer(n, encode=encode, quantile_method="averaged_inverted_cdf")


NUMBER: dict[str, Callable[[], list[Any]]] = {
    "standard": lambda: [SimpleImputer(), StandardScaler()],
    "indicator": lambda: [SimpleImputer(strategy="median", add_indicator=True), RobustScaler()],
    "quantile": lambda: [SimpleImputer(), QuantileTransformer(n_quantiles=50)],
    "bins": lambda: [SimpleImputer(), bins(4, "onehot-dense")],
    "bin numbers": lambda: [SimpleImputer(), bins(5, "ordinal")],
    "spline": lambda: [SimpleImputer(), SplineTransformer(n_knots=4)],
    "power": lambda: [SimpleImputer(), PowerTransformer()],
    "union": lambda: [SimpleImputer(), make_union(StandardScaler(), bins(3, "onehot-dense"))],
    "arctan": lambda: [SimpleImputer(), FunctionTransformer(np.arctan)],
    "clipped": lambda: [SimpleImputer(), MinMaxScaler(clip=True)],
    "products": lambda: [SimpleImputer(), StandardScaler(), PolynomialFeatures(2, include_bias=False)],
    "pca": lambda: [SimpleImputer(), StandardScaler(), PCA(2)],
    "neighbours": lambda: [KNNImputer(), StandardScaler()],
    "as it is": list,
}
TEXT: dict[str, Callable[[], Any]] = {
    "one-hot": lambda: OneHotEncoder(handle_unknown="ignore"),
    "first dropped": lambda: OneHotEncoder(drop="first", handle_unknown="ignore", sparse_output=False),
    "infrequent": lambda: OneHotEncoder(min_frequency=0.1, handle_unknown="infrequent_if_exist"),
    "three": lambda: OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist", drop="if_binary"),
    "ordinal": lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
    "target": lambda: TargetEncoder(random_state=0),
}


def encoder(X: pd.DataFrame, number: str = "standard", text: str = "one-hot") -> ColumnTransformer:
    """Raw rows in, numbers out. Where a step mixes columns, so does the model."""
    numbers = [name for name in X if is_number(X[name]) or is_date(X[name])]
    others = [name for name in X if name not in numbers]
    parts: list[tuple[str, Any, Any]] = []
    mixes = number in ("products", "pca", "neighbours") and len(numbers) > 1
    plain = all(str(X[name].dtype) in ("int64", "float64") for name in numbers)
    together = [numbers] if mixes or plain else [[name] for name in numbers]
    for names in together if numbers else []:
        first = [] if plain else [FunctionTransformer(as_float)]
        steps = [*first, *NUMBER[number]()] or ["passthrough"]
        parts.append((f"numbers {names[0]}", make_pipeline(*steps) if len(steps) > 1 else steps[0], names))
    strings = [name for name in others if X[name].dtype == object]
    if strings:
        parts.append(("text", TEXT[text](), strings))
    parts += [
        (f"levels {name}", make_pipeline(FunctionTransformer(as_text), TEXT[text]()), [name])
        for name in others
        if name not in strings
    ]
    return ColumnTransformer(parts)


def piped(model: Callable[[], BaseEstimator], number: str = "standard", text: str = "one-hot") -> Fit:
    """A pipeline of an encoder and a model."""
    return lambda X, y: make_pipeline(encoder(X, number, text), model()).fit(X, y)


def logistic(**settings: Any) -> LogisticRegression:
    return LogisticRegression(**{"max_iter": 1000, **settings})


def forest(n: int = 12, **settings: Any) -> RandomForestClassifier:
    return RandomForestClassifier(n, **{"max_depth": 6, **SEED, **settings})


def net(*hidden: int, **settings: Any) -> MLPClassifier:
    return MLPClassifier(hidden, **{"max_iter": 60, **SEED, **settings})


def native(fit: Fit) -> Fit:
    """For models that take categories themselves: they get a table from `natively`."""
    fit.natively = True  # type: ignore[attr-defined]
    return fit


def natively(X: pd.DataFrame) -> pd.DataFrame:
    """Text as categories, everything else as numbers."""
    measured = {name: pd.api.types.is_numeric_dtype(X[name].dtype) or is_date(X[name]) for name in X}  # or boolean
    return pd.DataFrame(
        {name: as_float(X[[name]])[:, 0] if measured[name] else X[name].astype("category") for name in X}
    )


def coded(fit: Fit) -> Fit:
    """For models whose labels must be 0, 1, ..."""
    fit.coded = True  # type: ignore[attr-defined]
    return fit


def xgb(kind: str = "XGBClassifier", **settings: Any) -> Any:
    import xgboost

    base = {"n_estimators": 25, "max_depth": 4, "n_jobs": 1, "random_state": 0}
    return getattr(xgboost, kind)(**{**base, **settings})


def lgb(**settings: Any) -> Any:
    import lightgbm

    base = {"n_estimators": 25, "num_leaves": 12, "n_jobs": 1, "verbose": -1, "random_state": 0}
    return lightgbm.LGBMClassifier(**{**base, **settings})


def cat(**settings: Any) -> Any:
    import catboost

    base = {"iterations": 25, "depth": 4, "verbose": 0, "thread_count": 1, "random_seed": 0}
    base["allow_writing_files"] = False
    return catboost.CatBoostClassifier(**{**base, **settings})


def ebm(**settings: Any) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(**{"max_rounds": 60, "outer_bags": 1, "n_jobs": 1, **SEED, **settings})


def cart() -> Any:
    from fewest.models.trees import CARTClassifier

    return CARTClassifier(max_depth=5)


def pair() -> list[tuple[str, Any]]:
    return [("line", logistic()), ("forest", forest())]


def two_pipes(X: pd.DataFrame) -> list[tuple[str, Any]]:
    return [
        ("line", make_pipeline(encoder(X), logistic())),
        ("forest", make_pipeline(encoder(X, "as it is", "ordinal"), forest())),
    ]


def hist(**settings: Any) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(**{"max_iter": 30, **SEED, **settings})


def rising(X: pd.DataFrame) -> dict[str, int]:
    numbers = [name for name in X if is_number(X[name])]
    return {numbers[0]: 1, numbers[1]: -1}


MODELS: dict[str, Fit] = {
    **{
        f"line, {number}, {text}": piped(logistic, number, text)
        for number, text in (
            ("standard", "one-hot"), ("indicator", "first dropped"), ("quantile", "infrequent"), ("bins", "three"),
            ("bin numbers", "ordinal"), ("spline", "target"), ("power", "one-hot"), ("union", "one-hot"),
            ("arctan", "target"), ("clipped", "first dropped"), ("products", "one-hot"), ("pca", "one-hot"),
            ("neighbours", "one-hot"),
        )
    },
    "line, strong penalty, balanced": piped(lambda: logistic(C=0.01, class_weight="balanced")),
    "line, pandas inside": lambda X, y: make_pipeline(
        encoder(X, text="first dropped").set_output(transform="pandas"), logistic()
    ).fit(X, y),
    "SGD, log": piped(lambda: SGDClassifier(loss="log_loss", **SEED)),
    "SGD, Huber": piped(lambda: SGDClassifier(loss="modified_huber", **SEED)),
    "LDA": piped(LinearDiscriminantAnalysis, text="first dropped"),
    "QDA": piped(lambda: QuadraticDiscriminantAnalysis(reg_param=0.1), text="ordinal"),
    "linear SVC": piped(LinearSVC),
    "ridge": piped(RidgeClassifier),
    "perceptron": piped(lambda: Perceptron(**SEED)),
    "SVC": piped(SVC),
    "7 neighbours": piped(lambda: KNeighborsClassifier(7)),
    "4 neighbours by distance": piped(lambda: KNeighborsClassifier(4, weights="distance")),
    "Gaussian NB": piped(GaussianNB, text="ordinal"),
    "Bernoulli NB": piped(BernoulliNB, "bins"),
    "net, ReLU": piped(lambda: net(12, 6)),
    "net, tanh": piped(lambda: net(10, activation="tanh"), "quantile", "first dropped"),
    "net, logistic, 3 layers": piped(lambda: net(8, 8, 5, activation="logistic", learning_rate_init=0.01)),
    "net, identity": piped(lambda: net(6, activation="identity")),
    "tree, deep": piped(lambda: DecisionTreeClassifier(max_depth=20, **SEED), "as it is", "ordinal"),
    "tree, pruned": piped(lambda: DecisionTreeClassifier(ccp_alpha=0.002, min_samples_leaf=5, **SEED), "as it is"),
    "extra tree": piped(lambda: ExtraTreeClassifier(max_depth=8, **SEED), text="ordinal"),
    "CART": lambda X, y: cart().fit(X, y),
    "forest": piped(lambda: forest(20, max_depth=None), "as it is", "ordinal"),
    "forest, balanced": piped(lambda: forest(20, class_weight="balanced_subsample", max_features=0.5)),
    "extra trees": piped(lambda: ExtraTreesClassifier(20, max_depth=8, **SEED), "as it is", "first dropped"),
    "boosting": piped(lambda: GradientBoostingClassifier(n_estimators=30, subsample=0.7, **SEED)),
    "boosting from a line": piped(lambda: GradientBoostingClassifier(n_estimators=15, init=logistic(), **SEED)),
    "boosting from zero": piped(lambda: GradientBoostingClassifier(n_estimators=15, init="zero", **SEED)),
    "AdaBoost": piped(lambda: AdaBoostClassifier(n_estimators=20, **SEED)),
    "bagged trees": piped(
        lambda: BaggingClassifier(DecisionTreeClassifier(max_depth=6), 12, max_features=0.6, **SEED),
        "as it is", "ordinal",
    ),
    "bagged lines": piped(lambda: BaggingClassifier(logistic(), 4, **SEED)),
    "hist boosting, encoded": piped(hist, "as it is", "ordinal"),
    "hist boosting, categories": native(lambda X, y: hist(categorical_features="from_dtype").fit(X, y)),
    "hist boosting, monotone": native(
        lambda X, y: hist(categorical_features="from_dtype", monotonic_cst=rising(X)).fit(X, y)
    ),
    "calibrated pipelines": lambda X, y: CalibratedClassifierCV(
        make_pipeline(encoder(X), logistic()), method="isotonic", cv=3
    ).fit(X, y),
    "calibrated forest": piped(lambda: CalibratedClassifierCV(forest(8), cv=3), text="ordinal"),
    "calibrated once": piped(
        lambda: CalibratedClassifierCV(hist(), method="isotonic", cv=3, ensemble=False), "as it is", "ordinal"
    ),
    "vote of pipelines": lambda X, y: VotingClassifier(two_pipes(X), voting="soft").fit(X, y),
    "vote of trees": piped(
        lambda: VotingClassifier(
            [("a", ExtraTreesClassifier(8, max_depth=6, **SEED)), ("b", forest(8))], voting="soft", weights=[1, 2]
        ),
        text="ordinal",
    ),
    "vote of line and forest": piped(lambda: VotingClassifier(pair(), voting="soft")),
    "hard vote": piped(lambda: VotingClassifier([*pair(), ("tree", DecisionTreeClassifier(max_depth=4, **SEED))])),
    "stacking": piped(lambda: StackingClassifier(pair(), logistic(), cv=3)),
    "grid search": lambda X, y: GridSearchCV(
        make_pipeline(encoder(X), logistic()), {"logisticregression__C": [0.1, 1]}, cv=3
    ).fit(X, y),
    "fixed threshold": piped(lambda: FixedThresholdClassifier(logistic(), threshold=0.4)),
    "one against the rest": piped(lambda: OneVsRestClassifier(logistic())),
    "XGBoost, categories": native(coded(lambda X, y: xgb(enable_categorical=True).fit(X, y))),
    "XGBoost, dart": native(
        coded(lambda X, y: xgb(enable_categorical=True, booster="dart", rate_drop=0.2, base_score=0.3).fit(X, y))
    ),
    "XGBoost, one-hot splits": native(
        coded(lambda X, y: xgb(enable_categorical=True, max_cat_to_onehot=64, grow_policy="lossguide").fit(X, y))
    ),
    "XGBoost, forest": native(coded(lambda X, y: xgb("XGBRFClassifier", enable_categorical=True).fit(X, y))),
    "XGBoost, zero is missing": coded(piped(lambda: xgb(missing=0.0), text="ordinal")),
    "XGBoost, linear": coded(piped(lambda: xgb(booster="gblinear", max_depth=None), text="first dropped")),
    "LightGBM, categories": native(lambda X, y: lgb().fit(X, y)),
    "LightGBM, forest": native(
        lambda X, y: lgb(boosting_type="rf", bagging_freq=1, bagging_fraction=0.7, feature_fraction=0.7).fit(X, y)
    ),
    "LightGBM, dart": native(lambda X, y: lgb(boosting_type="dart").fit(X, y)),
    "LightGBM, linear trees": native(lambda X, y: lgb(linear_tree=True, n_estimators=8).fit(X, y)),
    "LightGBM, zero is missing": native(lambda X, y: lgb(zero_as_missing=True).fit(X, y)),
    "LightGBM, small groups": native(lambda X, y: lgb(cat_smooth=1, min_data_per_group=5).fit(X, y)),
    "CatBoost": piped(cat, "as it is", "ordinal"),
    "CatBoost, by loss": piped(lambda: cat(grow_policy="Lossguide", max_leaves=10), "as it is", "ordinal"),
    "EBM": native(lambda X, y: ebm(interactions=0).fit(X, y)),
    "EBM, interactions": native(lambda X, y: ebm(interactions=3).fit(X, y)),
}  # fmt: skip
ONE_TREE = ("tree, deep", "tree, pruned", "CART")
