"""Models from files: what is safe loads without more trust, what is not is refused and does not run."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import hostile_models
import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from fewest import Decision, Explainer, references
from fewest.apps.cli import main
from fewest.errors import DataError, ModelError
from fewest.models.trees import CARTClassifier
from fewest.models.trees.file import save_tree
from fewest.persistence import load, load_model
from fewest.persistence._fitted_state import check_sound
from fewest.persistence._sound import flaw_of_tree

skops_io = pytest.importorskip("skops.io")


def data() -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(80, 3)), columns=["a", "b", "c"])
    return X, (X["a"] + X["b"] > 0).astype(int).to_numpy()


def mine(X: pd.DataFrame) -> pd.DataFrame:
    return X


def written(folder: Path, target: bool = True) -> tuple[Path, Path]:
    """The table to explain and the one with labels, as files."""
    X, y = data()
    X.to_csv(folder / "data.csv", index=False)
    X.assign(risk=y).to_csv(folder / "train.csv", index=False)
    return folder / "data.csv", folder / "train.csv"


def test_a_pickle_needs_a_yes_that_says_what_it_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, train = written(tmp_path)
    mark, trap = tmp_path / "ran", tmp_path / "model.pkl"
    trap.write_bytes(pickle.dumps(hostile_models.Trap(str(mark))))
    assert main(["explain", str(table), "--model", str(trap), "--train", str(train), "--target", "risk"]) == 4
    printed = capsys.readouterr()
    assert "loading it runs code stored in the file" in printed.err
    assert "--allow-pickle if you made this file yourself" in printed.err
    assert not mark.exists()


def test_joblib_works_with_allow_pickle(tmp_path: Path) -> None:
    table, train = written(tmp_path)
    path = tmp_path / "m.joblib"
    joblib.dump(LogisticRegression().fit(*data()), path)
    call = ["explain", str(table), "--model", str(path), "--train", str(train), "--target", "risk"]
    assert main(call) == 4
    assert main([*call, "--allow-pickle"]) == 0


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LogisticRegressionCV(Cs=2, cv=2, use_legacy_attributes=False, l1_ratios=(0,), scoring="accuracy"),
        SGDClassifier(loss="log_loss"),
        DecisionTreeClassifier(max_depth=3),
        RandomForestClassifier(5),
        AdaBoostClassifier(n_estimators=5),
        BaggingClassifier(n_estimators=3),
        GradientBoostingClassifier(n_estimators=3),
        HistGradientBoostingClassifier(max_iter=5),
        MLPClassifier((4,), max_iter=1500, tol=1e-2),
        CalibratedClassifierCV(LogisticRegression()),
        CalibratedClassifierCV(LogisticRegression(), method="isotonic"),
        VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier())], voting="soft"),
        make_pipeline(OneHotEncoder(min_frequency=9, handle_unknown="infrequent_if_exist"), LogisticRegression()),
        SVC(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scikit_learns_own_models_load_from_skops_without_more_trust(model: Any, tmp_path: Path) -> None:
    X, y = data()
    if type(model).__name__ == "Pipeline":
        X = X.round()
    path = tmp_path / "m.skops"
    skops_io.dump(model.fit(X, y), path)
    again = load_model(path)
    score = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    assert np.array_equal(getattr(again, score)(X), getattr(model, score)(X))


@pytest.mark.parametrize(
    "model",
    [make_pipeline(FunctionTransformer(mine), LogisticRegression()), KNeighborsClassifier(algorithm="brute")],
    ids=["function", "neighbours"],
)
def test_a_foreign_type_in_a_skops_file_is_refused_by_name(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.skops"
    skops_io.dump(model.fit(*data()), path)
    with pytest.raises(ModelError, match="not on the list of safe ones"):
        load_model(path)
    assert hasattr(load_model(path, allow_pickle=True), "predict")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("m.skops", "not a whole zip file"),
        ("m.onnx", "not an ONNX model"),
        ("m.json", "not JSON"),
        ("m.txt", "not a LightGBM model text"),
        ("m.fewest", "not a whole zip file"),
        ("m.joblib", "cannot be loaded"),
        ("m.pt", "not a known kind"),
    ],
)
def test_files_that_are_no_models_are_refused(name: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"not a model")
    with pytest.raises(ModelError, match=said):
        load_model(path, allow_pickle=name.endswith("joblib"))


def test_something_else_than_a_model_is_a_model_error(tmp_path: Path) -> None:
    table, train = written(tmp_path)
    path = tmp_path / "list.joblib"
    joblib.dump([1, 2], path)
    call = ["explain", str(table), "--model", str(path), "--train", str(train), "--target", "risk"]
    assert main([*call, "--allow-pickle"]) == 4


def bare_models(folder: Path) -> dict[str, Any]:
    """The same data learned by each library, saved in its own format."""
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    to_onnx = pytest.importorskip("skl2onnx").to_onnx
    X, y = data()
    plain = LogisticRegression().fit(X.to_numpy(), y)
    (folder / "m.onnx").write_bytes(to_onnx(plain, X.to_numpy(dtype=np.float32)[:1]).SerializeToString())
    boosted = xgboost.XGBClassifier(n_estimators=4, max_depth=2).fit(X, y)
    boosted.save_model(folder / "m.json")
    boosted.save_model(folder / "m.ubj")
    light = lightgbm.LGBMClassifier(n_estimators=4, num_leaves=4, min_child_samples=5, verbose=-1).fit(X, y)
    light.booster_.save_model(folder / "m.txt")
    return {"m.onnx": plain, "m.json": boosted, "m.ubj": boosted, "m.txt": light}


def test_boosters_in_their_own_formats_are_searched_as_the_classifiers_they_came_from(tmp_path: Path) -> None:
    X, y = data()
    for name, model in bare_models(tmp_path).items():
        if name == "m.onnx":
            continue
        before, after = (Decision(one, positive=1) for one in (model, load_model(tmp_path / name)))
        out = [Explainer(one, references.single(one, X, y)).explain(X) for one in (before, after)]
        assert "ensemble" in out[1].strategies
        assert out[0].to_json() == out[1].to_json()


def test_models_in_their_libraries_own_formats_score_as_before_and_explain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, train = written(tmp_path)
    X, _ = data()
    for name, model in bare_models(tmp_path).items():
        scores = load_model(tmp_path / name).predict_proba(X)
        if name == "m.onnx":
            assert np.allclose(scores, model.predict_proba(X.to_numpy()), atol=1e-6)
        else:
            assert np.array_equal(scores, model.predict_proba(X)), name
        call = ["explain", str(table), "--model", str(tmp_path / name), "--train", str(train), "--target", "risk"]
        assert main([*call, "--json"]) == 0, capsys.readouterr().err
        assert json.loads(capsys.readouterr().out)["counts"]["EXPLAINED"] > 20, name


def test_bare_models_travel_to_other_processes(tmp_path: Path) -> None:
    X, _ = data()
    for name in bare_models(tmp_path):
        model = load_model(tmp_path / name)
        assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X)), name


def test_an_onnx_model_of_columns_takes_text_and_names_its_classes(tmp_path: Path) -> None:
    to_onnx = pytest.importorskip("skl2onnx").to_onnx
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import StandardScaler

    X, y = data()
    X = X.astype(np.float32).assign(job=np.where(np.arange(len(X)) % 3, "clerk", "none"))
    encode = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["a", "b", "c"]))
    model = make_pipeline(encode, RandomForestClassifier(5)).fit(X, np.where(y, "bad", "good"))
    path = tmp_path / "m.onnx"
    path.write_bytes(to_onnx(model, X[:1], options={"zipmap": False}).SerializeToString())
    again = load_model(path)
    assert again.classes_.tolist() == ["bad", "good"]
    assert again.feature_names_in_.tolist() == ["a", "b", "c", "job"]
    assert np.allclose(again.predict_proba(X[["job", "c", "b", "a"]]), model.predict_proba(X), atol=1e-6)
    assert (again.predict(X) == model.predict(X)).all()
    with pytest.raises(DataError, match="the model takes 4"):
        again.predict_proba(X[["a", "b"]])


def test_sound_models_pass_the_check() -> None:
    X, y = data()
    boosted = HistGradientBoostingClassifier(max_iter=3)
    for model in (RandomForestClassifier(3), boosted, AdaBoostClassifier(n_estimators=3), SVC()):
        check_sound(model.fit(X, y), "m.skops")


@pytest.mark.parametrize(("field", "value"), [("left_child", 999), ("right_child", 0), ("feature", 7), ("feature", -9)])
def test_a_forged_tree_is_refused_before_it_is_walked(field: str, value: int) -> None:
    model = DecisionTreeClassifier(max_depth=3).fit(*data())
    state = model.tree_.__getstate__()
    state["nodes"][field][0] = value
    forged = type(model.tree_)(3, np.array([2], dtype=np.intp), 1)
    forged.__setstate__(state)
    model.tree_ = forged
    with pytest.raises(ModelError, match="damaged Tree"):
        check_sound(model, "m.skops")


def test_a_second_node_with_the_same_number_cannot_stand_for_the_first(tmp_path: Path) -> None:
    """skops builds the first node of a number and ignores the second: what was checked would not be what is loaded."""
    X, y = data()
    members = hostile_models.members_of(DecisionTreeClassifier(max_depth=3).fit(X, y))
    schema = json.loads(members["schema.json"])
    tree = next(node for node in hostile_models.nodes_in(schema) if node["__loader__"] == "TreeNode")
    state = json.loads(json.dumps(tree["content"]))
    nodes = np.load(io.BytesIO(members[state["content"]["nodes"]["file"]]))
    nodes["threshold"] += 100.0
    state["content"]["nodes"].update(file="other.npy", __id__=-1)
    # An attribute that comes first has the tree's number, and other nodes.
    attributes = schema["content"]
    del attributes["content"]["max_features_"]
    attributes["content"] = {"max_features_": state, **attributes["content"]}
    members.update({"other.npy": hostile_models.npy(nodes), "schema.json": json.dumps(schema).encode()})
    path = tmp_path / "m.skops"
    path.write_bytes(hostile_models.zipped(members))
    fooled = skops_io.load(path, trusted=["sklearn.tree._tree.Tree"])
    assert fooled.tree_.threshold.max() > 50, "negative control: skops alone takes the first"
    assert load_model(path).tree_.threshold.max() < 50


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.tuples(*[st.integers(-2, n)] * 3), min_size=n, max_size=n)))
def test_whatever_passes_the_check_of_trees_is_walked_to_an_end(rows: list[tuple[int, int, int]]) -> None:
    left, right, feature = np.array(rows, dtype=np.int64).T
    inner = left != -1
    if flaw_of_tree(left, right, feature, inner, 3) is not None:
        return
    for choose in range(1 << len(rows)):
        node, steps = 0, 0
        while inner[node]:
            assert 0 <= feature[node] < 3
            node = int((left, right)[(choose >> node) & 1][node])
            steps += 1
            assert 0 <= node < len(rows)
            assert steps <= len(rows)


def test_honest_trees_pass_the_check_and_each_kind_of_damage_does_not() -> None:
    left, right, feature = np.array([1, -1, 3, -1, -1]), np.array([2, -1, 4, -1, -1]), np.array([0, 0, 2, 0, 0])
    inner = left != -1
    assert flaw_of_tree(left, right, feature, inner, 3) is None
    for part, value in ((0, 0), (0, 9), (0, -4), (1, 2)):
        broken = [left.copy(), right.copy()]
        broken[part][2] = value
        assert flaw_of_tree(broken[0], broken[1], feature, inner, 3) is not None
    assert flaw_of_tree(left, right, feature, inner, 2) is not None
    assert flaw_of_tree(left[:3], right, feature, inner, 3) is not None


PEOPLE = pd.DataFrame({"age": [20, 30, 40, 50], "job": ["none", "clerk", "none", "clerk"]})
OUTCOMES = ["ok", "ok", "bad", "ok"]


def written_tree(folder: Path) -> tuple[Path, CARTClassifier]:
    model = CARTClassifier(max_depth=2).fit(PEOPLE, OUTCOMES)
    save_tree(model.tree_, folder / "tree.json", model.classes_)
    return folder / "tree.json", model


def test_a_tree_of_ours_loads_as_the_classifier_it_was(tmp_path: Path) -> None:
    path, model = written_tree(tmp_path)
    loaded = load_model(path)
    assert loaded.classes_.tolist() == ["bad", "ok"]
    assert np.array_equal(loaded.predict_proba(PEOPLE), model.predict_proba(PEOPLE))
    decision = Decision(loaded, positive="bad")
    explainer = Explainer(decision, references.supplied(decision, PEOPLE.iloc[[1]], X=PEOPLE), n_jobs=1)
    before = explainer.explain(PEOPLE)
    assert before[2].sev == 1
    assert before[2].proof.strategy == "ensemble"
    explainer.save(tmp_path / "tree.fewest")
    assert str(load(tmp_path / "tree.fewest").explain(PEOPLE)[2]) == str(before[2])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"names": ["ok"]}, "a tree decides between two outcomes"),
        ({"names": None}, "it is not a whole tree"),
        ({"tree": {"feature": "pay"}}, "this is not a saved tree"),
        ({"format": 9}, "format 9"),
        ({"tree": {"positive": True, "score": 0.2, "negatives": 1, "positives": 1}}, "cut at another threshold"),
    ],
)
def test_a_damaged_tree_of_ours_is_refused_as_a_tree(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    path, _ = written_tree(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ModelError, match=r"tree\.json is refused") as caught:
        load_model(path)
    assert said in str(caught.value)
    assert "XGBoost" not in str(caught.value)


def test_a_tree_of_ours_in_a_skops_file_is_refused_with_a_way_to_save_it(tmp_path: Path) -> None:
    _, model = written_tree(tmp_path)
    skops_io = pytest.importorskip("skops.io")
    skops_io.dump(model, tmp_path / "tree.skops")
    with pytest.raises(ModelError, match=r"save_tree\(model.tree_, 'tree.json', model.classes_\)"):
        load_model(tmp_path / "tree.skops")
