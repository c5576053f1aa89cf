"""From a fitted model to its structure: the reader is picked by the class, no library is imported for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fewest.engine.structure.additive import LINEAR, LINEAR_REGRESSORS, read_ebm, read_linear
from fewest.engine.structure.base import Opaque, Structure
from fewest.engine.structure.boosted_catboost import read_catboost
from fewest.engine.structure.boosted_lightgbm import read_lightgbm
from fewest.engine.structure.boosted_xgboost import read_xgboost
from fewest.engine.structure.combinations import read_calibrated, read_pipeline, read_stacking, read_voting
from fewest.engine.structure.hist_gradient import read_hist_gradient
from fewest.engine.structure.kernel_sums import (
    SUPPORT_VECTORS,
    read_kernel_ridge,
    read_process_classifier,
    read_process_regressor,
    read_support_vectors,
)
from fewest.engine.structure.neighbours import NEIGHBOURS, read_neighbours
from fewest.engine.structure.networks import read_mlp, read_skorch, read_torch
from fewest.engine.structure.onnx_graph import read_onnx
from fewest.engine.structure.own_trees import NEUTRAL, read_leaf_sum, read_neutral
from fewest.engine.structure.question import FoundQuestion, Question
from fewest.engine.structure.rivals import read_one_vs_rest, read_rivals
from fewest.engine.structure.sklearn_trees import (
    FORESTS,
    TREES,
    read_adaboost,
    read_bagging,
    read_forest,
    read_gradient_boosting,
    read_isolation_forest,
    read_tree,
)
from fewest.engine.structure.spark_pipelines import read_spark
from fewest.errors import UsageError
from fewest.tables.model_kinds import NUMBERS, own_threshold

Reader = Callable[[Any, Question], FoundQuestion | Opaque]
METHODS = {
    "proba": "predict_proba", "decision": "decision_function", "label": "predict", "value": "predict",
    "outlier": "decision_function",
}  # fmt: skip
KINDS = ("Classifier", "Regressor")
XGBOOST = ("XGBClassifier", "XGBRFClassifier", "XGBRegressor", "XGBRFRegressor")

_READERS: dict[tuple[str, str], Reader] = {
    **{("sklearn", name): read_linear for name in LINEAR},
    **{("sklearn", name): read_linear for name in LINEAR_REGRESSORS},
    **{("sklearn", name): read_tree for name in TREES},
    **{("sklearn", name): read_forest for name in FORESTS},
    ("sklearn", "BaggingClassifier"): read_bagging,
    ("sklearn", "BaggingRegressor"): read_bagging,
    ("sklearn", "IsolationForest"): read_isolation_forest,
    ("sklearn", "GradientBoostingClassifier"): read_gradient_boosting,
    ("sklearn", "GradientBoostingRegressor"): read_gradient_boosting,
    ("sklearn", "AdaBoostClassifier"): read_adaboost,
    ("sklearn", "HistGradientBoostingClassifier"): read_hist_gradient,
    ("sklearn", "HistGradientBoostingRegressor"): read_hist_gradient,
    ("sklearn", "MLPClassifier"): read_mlp,
    ("sklearn", "MLPRegressor"): read_mlp,
    **{("sklearn", name): read_support_vectors for name in SUPPORT_VECTORS},
    **{("sklearn", name): read_neighbours for name in NEIGHBOURS},
    ("sklearn", "KernelRidge"): read_kernel_ridge,
    ("sklearn", "GaussianProcessClassifier"): read_process_classifier,
    ("sklearn", "GaussianProcessRegressor"): read_process_regressor,
    ("sklearn", "CalibratedClassifierCV"): lambda model, question: read_calibrated(model, question, find),
    **{("sklearn", f"Voting{kind}"): lambda model, question: read_voting(model, question, find) for kind in KINDS},
    **{("sklearn", f"Stacking{kind}"): lambda model, question: read_stacking(model, question, find) for kind in KINDS},
    ("sklearn", "OneVsRestClassifier"): lambda model, question: read_one_vs_rest(model, question, find),
    **{("xgboost", name): read_xgboost for name in (*XGBOOST, "Booster")},
    **{("lightgbm", name): read_lightgbm for name in ("LGBMClassifier", "LGBMRegressor", "Booster")},
    **{("catboost", name): read_catboost for name in ("CatBoostClassifier", "CatBoostRegressor")},
    **{("interpret", f"ExplainableBoosting{kind}"): read_ebm for kind in ("Classifier", "Regressor")},
    **{("skorch", f"NeuralNet{kind}Classifier"): read_skorch for kind in ("", "Binary")},
    **{("fewest", name): read_neutral for name in NEUTRAL},
    ("fewest", "LeafSumClassifier"): read_leaf_sum,
    ("fewest", "LightGBMModel"): read_lightgbm,
    ("fewest", "OnnxClassifier"): read_onnx,
    ("fewest", "SparkClassifier"): read_spark,
}
_WRAPPERS = {
    "FrozenEstimator": "estimator",
    "GridSearchCV": "best_estimator_",
    "RandomizedSearchCV": "best_estimator_",
    "HalvingGridSearchCV": "best_estimator_",
    "HalvingRandomSearchCV": "best_estimator_",
    "FixedThresholdClassifier": "estimator_",
    "TunedThresholdClassifierCV": "estimator_",
}


def read(
    model: Any, *, positive: int = 1, against: int | None = None, kind: str = "proba", threshold: float | None = None,
    width: int | None = None,
) -> Structure | Opaque:  # fmt: skip
    """Read what is inside a fitted classifier: a final estimator, not a Pipeline; `Opaque` says why it cannot be.

    ``positive`` and ``against`` are positions in ``classes_``, the latter for three or more classes: the score is then
    the difference of the two, or without it the least of the differences to all others; one of probabilities that come
    from raw scores of all classes is read for a threshold of 0 alone. ``kind`` is the score that a decision compares
    with its threshold: the probability of the class, the decision function (turned round for ``positive=0``), or
    whether the predicted label is that class. ``width``: the columns it is fed, which torch modules do not tell.
    """
    if kind not in METHODS:
        raise UsageError(f"kind {kind!r} is not known", do=f"use one of {', '.join(METHODS)}")
    labels = getattr(model, "classes_", None)
    count = 2 if labels is None or isinstance(labels, list) else len(labels)
    cut = threshold if threshold is not None else 0.5 if against is None and count < 3 else 0.0
    question = Question(int(positive), against, kind, float(cut), width=width)
    if count > 2 and against is None and kind in ("proba", "decision"):
        return read_rivals(model, question, count, find)
    found = find(model, question)
    return found if isinstance(found, Opaque) else found.structure


def find(model: Any, question: Question) -> FoundQuestion | Opaque:
    """Read a model, or a member of one, and keep the link from its raw score to the score asked about."""
    while _origin(model) == "sklearn" and type(model).__name__ in _WRAPPERS:
        name = type(model).__name__
        if "Threshold" in name and question.kind == "label":
            own = own_threshold(model)
            if own is None or question.against is not None or not 0 < question.threshold <= 1:
                return Opaque(f"{name} moves the label's threshold; ask for kind='proba' with that threshold")
            cut = own[0] if question.positive == own[1] else -own[0] if own[2] == "decision" else 1.0 - own[0]
            question = replace(question, kind=own[2], threshold=cut)
        model = getattr(model, _WRAPPERS[name])
    name = type(model).__name__
    if name == "Pipeline" and _origin(model) == "sklearn":
        return read_pipeline(model, question, find)
    reader = _READERS.get((_origin(model), name))
    if reader is None and hasattr(model, "named_modules") and hasattr(model, "state_dict"):
        reader = read_torch
    if reader is None:
        return Opaque(f"{name} is not a model whose inside can be read")
    settled = _settled(model, question)
    if isinstance(settled, Opaque):
        return settled
    there = [kind for kind, method in METHODS.items() if hasattr(model, method)]
    if reader is read_torch and there:
        return Opaque(f"{name} has a {METHODS[there[0]]} of its own")
    if there and question.kind not in there:  # a torch module has none of them
        return Opaque(f"{name} has no {METHODS[question.kind]}; ask for kind={there[0]!r}")
    try:
        found = reader(model, settled)
    except (AttributeError, KeyError) as error:
        return Opaque(f"{name} of this version is laid out differently: {error!r}")
    if (
        settled.against is not None
        and settled.threshold != 0
        and isinstance(found, FoundQuestion)
        and not found.link.plain
    ):
        return Opaque(f"{name}: whether two probabilities differ by {settled.threshold:g} depends on other classes")
    return found


def _origin(model: Any) -> str:
    return type(model).__module__.partition(".")[0]


def _settled(model: Any, question: Question) -> Question | Opaque:
    """Check the classes asked about; keep `against` only where there are three or more."""
    name, classes = type(model).__name__, getattr(model, "classes_", None)
    if question.kind in NUMBERS:
        return Opaque(f"{name} decides between classes") if classes is not None and len(classes) else question
    if isinstance(classes, list):
        return Opaque(f"{name} has several outputs")
    count = 2 if question.against is None else 1 + max(2, question.positive, question.against)
    if classes is not None:  # a torch module does not name its classes: the reader counts its outputs
        count = len(classes)
    for place in (question.positive, question.against):
        if place is not None and not 0 <= place < count:
            raise UsageError(f"class number {place} is not among the {count} classes of {name}")
    if count < 2:
        return Opaque(f"{name} has seen one class only")
    if question.against == question.positive:
        raise UsageError("a class cannot be compared with itself", do="give 'against' another class")
    if count == 2 and question.against is not None:
        # Comparing two classes is asking for the more likely one.
        return replace(question, against=None, threshold=0.0 if question.kind == "decision" else 0.5)
    if count > 2 and question.against is None:
        return Opaque(f"{name} has {count} classes, which are read for probabilities and decision functions")
    if count > 2 and question.kind == "label":
        return Opaque(f"{name}: labels of {count} classes are not one cut; ask for kind='proba'")
    if np.isnan(question.threshold):
        raise UsageError("the threshold is not a number")
    return question
