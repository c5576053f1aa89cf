"""Scores, classes, thresholds; and models that cannot be trusted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fewest import Decision
from fewest.errors import DataError, FewestWarning, ModelError, UsageError

X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "b": [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]})
Y = np.array(["good", "good", "good", "bad", "bad", "bad"])


def test_labels_of_any_type_and_either_class() -> None:
    model = LogisticRegression().fit(X, Y)
    bad, good = Decision(model, positive="bad"), Decision(model, positive="good")
    assert np.allclose(bad.score(X) + good.score(X), 1)
    assert bad.negative_name == "good"
    assert Decision(LogisticRegression().fit(X, Y == "bad")).positive is True


@pytest.mark.parametrize("table", [X.to_numpy(), {name: X[name].tolist() for name in X}, X.to_numpy().tolist()])
def test_tables_of_other_kinds_are_scored_alike(table: Any) -> None:
    decision = Decision(LogisticRegression().fit(X, Y), positive="bad")
    assert np.array_equal(decision.score(table), decision.score(X))
    assert np.array_equal(decision.verdicts(table).positive, decision.verdicts(X).positive)


@pytest.mark.parametrize("estimator", [LinearSVC(), RidgeClassifier()])
def test_models_with_only_a_decision_function(estimator: object) -> None:
    model = estimator.fit(X, Y)  # type: ignore[attr-defined]
    decision = Decision(model, positive="bad")
    assert decision.kind == "decision"
    assert (decision.verdicts(X).positive == (model.predict(X) == "bad")).all()


def test_models_with_only_predict() -> None:
    class Rule:
        classes_ = np.array([0, 1])

        def predict(self, frame: np.ndarray) -> np.ndarray:
            return (np.asarray(frame)[:, 0] > 2).astype(int)

    decision = Decision(Rule())
    assert decision.kind == "label"
    assert decision.verdicts(X).positive.tolist() == [False, False, False, True, True, True]


def test_a_score_exactly_at_the_threshold_is_positive() -> None:
    decision = Decision(lambda frame: np.full(len(frame), 0.5), positive="yes")
    assert decision.verdicts(X).positive.all()


def test_multi_class_scores() -> None:
    y = np.array([0, 0, 1, 1, 2, 2])
    model = LogisticRegression().fit(X, y)
    table = model.predict_proba(X)
    alone = Decision(model, positive=1)
    assert np.allclose(alone.score(X), table[:, 1] - np.maximum(table[:, 0], table[:, 2]))
    assert alone.cut == 0
    instead = Decision(model, positive=1, against=2)
    assert np.allclose(instead.score(X), table[:, 1] - table[:, 2])
    with pytest.raises(UsageError, match="positive="):
        Decision(model)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Decision(LogisticRegression()), ModelError, "not fitted"),
        (lambda: Decision(LogisticRegression), UsageError, "is a class"),
        (lambda: Decision(object()), ModelError, "cannot be called"),
        (lambda: Decision(LogisticRegression().fit(X, Y), positive="ugly"), UsageError, "not a class"),
        (lambda: Decision(LogisticRegression().fit(X, Y), threshold=np.nan), UsageError, "finite"),
        (lambda: Decision(LogisticRegression().fit(X, Y), kind="magic"), UsageError, "unknown"),
        (lambda: Decision(LinearSVC().fit(X, Y), kind="proba"), ModelError, "no predict_proba"),
    ],
)
def test_bad_decisions_are_refused(make: object, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        make()  # type: ignore[operator]


def broken(kind: str) -> object:
    state = np.random.default_rng(0)

    def model(frame: pd.DataFrame) -> object:
        if kind == "raises":
            raise RuntimeError("out of order")
        if kind == "nan":
            return np.where(frame["a"] > 2, np.nan, 0.1)
        if kind == "shape":
            return np.zeros((len(frame), 3))
        if kind == "mutates":
            frame["a"] = 0.0
            return np.zeros(len(frame))
        if kind == "random":
            return state.random(len(frame))
        return frame["a"].to_numpy() - frame["a"].mean()

    return model


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("raises", "out of order"),
        ("nan", "row 3 is NaN"),
        ("shape", r"shape \(6, 3\)"),
        ("mutates", "changed the table"),
        ("random", "two different scores"),
        ("batch", "rows beside it"),
    ],
)
def test_models_that_cannot_be_trusted_are_refused(kind: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Decision(broken(kind), positive="yes").check(X.copy())


@pytest.mark.parametrize(("value", "words"), [(np.nan, "missing"), (np.inf, "infinite")])
def test_values_the_model_refuses_are_named(value: float, words: str) -> None:
    cases = X.copy()
    cases.loc[2, "b"] = value
    with pytest.raises(DataError, match=rf'row 2, column "b": the value is {words}'):
        Decision(LogisticRegression().fit(X, Y), positive="bad").score(cases)


def test_a_model_fitted_on_arrays_is_fed_arrays() -> None:
    decision = Decision(LogisticRegression().fit(X.to_numpy(), Y), positive="bad")
    assert decision.columns is None
    assert len(decision.score(X)) == len(X)
    with pytest.raises(DataError, match="fitted on 2 columns"):
        decision.score(X[["a"]])


def single_net(scale: float = 1.0, seed: int = 0) -> Callable[[pd.DataFrame], np.ndarray]:
    """A net of single precision without any batch statistics; ``scale`` is that of the columns."""
    rng = np.random.default_rng(seed)
    layers = [rng.normal(size=shape).astype(np.float32) for shape in ((10, 64), (64, 64), (64, 1))]
    layers[0] /= np.float32(scale)

    def logits(rows: pd.DataFrame) -> np.ndarray:
        hidden = rows.to_numpy(dtype=np.float32)
        for layer in layers[:-1]:
            hidden = np.maximum(hidden @ layer, np.float32(0))
        return (hidden @ layers[-1]).ravel() / np.float32(64)

    return logits


def chances(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logits))


WRAPPED = {
    "cast": lambda net: lambda rows: chances(net(rows)).astype(float),
    "computed": lambda net: lambda rows: chances(net(rows).astype(float)),
}


@pytest.mark.parametrize("wrap", WRAPPED)
def test_a_verdict_does_not_depend_on_the_batch_whatever_type_scores_come_in(wrap: str) -> None:
    """Scores of single precision differ by 1e-7 between batches, also where a wrapper returns doubles."""
    rows = pd.DataFrame(np.random.default_rng(1).normal(size=(600, 10)), columns=list("abcdefghij"))
    model = WRAPPED[wrap](single_net())
    together, alone = model(rows), np.array([model(rows.iloc[[i]])[0] for i in range(200)])
    moved = np.flatnonzero(together[:200] != alone)
    assert len(moved) > 20  # else there is nothing to test
    for row in moved[:60]:
        cut = float(max(together[row], alone[row]))
        decision = Decision(model, positive="yes", threshold=cut)
        assert decision.verdicts(rows).positive[row] == decision.verdicts(rows.iloc[[row]]).positive[0]


def test_rounding_of_unscaled_columns_is_not_taken_for_batch_statistics() -> None:
    """The noise of single precision grows with the columns; it is measured, and the band is as wide."""
    rows = pd.DataFrame(np.random.default_rng(1).normal(size=(400, 10)) * 1e5 + 3e7, columns=list("abcdefghij"))
    net = single_net(1e5)
    middle = np.float32(np.median(net(rows)))
    decision = Decision(lambda frame: chances(net(frame) - middle), positive="yes")
    decision.check(rows)
    noise = decision.noise(rows)
    assert noise.is_rounding
    assert noise.mixed > 2e-6  # as much as would be refused without looking further
    assert decision.band(rows) >= 20 * noise.mixed


@pytest.mark.parametrize("size", [1e-5, 1e-3, 0.1])
def test_scores_that_follow_the_rows_beside_them_are_refused(size: float) -> None:
    rows = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0)})
    decision = Decision(lambda frame: chances(frame["a"].to_numpy()) * 0.5 + size * frame["b"].mean(), positive="yes")
    with pytest.raises(ModelError, match="rows beside it"):
        decision.check(rows)


def test_exact_scores_keep_their_digits() -> None:
    decision = Decision(LogisticRegression().fit(X, Y), positive="bad")
    assert decision.band(X) == 1e-9
    assert Decision(lambda frame: np.full(len(frame), 0.123456789), positive="yes").verdicts(X).score[0] == 0.123456789


def test_clusters_are_called_what_they_are_and_the_remedy_works() -> None:
    model = KMeans(2, n_init=1, random_state=0).fit(X)
    with pytest.raises(ModelError, match="KMeans finds clusters") as caught:
        Decision(model)
    assert "not fitted" not in str(caught.value)
    wrapped = re.search(r"e\.g\. (Decision\(.*\))$", str(caught.value.do))
    assert wrapped
    decision = eval(wrapped[1], {"Decision": Decision, "model": model})
    assert len(decision.verdicts(X).score) == len(X)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("objective", ["chances", "numbers"])
def test_a_bare_booster_is_cut_like_what_it_was_trained_for(library: str, objective: str) -> None:
    boosting = pytest.importorskip(library)
    known = (Y == "bad").astype(int)
    chances = objective == "chances"
    if library == "xgboost":
        words = {"objective": "binary:logistic" if chances else "reg:squarederror"}
        model = boosting.train(words, boosting.DMatrix(X, known), 2)
        own = model.predict(boosting.DMatrix(X))
    else:
        words = {"objective": "binary" if chances else "regression", "verbose": -1, "min_data_in_leaf": 1}
        model = boosting.train(words, boosting.Dataset(X, known), 2)
        own = model.predict(X)
    if chances:
        assert Decision(model).cut == 0.5
    else:
        with pytest.raises(UsageError, match="from which one on"):
            Decision(model)
    decision = Decision(model, threshold=0.4)
    assert decision.columns == tuple(X.columns)
    assert np.allclose(decision.score(X), own)


def test_a_threshold_of_the_models_own_is_the_default() -> None:
    for label in ("bad", "good"):
        alone = FixedThresholdClassifier(LogisticRegression(), threshold=0.2, pos_label=label)
        for model in (alone, make_pipeline(StandardScaler(), alone)):
            model.fit(X, Y)
            for positive in ("bad", "good"):
                decision = Decision(model, positive=positive)
                assert decision.cut == pytest.approx(0.2 if positive == label else 0.8)
                assert (decision.verdicts(X).positive == (model.predict(X) == positive)).all()
    tuned = TunedThresholdClassifierCV(
        LinearSVC(), scoring=make_scorer(f1_score, pos_label="bad"), cv=2, thresholds=np.array([-0.3, 0.1])
    ).fit(X, Y)
    decision = Decision(tuned, positive="bad")
    assert decision.cut == tuned.best_threshold_
    assert (decision.verdicts(X).positive == (tuned.predict(X) == "bad")).all()


def test_a_classifier_that_is_not_fitted_is_called_that() -> None:
    with pytest.raises(ModelError, match="LogisticRegression is not fitted"):
        Decision(LogisticRegression())


def test_labels_in_messages_are_written_without_the_names_of_numpys_types() -> None:
    model = LogisticRegression().fit(X, np.array(list(Y), dtype=object))
    model.classes_ = np.array([np.str_("bad"), np.str_("good")], dtype=object)
    with pytest.raises(UsageError) as caught:
        Decision(model, positive=np.int64(0))
    assert str(caught.value).startswith("0 is not a class of the model")
    assert caught.value.do == "use one of 'bad', 'good'"


def test_a_torch_module_is_asked_about_the_class_that_is_named() -> None:
    torch = pytest.importorskip("torch")
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)).astype("float32"), columns=list("abc"))
    for outputs in (1, 2):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, outputs)).eval()
        first, second = (Decision(net, positive=label).score(rows) for label in (0, 1))
        assert np.allclose(first + second, 1)
        assert np.allclose(Decision(net, positive="bad").score(rows), second)


def test_an_answer_about_class_zero_of_a_module_turns_class_zero() -> None:
    torch = pytest.importorskip("torch")
    import fewest as fw

    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).eval()
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 3)).astype("float32"), columns=list("abc"))
    decision = Decision(net, positive=0, threshold=0.5)
    refused = decision.verdicts(rows).positive
    refs = fw.references.supplied(decision, rows[~refused].iloc[[0]], X=rows)
    out = fw.Explainer(decision, refs).explain(rows)
    assert {answer.proof.strategy for answer in out if answer.changes} == {"network"}
    with torch.no_grad():
        chance = torch.sigmoid(net(torch.tensor(out.turned().to_numpy(dtype="float32")))).numpy().ravel()
    assert (1 - chance[refused] < 0.5).all()


def test_a_sigmoid_at_the_end_of_a_nested_module_is_not_put_on_twice() -> None:
    torch = pytest.importorskip("torch")
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)).astype("float32"), columns=list("abc"))
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid())
    with torch.no_grad():
        chance = inner(torch.tensor(rows.to_numpy())).numpy().ravel()
    assert np.allclose(Decision(torch.nn.Sequential(inner).eval(), positive=1).score(rows), chance)


def test_a_module_that_returns_chances_is_noticed() -> None:
    torch = pytest.importorskip("torch")

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, rows: Any) -> Any:
            return torch.sigmoid(self.layer(rows))

    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)).astype("float32"), columns=list("abc"))
    with pytest.warns(FewestWarning, match="look like chances"):
        Decision(Hidden().eval(), positive=1).check(rows)
