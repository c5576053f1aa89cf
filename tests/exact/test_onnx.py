"""ONNX files of trees, linear models and nets are read, and agree with brute force through the runtime."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from slow_cases import pairs

import fewest as fw
from fewest import checks
from fewest.engine.structure import Opaque, read
from fewest.engine.structure.base import Additive, Ensemble, Network, Rivals
from fewest.persistence import load_model

pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

RNG = np.random.default_rng(4)
X = pd.DataFrame(RNG.normal(size=(240, 5)).astype(np.float32).round(2), columns=list("abcde"))
LINE = X.a + X.b * X.c - 0.5 * X.d
TWO, THREE = (LINE > 0.2).astype(int).to_numpy(), np.digitize(LINE, [-0.6, 0.6])

MODELS = {
    "tree": (lambda: DecisionTreeClassifier(max_depth=4, random_state=0), Ensemble),
    "forest": (lambda: RandomForestClassifier(5, max_depth=4, random_state=0), Ensemble),
    "scaled extra trees": (
        lambda: make_pipeline(StandardScaler(), ExtraTreesClassifier(5, max_depth=4, random_state=0)), Ensemble,
    ),
    "boosting": (lambda: GradientBoostingClassifier(n_estimators=6, random_state=0), Ensemble),
    "linear": (lambda: make_pipeline(StandardScaler(), LogisticRegression()), Additive),
    "net": (
        lambda: make_pipeline(MinMaxScaler(), MLPClassifier((8, 6), solver="lbfgs", max_iter=150, random_state=3)),
        Network,
    ),
    "net, tanh": (lambda: MLPClassifier((5,), activation="tanh", max_iter=300, random_state=0), Network),
    "linear net": (lambda: MLPClassifier((4,), activation="identity", max_iter=300, random_state=0), Network),
}  # fmt: skip


def written(name: str, y: np.ndarray, folder: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MODELS[name][0]().fit(X.to_numpy(), y)
    path = folder / "model.onnx"
    made = skl2onnx.to_onnx(model, X.to_numpy()[:1], options={"zipmap": False})
    path.write_bytes(made.SerializeToString())
    return load_model(path)


def explained(model: Any, positive: int = 1) -> tuple[fw.Explainer, Any]:
    decision = fw.Decision(model, positive=positive)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, None, on_positive="allow"))
    return explainer, explainer.explain(X[decision.verdicts(X).positive].iloc[:12], alternatives=20)


@pytest.mark.parametrize(("name", "classes"), pairs(list(MODELS), (2, 3)))
def test_a_file_is_read_and_agrees_with_brute_force(name: str, classes: int, tmp_path: Any) -> None:
    model = written(name, TWO if classes == 2 else THREE, tmp_path)
    for positive in (0, 1):
        structure = read(model, positive=positive)
        assert not isinstance(structure, Opaque), structure.reason
        member = structure.members[0] if isinstance(structure, Rivals) else structure
        assert isinstance(member, MODELS[name][1])
        chances = model.predict_proba(X)
        others = 0.5 if classes == 2 else np.delete(chances, positive, axis=1).max(axis=1)
        raw = structure.raw(structure.reading.prepare(X)) - structure.reading.cut
        clear = np.abs(raw) > structure.reading.tolerance
        assert clear.mean() > 0.9
        assert ((raw >= 0) == (chances[:, positive] >= others))[clear].all()
        explainer, out = explained(model, positive)
        assert not out.notes
        checks.check_turns(out)
        assert checks.check_exact(explainer, out) > 0


def test_columns_of_numbers_and_levels_are_traced(tmp_path: Any) -> None:
    table = X.assign(place=np.where(X.e > 0.5, "north", np.where(X.e > -0.5, "east", "south")))
    encoder = make_column_transformer((OneHotEncoder(), ["place"]), (StandardScaler(), ["a", "b", "c", "d"]))
    model = make_pipeline(encoder, GradientBoostingClassifier(n_estimators=6, random_state=0)).fit(
        table.drop(columns="e"), (LINE + (table.place == "north") > 0.2).astype(int)
    )
    table = table.drop(columns="e")
    made = skl2onnx.to_onnx(model, table[:1], options={"zipmap": False})
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    decision = fw.Decision(load_model(tmp_path / "model.onnx"))
    explainer = fw.Explainer(decision, fw.references.single(decision, table, None, on_positive="allow"))
    out = explainer.explain(table[decision.verdicts(table).positive].iloc[:12], alternatives=20)
    assert set(out.strategies) >= {"ensemble"}, out.notes
    assert checks.check_exact(explainer, out) > 0


@pytest.mark.parametrize("name", ["forest", "linear", "net"])
def test_a_file_read_wrong_is_noticed(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: columns in another order."""
    model = written(name, TWO, tmp_path)
    honest = read(model)
    prepare = honest.reading.prepare
    broken = replace(honest, reading=replace(honest.reading, prepare=lambda rows: prepare(rows)[:, ::-1].copy()))
    monkeypatch.setattr("fewest.engine.model_reading.read", lambda *_, **__: broken)
    with pytest.warns(fw.FewestWarning, match="does not reproduce"):
        explainer, out = explained(model)
    assert checks.check_exact(explainer, out) > 0


def test_what_is_not_read_says_why_and_is_explained_all_the_same(tmp_path: Any) -> None:
    folds = CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X.to_numpy(), TWO)
    made = skl2onnx.to_onnx(folds, X.to_numpy()[:1], options={"zipmap": False})
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    model = load_model(tmp_path / "model.onnx")
    assert "ONNX" in read(model).reason
    explainer, out = explained(model)
    assert set(out.strategies) >= {"levelwise"}
    assert checks.check_exact(explainer, out) > 0
