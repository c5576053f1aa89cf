"""Which score a model gives: of a class, a predicted number, or how unusual a row is; nothing is imported for it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fewest.errors import ModelError, UsageError, check_word

ScoreKind = Literal["proba", "decision", "label", "value", "outlier", "function", "torch"]
METHODS = {"proba": "predict_proba", "decision": "decision_function", "label": "predict"}
WITHOUT_CLASSES = ("value", "outlier", "function", "torch")
NUMBERS = ("value", "outlier")  # what regressors, boosters as they come and detectors of outliers give
LOGISTIC = ("binary:logistic", "reg:logistic", "binary", "cross_entropy")  # objectives of boosters that give chances


def score_kind(model: Any, wish: str | None, threshold: float | None) -> ScoreKind:
    """The kind of score a model is cut by: ``wish``, if it has that, else the first that it has."""
    if isinstance(model, type):
        raise UsageError(f"{model.__name__} is a class, not a fitted model", do="fit an instance and pass that")
    natural = _of_numbers(model, threshold)
    if wish is not None and wish != natural:
        check_word("kind", wish, METHODS)
        if not hasattr(model, METHODS[wish]):
            raise ModelError(f"{type(model).__name__} has no {METHODS[wish]}", do="choose another kind")
        return wish  # type: ignore[return-value]
    if natural is not None:
        return natural
    for kind, method in METHODS.items():
        if hasattr(model, method):
            return kind  # type: ignore[return-value]
    if type(model).__module__.startswith("torch") or hasattr(model, "state_dict"):
        return "torch"
    if callable(model):
        return "function"
    raise ModelError(
        f"{type(model).__name__} has none of predict_proba, decision_function, predict, and cannot be called",
        do="pass a fitted classifier or a function from a table to scores",
    )


def _of_numbers(model: Any, threshold: float | None) -> ScoreKind | None:
    """The kind of a model that does not decide between classes; None for classifiers, functions and modules."""
    kind = estimator_type(model)
    if kind == "outlier_detector":
        if not hasattr(model, "decision_function"):
            raise ModelError(
                f"{type(model).__name__} has no decision_function: it gives no scores of new rows",
                do="LocalOutlierFactor gives them when it is fitted with novelty=True",
            )
        return "outlier"
    if kind == "regressor" or booster_library(model):
        return "value"
    # Survival models and others that scikit-learn has no word for: `predict` with a cut says what is meant.
    silent = kind is None and getattr(model, "classes_", None) is None and hasattr(model, "predict")
    return "value" if silent and threshold is not None and not hasattr(model, "predict_proba") else None


def estimator_type(model: Any) -> str | None:
    """What scikit-learn calls an estimator of this kind, such as "regressor"."""
    tags = getattr(model, "__sklearn_tags__", None)
    try:
        kind = getattr(model, "_estimator_type", None) if tags is None else tags().estimator_type
    except (AttributeError, TypeError):  # tags of another version
        kind = getattr(model, "_estimator_type", None)
    return None if kind is None else str(kind)


def booster_library(model: Any) -> str | None:
    """The library of a booster as its own ``train`` gives it."""
    library = type(model).__module__.partition(".")[0]
    return library if type(model).__name__ == "Booster" and library in ("xgboost", "lightgbm") else None


def booster_objective(model: Any) -> str:
    """What a bare booster was trained for."""
    if booster_library(model) == "xgboost":
        import json

        return str(json.loads(model.save_config())["learner"]["objective"]["name"])
    lines = model.model_to_string(num_iteration=1).split("\nTree=")[0].splitlines()
    return next((line.partition("=")[2].split()[0] for line in lines if line.startswith("objective=")), "custom")


def predicted_numbers(model: Any, kind: str, X: Any) -> npt.NDArray[Any]:
    """What a model without classes says of rows: its prediction, or how far a row is from ordinary (0: flagged)."""
    if kind == "outlier":
        return -np.asarray(model.decision_function(X))
    if booster_library(model) == "xgboost":
        from xgboost import DMatrix

        return np.asarray(model.predict(DMatrix(X, enable_categorical=True)))
    values = np.asarray(model.predict(X))
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def usual_cut(model: Any, kind: str, n_classes: int, positive: int) -> float | None:
    """Where a model's own ``predict`` draws the line for a class; None where it draws none."""
    if kind == "value":
        chances = booster_library(model) is not None and booster_objective(model) in LOGISTIC
        return 0.5 if chances else None
    usual = 0.0 if kind in ("decision", "outlier") or n_classes > 2 else 0.5
    own = own_threshold(model)
    if own is None or n_classes != 2 or own[2] != kind:
        return usual
    threshold, of_class, _ = own
    if positive == of_class:
        return threshold
    return -threshold if kind == "decision" else 1.0 - threshold


