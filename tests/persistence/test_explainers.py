"""An explainer comes back from its file as it went in: the same answers to the last bit, and no row of anybody."""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import KernelPCA
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from slow_cases import mostly_slow

import fewest as fw
from fewest.errors import FewestError, ModelError, UsageError
from fewest.persistence import load
from fewest.persistence._array_parts import references_from_members
from fewest.persistence._readers import refusing, unpack
from fewest.persistence.explainers import as_bytes

pytest.importorskip("skops.io")

SKETCH, RANDOM_STATE = 1001, 624
ROWS = 211  # a number no other array has by chance


def table() -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(7)
    X = pd.DataFrame(random.normal(size=(ROWS, 3)), columns=["a", "b", "c"])
    X["age"] = random.integers(18, 80, ROWS)
    X["job"] = random.choice(["none", "clerk", "other"], ROWS)
    raw = X["a"] + X["b"] + (X["job"] == "none") + (X["age"] - 50) / 40 + random.normal(size=ROWS) / 4
    return X, np.where(raw > 0.3, "bad", "good")


def piped(model: Any) -> Any:
    encode = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["a", "b", "c", "age"]))
    return make_pipeline(encode, model)


def xgboost(**settings: Any) -> Any:
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=4, max_depth=2, **settings)


def lightgbm() -> Any:
    return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=4, min_child_samples=5, verbose=-1)


def all_opt(model: str, **settings: Any) -> Any:
    pytest.importorskip("torch")
    from fewest.models.training import AllOptClassifier, Architecture

    small = Architecture(hidden=(4,), **settings)
    return AllOptClassifier(model, epochs=1, warmup_epochs=15, architecture=small, positive="bad")


def exp_o() -> Any:
    pytest.importorskip("torch")
    from fewest.models.training import ExpOClassifier

    return ExpOClassifier("logistic", epochs=1, warmup_epochs=15, positive="bad")


def topt() -> Any:
    pytest.importorskip("praxis")
    from fewest.models.rashomon import TOptClassifier

    return TOptClassifier(max_depth=3)


MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: piped(LogisticRegression()),
    "tree": lambda: piped(DecisionTreeClassifier(max_depth=4)),
    "forest": lambda: piped(RandomForestClassifier(5, random_state=0)),
    "gradient": lambda: piped(GradientBoostingClassifier(n_estimators=5)),
    "hist": lambda: piped(HistGradientBoostingClassifier(max_iter=5)),
    "mlp": lambda: piped(MLPClassifier((8,), max_iter=3000, tol=1e-3, random_state=0)),
    "calibrated": lambda: piped(CalibratedClassifierCV(LogisticRegression(), cv=2)),
    "isotonic": lambda: piped(CalibratedClassifierCV(LogisticRegression(), cv=2, method="isotonic")),
    "lightgbm": lambda: piped(lightgbm()),
    "all-opt logistic": lambda: all_opt("logistic"),
    "all-opt mlp": lambda: all_opt("mlp"),
    "all-opt boosted": lambda: all_opt("boosted", booster=GradientBoostingClassifier(n_estimators=4)),
    "exp-o": exp_o,
    "cart": lambda: fw.trees.CARTClassifier(),
    "c45": lambda: fw.trees.C45Classifier(),
    "topt": topt,
}


OTHERS = {"forest", "gradient", "isotonic", "all-opt boosted", "c45"}  # kept as others are that stay in `make test`


def fitted(name: str) -> tuple[Any, pd.DataFrame, np.ndarray]:
    X, y = table()
    if name.startswith("xgboost"):
        settings = {"booster": "dart"} if name.endswith("dart") else {}
        return piped(xgboost(**settings)).fit(X, (y == "bad").astype(int)), X, (y == "bad").astype(int)
    return MODELS[name]().fit(X, y), X, y


def explained(explainer: fw.Explainer, X: pd.DataFrame) -> tuple[str, dict[str, Any]]:
    out = explainer.explain(X, alternatives=3)
    return out.to_json(), {part.name: getattr(out.answers, part.name) for part in dataclasses.fields(out.answers)}


def check_round_trip(explainer: fw.Explainer, X: pd.DataFrame, folder: Path, **options: Any) -> fw.Explainer:
    """Save, load, and compare every answer."""
    path = folder / "x.fewest"
    explainer.save(path, **options)
    again = load(path)
    few = X.iloc[:80]
    text, arrays = explained(explainer, few)
    text_again, arrays_again = explained(again, few)
    assert text_again == text
    for part, values in arrays.items():
        if isinstance(values, np.ndarray) and values.dtype != object:
            assert np.array_equal(arrays_again[part], values, equal_nan=values.dtype.kind == "f"), part
    return again


