"""How each kind of model goes into a file: as skops, as the plain parts of an estimator of ours, or as it came."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from fewest.persistence._array_parts import tree_from_members, tree_members
from fewest.persistence._readers import needs_a_yes, refused, unpack
from fewest.persistence._settings import labels_from_json, labels_to_json, same_schema
from fewest.persistence._skops import ON_THE_LIST, audited, dump_skops, load_skops
from fewest.persistence._sound import parts_of
from fewest.tables.saved_schema import schema_from_json

SKOPS, ONNX, TEXT = "model.skops", "model.onnx", "model.txt"
PREFIX = "model"
# Estimators of ours hold a schema and tables, which skops cannot write: their parts are written instead.
TRAINED = {"AllOptClassifier": "fewest.models.training", "ExpOClassifier": "fewest.models.training"}
TREES = dict.fromkeys(
    ("C45Classifier", "CARTClassifier", "GOSDTClassifier", "LoadedTreeClassifier"), "fewest.models.trees"
) | {
    "TOptClassifier": "fewest.models.rashomon",
}
# What parameters of trees were called, known by one that has gone since.
RENAMED = {
    "depth_budget": {"depth_budget": "max_depth", "max_depth": "guess_depth", "n_estimators": "guess_estimators"},
    "depth": {"depth": "max_depth", "n_estimators": "guess_estimators"},
}
# Attributes under which models keep rows they were trained on, or a number for each of them; some only in one class.
ROWS = frozenset({
    "_fit_X", "X_fit_", "X_train_", "_X", "support_vectors_", "oob_decision_function_", "oob_prediction_",
    "K_fit_rows_", "outliers_", "inlier_mask_",
})  # fmt: skip
ROWS_OF = {
    "Nystroem": "components_", "QuantileTransformer": "quantiles_", "RidgeCV": "cv_results_",
    "RidgeClassifierCV": "cv_results_",
}  # fmt: skip


def model_members(model: Any, training_rows: bool = False) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Plain values and files of a model."""
    kind = type(model).__name__
    if type(model).__module__.startswith("fewest."):
        if kind == "AllOptSearchCV":
            return model_members(model.best_estimator_, training_rows)
        if kind == "OnnxClassifier":
            return {"kind": "onnx", "classes": labels_to_json(model.classes_)}, {ONNX: model.data}
        if kind == "LightGBMModel":
            return {"kind": "lightgbm"}, {TEXT: model.text.encode("utf-8")}
        if kind in TRAINED:
            content, files = _skops(model.pipeline_, training_rows)
            return {**content, "kind": "trained", **_table(model)}, files
        if kind in TREES:
            return {"kind": "tree", **_table(model)}, tree_members(model.tree_, PREFIX)
    return _skops(model, training_rows)


def _skops(model: Any, training_rows: bool) -> tuple[dict[str, Any], dict[str, bytes]]:
    found = None if training_rows else holds_rows(model)
    if found is not None:
        what = f"{type(model).__name__} is made of rows it was trained on ({found}); they are people's data"
        raise needs_a_yes(what, "use another model")
    data = dump_skops(model)
    audited(unpack(data, SKOPS), type(model).__name__, do=ON_THE_LIST)
    return {"kind": "skops"}, {SKOPS: data}


def holds_rows(model: Any) -> str | None:
    """The attribute under which a model, or a part of it, keeps training rows; None where none does."""
    for part in parts_of(model):
        held = (ROWS | {ROWS_OF.get(type(part).__name__, "")}) & set(getattr(part, "__dict__", ()))
        if held:
            return sorted(held)[0]
    return None


def _table(model: Any) -> dict[str, Any]:
    """What an estimator of ours knows of its table, and its plain settings."""
    settings = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in model.get_params().items()
        if key.count("__") < 2 and (value is None or isinstance(value, str | bool | int | float | tuple))
    }
    names = getattr(model, "feature_names_in_", None)
    return {
        "class": type(model).__name__, "settings": settings, "schema": same_schema(model.schema_, "model"),
        "classes": labels_to_json(model.classes_), "columns": int(model.n_features_in_),
        "column_names": None if names is None else [str(name) for name in names],
        "positive": None if not hasattr(model, "positive_") else model.classes_.tolist().index(model.positive_),
    }  # fmt: skip


def model_from_members(content: Mapping[str, Any], members: Mapping[str, bytes], name: str, trust_all: bool) -> Any:
    """The model that `model_members` was given."""
    kind = content["kind"]
    if kind == "skops":
        return load_skops(members[SKOPS], name, trust_all)
    if kind == "onnx":
        from fewest.persistence._onnx_model import OnnxClassifier

        model = OnnxClassifier(members[ONNX], name)
        model.classes_ = labels_from_json(content["classes"])
        return model
    if kind == "lightgbm":
        from fewest.persistence.boosters import LightGBMModel

        return LightGBMModel(members[TEXT].decode("utf-8"), name)
    if kind == "trained":
        model = _estimator(content, TRAINED, name)
        model.pipeline_ = load_skops(members[SKOPS], name, trust_all)
        return model
    if kind == "tree":
        model = _estimator(content, TREES, name)
        model.tree_ = tree_from_members(members, PREFIX, model.schema_, name)
        return model
    raise refused(name, f"it has an unknown kind of model, {kind!r}", do="use a newer fewest")


def _estimator(content: Mapping[str, Any], known: Mapping[str, str], name: str) -> Any:
    """An estimator of ours with what it knows of its table; its history and its references are not in the file."""
    kind = content["class"]
    if kind not in known:
        raise refused(name, f"it has an unknown model {kind!r}", do="use a newer fewest")
    model = getattr(import_module(known[kind]), kind)()
    # Parameters that are in a group today stood by themselves before; the groups themselves are not in the file.
    names = {name.rpartition("__")[2]: name for name in model.get_params() if name not in getattr(model, "groups", ())}
    renamed = next((changes for old, changes in RENAMED.items() if old in content["settings"]), {})
    settings = {renamed.get(key, key).rpartition("__")[2]: value for key, value in content["settings"].items()}
    model.set_params(**{names[key]: value for key, value in settings.items() if key in names})
    model.schema_ = schema_from_json(**content["schema"])
    model.classes_ = labels_from_json(content["classes"])
    model.n_features_in_ = int(content["columns"])
    if content["column_names"] is not None:
        model.feature_names_in_ = np.array(content["column_names"], dtype=object)
    if content["positive"] is not None:
        model.positive_ = model.classes_[content["positive"]]
    return model
