"""Estimators are loaded as a fit leaves them: one attribute that is not, and the file is refused; honest ones score."""

from __future__ import annotations

from typing import Any

import hostile_models
import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewest.errors import ModelError
from fewest.persistence._fitted_state import attributes_of
from fewest.persistence._skops import load_skops

skops_io = pytest.importorskip("skops.io")
hostile_estimators = pytest.importorskip("hostile_estimators")


def scores(model: Any, X: Any) -> Any:
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)


@pytest.mark.parametrize("name", hostile_estimators.FORGED)
def test_a_forged_estimator_is_refused_and_the_honest_one_scores_the_same(name: str) -> None:
    honest, _ = hostile_estimators.FORGED[name]
    model = honest()
    again = load_skops(skops_io.dumps(model), name)
    X = hostile_estimators.rows(model)
    assert np.array_equal(scores(again, X), scores(model, X))
    with pytest.raises(ModelError, match=r"is refused: .*damaged"):
        load_skops(hostile_estimators.written(name), name)


def test_every_attribute_is_one_that_the_class_sets() -> None:
    known = attributes_of(RandomForestClassifier)
    assert {"estimators_", "n_estimators", "n_features_in_", "classes_", "oob_decision_function_"} <= known
    assert not known & {"predict_proba", "_validate_X_predict", "note"}


def test_threads_that_a_file_asks_for_are_forgotten() -> None:
    X, y = hostile_models.data()
    columns = ColumnTransformer([("a", StandardScaler(), [0]), ("b", StandardScaler(), [1, 2])])
    model = make_pipeline(columns, RandomForestClassifier(3)).fit(X, y)
    data = skops_io.dumps(model.set_params(columntransformer__n_jobs=4, randomforestclassifier__n_jobs=300))
    again = load_skops(data, "m.skops")
    assert (again[0].n_jobs, again[1].n_jobs) == (None, None)
    model.set_params(columntransformer__n_jobs=None, randomforestclassifier__n_jobs=None)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_threads_of_boosters_are_forgotten(name: str) -> None:
    library = pytest.importorskip(name)
    X, y = hostile_models.data()
    kind = library.XGBClassifier if name == "xgboost" else library.LGBMClassifier
    model = kind(n_estimators=2, n_jobs=200, **({"verbose": -1} if name == "lightgbm" else {})).fit(X, y)
    again = load_skops(skops_io.dumps(model), "m.skops")
    assert again.n_jobs is None
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("kind", ["numpy.random._generator.Generator", "numpy.random.mtrand.RandomState"])
def test_no_random_generator_of_a_file_is_built(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """skops would look for a function of the name that the file gives, and call it."""
    called = []
    monkeypatch.setattr(np.random, "test", lambda *args: called.append(args), raising=False)
    keys = hostile_models.node("ListNode", "builtins.list", content=[hostile_models.node("TypeNode", "builtins.str")])
    state = hostile_models.node(
        "DictNode", "builtins.dict", content={"bit_generator": hostile_models.value_node("test")}, key_types=keys
    )
    loader = "RandomGeneratorNode" if kind.endswith("Generator") else "RandomStateNode"
    content = {"bit_generator": state} if kind.endswith("Generator") else state
    data = hostile_models.with_attribute(hostile_models.node(loader, kind, content=content))
    assert load_skops(data, "m.skops").n_iter_ is None
    data = hostile_models.retold(data, protocol=1)
    assert load_skops(data, "m.skops").n_iter_ is None
    assert called == []


def test_a_net_that_keeps_its_generator_scores_the_same_without_it() -> None:
    X, y = hostile_models.data()
    model = MLPClassifier((3,), max_iter=2000, tol=1e-2, random_state=np.random.RandomState(0)).fit(X, y)
    again = load_skops(skops_io.dumps(model), "m.skops")
    assert again._random_state is None
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