@pytest.mark.filterwarnings("ignore::fewest.FewestWarning")
@pytest.mark.parametrize("name", mostly_slow([*MODELS, "xgboost", "xgboost dart"], {*MODELS, "xgboost"} - OTHERS))
def test_a_model_of_each_kind_comes_back_with_the_same_answers(name: str, tmp_path: Path) -> None:
    model, X, y = fitted(name)
    decision = fw.Decision(model, positive=1 if name.startswith("xgboost") else "bad")
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y, on_positive="allow"))
    again = check_round_trip(explainer, X, tmp_path)
    assert name.startswith("all-opt") or again.explain(X.iloc[:80]).counts()["EXPLAINED"] > 10
    assert type(again.decision.model) is type(model)
    assert rows_in(tmp_path / "x.fewest", X) == []


def test_a_search_for_c1_comes_back_as_the_model_it_found(tmp_path: Path) -> None:
    plain = all_opt("logistic")
    from fewest.models.training import AllOptSearchCV

    X, y = table()
    search = AllOptSearchCV(plain, c1=(1.0,), exact=False).fit(X, y)
    decision = fw.Decision(search, positive="bad")
    again = check_round_trip(fw.Explainer(decision, search.references_), X, tmp_path)
    assert type(again.decision.model) is type(plain)


def test_parameters_of_files_from_before_they_were_grouped_or_renamed_come_back() -> None:
    from fewest.persistence._estimators import TRAINED, TREES, _estimator, _table

    before = {"margin": 0.2, "hidden": [4, 2], "learning_rate": 0.5, "c1": 3.0, "gone": 1}
    X, y = table()
    plain = _table(fw.trees.CARTClassifier().fit(X, y))
    model = _estimator({**plain, "class": "AllOptClassifier", "settings": before}, TRAINED, "x")
    assert (model.loss.margin, model.architecture.hidden, model.optimizer.learning_rate) == (0.2, [4, 2], 0.5)
    assert (model.c1, model.loss.anchor) == (3.0, True)
    before = {"regularization": 0.1, "depth_budget": 3, "max_depth": 2, "n_estimators": 20}
    model = _estimator({**plain, "class": "GOSDTClassifier", "settings": before}, TREES, "x")
    assert (model.max_depth, model.guess_depth, model.guess_estimators) == (3, 2, 20)
    model = _estimator({**plain, "class": "TOptClassifier", "settings": {"depth": 2, "guess_depth": 3}}, TREES, "x")
    assert (model.max_depth, model.guess_depth) == (2, 3)


@pytest.mark.filterwarnings("ignore::fewest.FewestWarning")
@pytest.mark.parametrize("name", ["all-opt boosted", "topt"])
def test_plain_parameters_come_back_those_in_groups_too(name: str, tmp_path: Path) -> None:
    model, X, y = fitted(name)
    if name == "all-opt boosted":
        model.set_params(loss__margin=0.3, optimizer__l2=0.125)
    decision = fw.Decision(model, positive="bad")
    fw.Explainer(decision, fw.references.single(decision, X, y, on_positive="allow")).save(tmp_path / "x.fewest")
    again = load(tmp_path / "x.fewest").decision.model.get_params()
    kept = {key: value for key, value in model.get_params().items() if isinstance(value, int | float | str)}
    assert all(again[key] == value for key, value in kept.items() if key.count("__") < 2)


@pytest.fixture(scope="module")
def logistic() -> tuple[fw.Decision, pd.DataFrame, np.ndarray]:
    model, X, y = fitted("logistic")
    return fw.Decision(model, positive="bad", threshold=0.45), X, y


