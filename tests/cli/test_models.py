import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from fewest.cli import main
from fewest.cli._audit import check_trees
from fewest.cli._models import load_model
from fewest.errors import ModelError

skops_io = pytest.importorskip("skops.io")


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (self.path, "w"))


def data() -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(80, 3)), columns=["a", "b", "c"])
    return X, (X["a"] + X["b"] > 0).astype(int).to_numpy()


def mine(X: pd.DataFrame) -> pd.DataFrame:
    return X


def test_a_pickle_needs_a_yes_and_is_not_touched_without_it(
    files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = tmp_path / "ran"
    trap = tmp_path / "model.pkl"
    trap.write_bytes(pickle.dumps(Trap(str(mark))))
    call = ["explain", str(files.data), "--model", str(trap), "--train", str(files.train), "--target", "risk"]
    assert main(call) == 4
    printed = capsys.readouterr()
    assert "loading it runs code stored in the file" in printed.err
    assert "--allow-pickle" in printed.err
    assert not mark.exists()


def test_joblib_works_with_allow_pickle(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["explain", str(files.data), "--model", str(files.joblib), "--train", str(files.train), "--target", "risk"]
    assert main(call) == 4
    assert main([*call, "--allow-pickle", "--positive", "bad"]) == 0


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        DecisionTreeClassifier(max_depth=3),
        RandomForestClassifier(5),
        AdaBoostClassifier(n_estimators=5),
        HistGradientBoostingClassifier(max_iter=5),
        MLPClassifier((4,), max_iter=1500, tol=1e-2),
        CalibratedClassifierCV(LogisticRegression()),
        VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier())], voting="soft"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scikit_learns_own_models_load_from_skops_without_more_trust(model: Any, tmp_path: Path) -> None:
    X, y = data()
    path = tmp_path / "m.skops"
    skops_io.dump(model.fit(X, y), path)
    assert np.array_equal(load_model(path).predict_proba(X), model.predict_proba(X))


def test_a_foreign_type_in_a_skops_file_is_refused_by_name(tmp_path: Path) -> None:
    X, y = data()
    path = tmp_path / "m.skops"
    skops_io.dump(make_pipeline(FunctionTransformer(mine), LogisticRegression()).fit(X, y), path)
    with pytest.raises(ModelError, match="not on the list of safe ones"):
        load_model(path)


@pytest.mark.parametrize(
    ("name", "said"), [("m.skops", "no skops file"), ("m.onnx", "no known kind"), ("m.joblib", "cannot be loaded")]
)
def test_files_that_are_no_models_are_refused(name: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"not a model")
    with pytest.raises(ModelError, match=said):
        load_model(path, allow_pickle=name.endswith("joblib"))


def test_something_else_than_a_model_is_a_model_error(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "list.joblib"
    joblib.dump([1, 2], path)
    call = ["explain", str(files.data), "--model", str(path), "--train", str(files.train), "--target", "risk"]
    assert main([*call, "--allow-pickle"]) == 4


def test_sound_trees_pass_the_audit() -> None:
    X, y = data()
    boosted = HistGradientBoostingClassifier(max_iter=3)
    for model in (RandomForestClassifier(3), boosted, AdaBoostClassifier(n_estimators=3)):
        check_trees(model.fit(X, y), "m.skops")


@pytest.mark.parametrize(("field", "value"), [("left_child", 999), ("right_child", 0), ("feature", 7), ("feature", -9)])
def test_a_forged_tree_is_refused_before_it_is_walked(field: str, value: int) -> None:
    X, y = data()
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    state = model.tree_.__getstate__()
    state["nodes"][field][0] = value
    forged = type(model.tree_)(3, np.array([2], dtype=np.intp), 1)
    forged.__setstate__(state)
    model.tree_ = forged
    with pytest.raises(ModelError, match="damaged tree"):
        check_trees(model, "m.skops")


@pytest.mark.parametrize(("field", "value"), [("left", 9999), ("right", 0), ("feature_idx", 7)])
def test_a_forged_boosted_tree_is_refused(field: str, value: int) -> None:
    X, y = data()
    model = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5).fit(X, y)
    model._predictors[0][0].nodes[field][0] = value
    with pytest.raises(ModelError, match="damaged tree"):
        check_trees(model, "m.skops")