def own_threshold(model: Any) -> tuple[float, int, str] | None:
    """The threshold of a Fixed- or TunedThresholdClassifier, the position of its class, and the score it is of."""
    if type(model).__name__ == "Pipeline":
        model = model.steps[-1][1]
    name = type(model).__name__
    if name not in ("FixedThresholdClassifier", "TunedThresholdClassifierCV"):
        return None
    inner = getattr(model, "estimator_", model.estimator)
    kind = {"predict_proba": "proba", "decision_function": "decision"}.get(model.response_method)
    if kind is None:
        kind = "proba" if hasattr(inner, "predict_proba") else "decision"
    if name.startswith("Fixed"):
        label, threshold = model.pos_label, model.threshold
        if threshold == "auto":
            threshold = 0.5 if kind == "proba" else 0.0
    else:
        label, threshold = model._curve_scorer._get_pos_label(), model.best_threshold_
    classes = np.asarray(model.classes_).tolist()
    return float(threshold), 1 if label is None else classes.index(label), kind


def no_threshold(model: Any) -> UsageError:
    """A model that predicts numbers draws no line by itself."""
    return UsageError(
        f"{type(model).__name__} predicts numbers: from which one on is a row explained?",
        do="pass threshold=NUMBER, and above=False if small numbers are to be explained",
    )


def no_classes(model: Any) -> ModelError:
    """What a model without classes is, and how it can be explained all the same."""
    if estimator_type(model) == "clusterer":
        score = "model.transform(table)[:, 0]"
        return ModelError(
            f"{type(model).__name__} finds clusters, and only decisions are explained",
            do="pass a function of a table and the score from which a row is positive, e.g. "
            f'Decision(lambda table: {score}, positive="refused", threshold=0.5)',
        )
    return ModelError(f"{type(model).__name__} is not fitted (it has no classes_)", do="call fit first")


def is_scorecard(model: Any) -> bool:
    """Whether a model is a fitted scorecard of optbinning, which keeps classes and columns in its parts."""
    named = type(model).__name__ == "Scorecard" and type(model).__module__.startswith("optbinning.")
    return named and getattr(model, "estimator_", None) is not None


def class_labels(model: Any) -> Any:
    """The classes a model decides between; None where it has none."""
    return getattr(model.estimator_ if is_scorecard(model) else model, "classes_", None)


def check_is_fitted(model: Any) -> None:
    """Refuse an estimator that says itself that it was not fitted."""
    if type(model).__module__.startswith("sklearn"):
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted as check

        try:
            check(model)
        except NotFittedError:
            raise ModelError(f"{type(model).__name__} is not fitted", do="call fit first") from None


def column_names(model: Any) -> tuple[str, ...] | None:
    """Columns a model was fitted on, where it remembers them."""
    names = getattr(model, "feature_names_in_", None)
    library = booster_library(model)
    if names is None and library is not None:
        names = model.feature_names if library == "xgboost" else model.feature_name()
        if names is not None and list(names) == [f"Column_{k}" for k in range(len(names))]:
            names = None  # LightGBM's names for columns that had none
    if is_scorecard(model):
        names = model.binning_process_.variable_names
    if names is None and type(model).__module__.startswith("catboost"):
        names = getattr(model, "feature_names_", None)
    return None if names is None else tuple(str(name) for name in names)