REFERENCES: dict[str, Callable[..., fw.references.References]] = {
    "mean": lambda d, X, y: fw.references.single(d, X, y),
    "median": lambda d, X, y: fw.references.single(d, X, y, centre="median"),
    "clusters": lambda d, X, y: fw.references.clusters(d, X, y, n_clusters=3),
    "clusters by features": lambda d, X, y: fw.references.clusters(d, X, y, n_clusters=3, assignment="features"),
    "near threshold": lambda d, X, y: fw.references.near_threshold(d, X, y, n_clusters=1, width=0.2),
    "flexible": lambda d, X, y: fw.references.single(d, X, y).flexible(0.1),
    "flexible clusters": lambda d, X, y: fw.references.clusters(d, X, y, n_clusters=2).flexible(0.05),
    "signed": lambda d, X, y: fw.references.single(d, X, y).sign_off("Credit Risk", "looked at"),
    "supplied": lambda d, X, y: fw.references.supplied(
        d, {"a": [-1 / 3], "b": [-1.0], "c": [0.1], "age": [30], "job": ["clerk"]}, X=X
    ),
    "any value": lambda d, X, y: fw.references.anyone(d, X, y),
}


@pytest.mark.filterwarnings("ignore::fewest.FewestWarning")
@pytest.mark.parametrize("kind", REFERENCES)
def test_references_of_each_kind_come_back(kind: str, logistic: Any, tmp_path: Path) -> None:
    decision, X, y = logistic
    references = REFERENCES[kind](decision, X, y)
    again = check_round_trip(fw.Explainer(decision, references), X, tmp_path).references
    assert again.frame.equals(references.frame)
    assert again.frame.dtypes.equals(references.frame.dtypes)
    assert (again.names, again.flexible_of, again.assignment) == (
        references.names,
        references.flexible_of,
        references.assignment,
    )
    assert np.array_equal(again.score, references.score)
    assert [again.is_signed(k) for k in range(len(again))] == [references.is_signed(k) for k in range(len(again))]
    assert again.provenance["kind"] == references.provenance["kind"]


def test_values_of_all_kinds_come_back(tmp_path: Path) -> None:
    random, n = np.random.default_rng(0), 60
    X = pd.DataFrame({
        "debt": random.integers(0, 40, n), "rate": np.round(random.normal(3, 1, n), 2), "late": random.random(n) < 0.5,
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, n), unit="D"),
        "home": random.choice(["own", "rent", "other"], n), "rooms": pd.Categorical(random.choice([1, 2, 3], n)),
    })  # fmt: skip
    X.loc[::7, "rate"] = np.nan
    encode = make_column_transformer(
        (OneHotEncoder(), ["home", "rooms", "late"]), (SimpleImputer(), ["debt", "rate"]), remainder="drop"
    )
    y = np.where(X["debt"] > 20, "bad", "good")
    decision = fw.Decision(make_pipeline(encode, LogisticRegression(max_iter=2000)).fit(X, y), positive="bad")
    references = fw.references.anyone(decision, X, y, within=(0, 1))
    explainer = fw.Explainer(decision, references)
    for others, what in ((references, "least and the largest"), (fw.references.anyone(decision, X, y), "since")):
        with pytest.raises(UsageError, match=what):
            explainer.with_(references=others).save(tmp_path / "x.fewest")
    again = check_round_trip(explainer, X, tmp_path, training_rows=True).references
    assert isinstance(again, fw.references.Anyone)
    for one, other in zip(references.domains, again.domains, strict=True):
        assert other.frame.equals(one.frame), one.feature.name
        assert np.array_equal(other.number, one.number, equal_nan=True), one.feature.name
    assert dict(again.provenance) == dict(references.provenance)
    with pytest.raises(UsageError, match="values of its own"):
        again.save(tmp_path / "refs.json")


@pytest.mark.parametrize("stated", [{"low": 0, "high": 1e9}, {"low": 1, "high": 0}, {"low": None}, {"decimals": 400}])
def test_values_that_are_not_a_grid_are_refused(stated: dict[str, Any], logistic: Any) -> None:
    decision, X, y = logistic
    data = as_bytes(fw.Explainer(decision, fw.references.anyone(decision, X, y)))
    members = unpack(data, "x.fewest")
    content = json.loads(members["references.json"])
    content["provenance"]["values"]["age"] = {"low": 20.0, "high": 30.0, "decimals": 0, **stated}
    with pytest.raises(ModelError, match="not a whole explainer"), refusing("x.fewest", "it is not a whole explainer"):
        references_from_members(content, members, decision, "x.fewest")


@pytest.mark.parametrize("value", ["nearest", "median", "mean"])
def test_leaves_come_back_with_their_density(value: Any, tmp_path: Path) -> None:
    X, y = table()
    decision = fw.Decision(fw.trees.CARTClassifier(min_samples_leaf=8).fit(X, y), positive="good")
    leaves = fw.references.leaves(decision, X, y, value=value)
    explainer = fw.Explainer(decision, leaves, credibility=fw.credibility.leaf_support(decision, X, y, quantile=0.2))
    check_round_trip(explainer, X, tmp_path)
    assert rows_in(tmp_path / "x.fewest", X) == []


def test_constraints_weights_and_settings_of_each_kind_come_back(logistic: Any, tmp_path: Path) -> None:
    decision, X, y = logistic
    constraints = fw.Constraints(
        fw.Immutable("c"), fw.Only("a", "down"), fw.Range("age", low=20), fw.Range("b", -3.5, 4.25),
        fw.OneOf("job", ["clerk", "other"]), fw.Linked("a", "b"), fw.Implies("age", "job"), fw.Forbidden("age", "a"),
        fw.AtMost(3),
    )  # fmt: skip
    explainer = fw.Explainer(
        decision, fw.references.single(decision, X, y), constraints=constraints, weights={"age": 0.5}, max_nodes=12345,
        unseen="allow", structure="opaque",
    )  # fmt: skip
    again = check_round_trip(explainer, X.iloc[:60], tmp_path)
    assert repr(again.constraints) == repr(constraints)
    assert (again.weights, again.max_nodes, again.unseen, again.structure) == ({"age": 0.5}, 12345, "allow", "opaque")
    assert (again.decision.threshold, again.decision.positive, again.direction) == (0.45, "bad", "minus")


def test_the_other_direction_and_many_classes_come_back(tmp_path: Path) -> None:
    X, _ = table()
    numbers = X[["a", "b", "c"]]
    three = np.digitize(numbers["a"], [-0.5, 0.5])
    decision = fw.Decision(LogisticRegression().fit(numbers, three), positive=2, against=0)
    references = fw.references.single(decision, numbers, three)
    again = check_round_trip(fw.Explainer(decision, references, direction="plus"), numbers, tmp_path)
    assert (again.decision.against, again.direction) == (0, "plus")


def test_a_mixture_comes_back_and_keeps_no_number_per_person(logistic: Any, tmp_path: Path) -> None:
    decision, X, y = logistic
    dense = fw.credibility.mixture(decision, X, y, n_components=2, quantile=0.1)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, y), credibility=dense)
    again = check_round_trip(explainer, X, tmp_path).credibility
    assert again is not None
    assert np.array_equal(again.log_density(X), dense.log_density(X))
    assert again.floor == dense.floor
    assert len(again.negatives) == 1001
    assert abs(again.at(0.5).floor - dense.at(0.5).floor) < 0.1
    assert rows_in(tmp_path / "x.fewest", X) == []


def test_what_is_made_of_training_rows_needs_a_yes(logistic: Any, tmp_path: Path) -> None:
    decision, X, y = logistic
    path = tmp_path / "x.fewest"
    near = fw.credibility.neighbours(decision, X, y)
    by_neighbours = fw.Explainer(decision, fw.references.single(decision, X, y), credibility=near)
    numbers = X[["a", "b", "c"]]
    vectors = fw.Decision(SVC().fit(numbers, y), positive="bad")
    by_vectors = fw.Explainer(vectors, fw.references.single(vectors, numbers, y, on_positive="allow"))
    for explainer, table_ in ((by_neighbours, X), (by_vectors, numbers)):
        with pytest.raises(UsageError, match="training_rows=True"):
            explainer.save(path)
        assert not path.exists()
        check_round_trip(explainer, table_, tmp_path, training_rows=True)
        path.unlink()
    medoid = fw.references.single(decision, X, y, centre="medoid")
    with pytest.raises(UsageError, match="is the row of a person"):
        fw.Explainer(decision, medoid).save(path)
    check_round_trip(fw.Explainer(decision, medoid), X, tmp_path, training_rows=True)
    assert rows_in(path, X) == ["references"]
    alone = fw.Decision(fw.trees.CARTClassifier(max_depth=None).fit(X, y), positive="good")
    with pytest.raises(UsageError, match="is the row of a person"):
        fw.Explainer(alone, fw.references.leaves(alone, X, y)).save(path)
    embedded = fw.references.clusters(decision, X, y, n_clusters=2, preset="paper")
    with pytest.raises(UsageError, match=r"map that holds .* training rows"):
        fw.Explainer(decision, embedded).save(path)
    check_round_trip(fw.Explainer(decision, embedded), X, tmp_path, training_rows=True)


@pytest.mark.parametrize(
    "part",
    [Nystroem(n_components=20, gamma=0.1), QuantileTransformer(n_quantiles=20), KernelPCA(2, kernel="rbf")],
    ids=["Nystroem", "QuantileTransformer", "KernelPCA"],
)
def test_transformers_made_of_training_rows_need_a_yes(part: Any, tmp_path: Path) -> None:
    X, y = table()
    numbers, path = X[["a", "b", "c"]], tmp_path / "x.fewest"
    decision = fw.Decision(make_pipeline(part, LogisticRegression()).fit(numbers, y), positive="bad")
    explainer = fw.Explainer(decision, fw.references.single(decision, numbers, y, on_positive="allow"))
    with pytest.raises(UsageError, match="training_rows=True"):
        explainer.save(path)
    assert not path.exists()
    check_round_trip(explainer, numbers, tmp_path, training_rows=True)


def test_a_plain_pipeline_needs_no_yes_and_its_file_has_nobodys_extremes(tmp_path: Path) -> None:
    """Negative control of the test above; and ranges of features, in every member, are in round numbers."""
    X, y = table()
    numbers, path = X[["a", "b", "c"]], tmp_path / "x.fewest"
    decision = fw.Decision(make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, y), positive="bad")
    explainer = fw.Explainer(decision, fw.references.single(decision, numbers, y, on_positive="allow"))
    check_round_trip(explainer, numbers, tmp_path)
    with zipfile.ZipFile(path) as archive:
        texts = [archive.read(entry).decode() for entry in archive.infolist() if entry.filename.endswith(".json")]
    ends = [repr(float(end)) for column in numbers for end in (numbers[column].min(), numbers[column].max())]
    assert not [end for end in ends for text in texts if end in text]
    for feature, before in zip(fw.load(path).schema.features, explainer.schema.features, strict=True):
        assert feature.minimum <= before.minimum <= before.maximum <= feature.maximum


def arrays_in(data: bytes) -> dict[str, np.ndarray]:
    """Every array in a file, the files inside it included."""
    found: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            content = archive.read(entry)
            if entry.filename.endswith(".npy"):
                found[entry.filename] = np.load(io.BytesIO(content))
            elif entry.filename.endswith(".skops"):
                found |= {f"{entry.filename}:{name}": array for name, array in arrays_in(content).items()}
    return found


def rows_in(path: Path, X: pd.DataFrame) -> list[str]:
    """Arrays with as many rows as there are people, or with two numbers of one person side by side."""
    pairs = {tuple(row) for row in X[["a", "b"]].to_numpy().tolist()}
    bad = []
    for name, array in arrays_in(path.read_bytes()).items():
        if array.ndim and array.shape[0] >= ROWS and array.shape[0] not in (SKETCH, RANDOM_STATE):
            bad.append(name)
        elif array.ndim == 2 and array.dtype.kind == "f":
            beside = {(x, y) for row in array.tolist() for x, y in pairwise(row)}
            bad += [name] if beside & pairs else []
    with zipfile.ZipFile(path) as archive:
        exact = json.loads(archive.read("references.json"))["exact"]
    # References are rounded; so are the people they are held against.
    rounded = {(round(x, 2), round(y, 2)) for x, y in pairs}
    held = zip(exact["a"], exact["b"], strict=True)
    return bad + ["references" for x, y in held if (round(x, 2), round(y, 2)) in rounded]


def test_the_search_for_rows_finds_them_where_they_are(logistic: Any, tmp_path: Path) -> None:
    """Negative control: a file that does hold rows."""
    _, X, y = logistic
    numbers = X[["a", "b", "c"]]
    decision = fw.Decision(SVC().fit(numbers, y), positive="bad")
    path = tmp_path / "x.fewest"
    references = fw.references.single(decision, numbers, y, on_positive="allow")
    fw.Explainer(decision, references).save(path, training_rows=True)
    assert rows_in(path, X)


@pytest.mark.parametrize("kind", ["function", "torch"])
def test_code_cannot_be_saved(kind: str, tmp_path: Path) -> None:
    numbers = table()[0][["a", "b", "c"]].astype(np.float32)
    model: Any = lambda rows: rows["a"].to_numpy()  # noqa: E731
    if kind == "torch":
        torch = pytest.importorskip("torch")
        model = torch.nn.Sequential(torch.nn.Linear(3, 1)).eval()
    decision = fw.Decision(model)
    references = fw.references.supplied(decision, numbers.iloc[:1], on_positive="allow")
    with pytest.raises(UsageError, match="its code is not in it"):
        fw.Explainer(decision, references).save(tmp_path / "x.fewest")


class Mine(LogisticRegression):  # type: ignore[misc]
    """A class that no other machine has."""


def test_a_class_of_ones_own_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    X, y = table()
    numbers = X[["a", "b", "c"]]
    decision = fw.Decision(Mine().fit(numbers, y), positive="bad")
    with pytest.raises(ModelError, match="not on the list of safe ones") as caught:
        fw.Explainer(decision, fw.references.single(decision, numbers, y)).save(tmp_path / "x.fewest")
    assert caught.value.do == "use estimators on the list (docs/models.md)"  # no option lets it be saved
    assert list(tmp_path.iterdir()) == []


def test_a_density_or_a_constraint_of_ones_own_cannot_be_saved(logistic: Any, tmp_path: Path) -> None:
    decision, X, y = logistic
    references = fw.references.single(decision, X, y)
    dense = fw.credibility.supplied(decision, X, y, lambda rows: -np.abs(rows["a"].to_numpy()))
    with pytest.raises(UsageError, match="a function cannot be saved"):
        fw.Explainer(decision, references, credibility=dense).save(tmp_path / "x.fewest")

    class Odd(type(fw.Immutable("a"))):  # type: ignore[misc]
        pass

    with pytest.raises(UsageError, match="of your own"):
        fw.Explainer(decision, references, constraints=fw.Constraints(Odd("a"))).save(tmp_path / "x.fewest")
    with pytest.raises(UsageError, match=r"\.fewest"):
        fw.Explainer(decision, references).save(tmp_path / "x.zip")


def test_models_read_from_bare_files_can_be_saved_with_their_explainer(tmp_path: Path) -> None:
    lightgbm_, to_onnx = pytest.importorskip("lightgbm"), pytest.importorskip("skl2onnx").to_onnx
    from fewest.persistence import load_model

    X, y = table()
    numbers = X[["a", "b", "c"]]
    labels = (y == "bad").astype(int)
    text = lightgbm_.LGBMClassifier(n_estimators=3, verbose=-1).fit(numbers, labels)
    text.booster_.save_model(tmp_path / "m.txt")
    plain = LogisticRegression().fit(numbers.to_numpy(), y)
    made = to_onnx(plain, numbers.to_numpy(dtype=np.float32)[:1]).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(made)
    for name, positive in (("m.txt", 1), ("m.onnx", "bad")):
        decision = fw.Decision(load_model(tmp_path / name), positive=positive)
        references = fw.references.single(decision, numbers, labels if positive == 1 else y)
        check_round_trip(fw.Explainer(decision, references), numbers.iloc[:40], tmp_path)


def test_a_changed_reference_or_model_in_the_file_is_noticed(logistic: Any, tmp_path: Path) -> None:
    """With checksums that fit: the scores beside the references still tell that they are not the model's."""
    import hashlib

    decision, X, y = logistic
    with zipfile.ZipFile(io.BytesIO(as_bytes(fw.Explainer(decision, fw.references.single(decision, X, y))))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    references = json.loads(members["references.json"])
    references["exact"]["a"][0] += 0.5
    members["references.json"] = json.dumps(references).encode()
    manifest = json.loads(members["manifest.json"])
    manifest["members"]["references.json"] = {
        "bytes": len(members["references.json"]), "sha256": hashlib.sha256(members["references.json"]).hexdigest()
    }  # fmt: skip
    members["manifest.json"] = json.dumps(manifest).encode()
    path = tmp_path / "x.fewest"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(FewestError, match="scores its references otherwise"):
        load(path)


def test_categories_that_a_booster_encodes_by_itself_are_refused_with_the_way_out(tmp_path: Path) -> None:
    X = pd.DataFrame({"age": range(60), "home": pd.Categorical(["own", "rent", "free"] * 20)})
    model = HistGradientBoostingClassifier(max_iter=3).fit(X, np.arange(60) % 2)
    decision = fw.Decision(model, positive=1)
    refs = fw.references.supplied(decision, X.iloc[[0]], X=X, on_positive="allow")
    with pytest.raises(ModelError, match="OrdinalEncoder"):
        fw.Explainer(decision, refs).save(tmp_path / "a.fewest")
