"""AllOptClassifier: scikit-learn's contract, raw tables, what it is for, and what it refuses."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import fewest as fw
from fewest import checks
from fewest.datasets import load
from fewest.engine.model_reading import ModelReading
from fewest.errors import DataError, FewestWarning, MissingExtraError, ModelError, UsageError
from fewest.models.estimators import LabelsError
from fewest.models.training import AllOptClassifier, Architecture, ExpOClassifier, Optimizer, SevLoss

pytest.importorskip("torch")

SMALL = Architecture(hidden=(8, 4))
SHORT: dict[str, Any] = {"warmup_epochs": 6, "epochs": 3, "device": "cpu", "architecture": SMALL,
                         "optimizer": Optimizer(0.02)}  # fmt: skip
WHOLE = load("german")
COLUMNS = ["checking_status", "duration_months", "credit_history", "credit_amount", "savings", "age"]
GERMAN = SimpleNamespace(X=WHOLE.X[COLUMNS], labels=WHOLE.labels)
STRUCTURES = {"logistic": "Additive", "mlp": "Network", "boosted": "Ensemble"}


def _small_booster() -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=0)


def trained(model: str = "logistic", **changes: Any) -> AllOptClassifier:
    plain = AllOptClassifier(model, **SHORT, positive="bad").set_params(architecture__booster=_small_booster())
    return plain.set_params(**changes).fit(GERMAN.X, GERMAN.labels)


@pytest.mark.slow
# Two dozen checks fit tables of a few rows on which no model decides anything positive: that warning is what they see.
@pytest.mark.filterwarnings("ignore::fewest.errors.FewestWarning")
@parametrize_with_checks([AllOptClassifier(warmup_epochs=30, epochs=5, optimizer=Optimizer(batch_size=32))])
def test_scikit_learns_checks_pass(estimator: Any, check: Any) -> None:
    assert check(estimator) is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fewest.errors.FewestWarning")
@parametrize_with_checks(
    [
        AllOptClassifier("mlp", warmup_epochs=30, epochs=5, architecture=Architecture(hidden=(16,)),
                         optimizer=Optimizer(0.01, batch_size=32)),
        AllOptClassifier("boosted", epochs=2, architecture=Architecture(booster=_small_booster())),
    ]
)  # fmt: skip
def test_scikit_learns_checks_pass_for_the_other_models(estimator: Any, check: Any) -> None:
    assert check(estimator) is None


@pytest.mark.parametrize("model", STRUCTURES)
def test_what_is_trained_is_explained_by_its_structure_and_every_answer_turns(model: str) -> None:
    fitted = trained(model)
    decision = fw.Decision(fitted, positive="bad")
    out = fw.Explainer(decision, fitted.references_).explain(GERMAN.X.iloc[:250])
    assert checks.check_turns(out) > 20
    inside = ModelReading.read(decision, fitted.schema_, GERMAN.X, fitted.references_.frame)
    assert type(inside.structure).__name__ == STRUCTURES[model]
    assert np.array_equal(fitted.predict_proba(GERMAN.X), fitted.pipeline_.predict_proba(GERMAN.X))


@pytest.mark.parametrize("model", STRUCTURES)
def test_training_with_the_sev_loss_lowers_mean_sev(model: str) -> None:
    def mean_sev(c1: float) -> float:
        fitted = trained(model, c1=c1, epochs=15, warmup_epochs=None if model == "boosted" else 15)
        out = fw.Explainer(fw.Decision(fitted, positive="bad"), fitted.references_).explain(GERMAN.X)
        return float(fw_sparsity(out))

    plain, sparse = mean_sev(0.0), mean_sev(4.0)
    assert sparse < plain
    assert sparse < 1.1


def fw_sparsity(out: fw.Explanations) -> float:
    from fewest.results.metrics import sparsity

    return sparsity(out).mean_sev


@pytest.mark.parametrize("model", STRUCTURES)
def test_the_same_seed_gives_the_same_model_and_another_another(model: str) -> None:
    first, second, other = (trained(model, random_state=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.predict_proba(GERMAN.X), second.predict_proba(GERMAN.X))
    assert not np.array_equal(first.predict_proba(GERMAN.X), other.predict_proba(GERMAN.X))


def test_the_positive_class_may_be_either() -> None:
    bad, good = trained(positive="bad"), trained(positive="good")
    assert bad.classes_.tolist() == good.classes_.tolist() == ["bad", "good"]
    assert bad.score(GERMAN.X, GERMAN.labels) > 0.7
    assert good.score(GERMAN.X, GERMAN.labels) > 0.7
    assert bad.references_.decision.positive == "bad"


@pytest.mark.parametrize(
    "references",
    [
        partial(fw.references.clusters, n_clusters=2),
        partial(fw.references.clusters, n_clusters=3),
        lambda d, X, y: fw.references.single(d, X, y).flexible(0.1),
    ],
    ids=["two clusters", "three clusters", "flexible"],
)
def test_the_variant_is_a_matter_of_the_references(references: Any) -> None:
    fitted = trained(references=references, c1=0.5)
    assert len(fitted.references_) > 1
    assert fitted.history_["phase"].tolist() == ["warm-up"] * 6 + ["SEV"] * 3
    assert fitted.history_["sev_estimate"].notna().tolist() == [False] * 6 + [True] * 3


def test_references_that_are_given_stay_as_they_are() -> None:
    first = trained()
    again = trained(references=first.references_)
    pd.testing.assert_frame_equal(again.references_.frame, first.references_.frame)
    assert again.references_.decision.model is again


def test_references_that_depend_on_the_model_are_made_anew_every_few_epochs() -> None:
    made = []

    def recipe(decision: Any, X: Any, y: Any) -> Any:
        made.append(decision)
        return fw.references.single(decision, X, y, on_positive="allow")

    trained(references=recipe, epochs=6, loss__refresh=2)
    assert len(made) == 4  # before the phase, twice in it, and of the trained model


def test_an_encoder_with_an_imputer_takes_missing_numbers() -> None:
    X = GERMAN.X.assign(age=GERMAN.X["age"].where(GERMAN.X.index % 7 > 0).astype(float))
    numbers = X.select_dtypes("number").columns.tolist()
    levels = [name for name in X if name not in numbers]
    encoder = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers), (OneHotEncoder(handle_unknown="ignore"), levels)
    )
    fitted = AllOptClassifier(positive="bad", **{**SHORT, "architecture": Architecture(encoder)}).fit(X, GERMAN.labels)
    assert fitted.score(X, GERMAN.labels) > 0.7
    with pytest.raises(DataError, match=r'row 0 .*"age".*missing.*\n.*imputer'):
        AllOptClassifier(positive="bad", **SHORT).fit(X, GERMAN.labels)


def test_an_encoder_that_blends_features_is_refused() -> None:
    numbers = GERMAN.X.select_dtypes("number")
    with pytest.raises(ModelError, match="traced to single features"):
        AllOptClassifier(**{**SHORT, "architecture": Architecture(PCA(2))}).fit(numbers, GERMAN.labels)


def test_scikit_learns_own_search_works() -> None:
    search = GridSearchCV(AllOptClassifier(positive="bad", **SHORT), {"c1": [0.1, 1.0]}, cv=2, scoring="roc_auc")
    search.fit(GERMAN.X, GERMAN.labels)
    assert search.best_params_["c1"] in (0.1, 1.0)
    assert search.best_score_ > 0.6


def test_early_stopping_ends_a_phase_and_keeps_its_best_epoch() -> None:
    long = trained("mlp", warmup_epochs=200, epochs=0, optimizer__patience=2, optimizer__learning_rate=0.01)
    assert len(long.history_) < 200
    assert long.score(GERMAN.X, GERMAN.labels) > 0.7


@pytest.mark.slow
def test_a_trained_model_can_be_pickled_and_predicts_without_torch(tmp_path: Any) -> None:
    fitted = trained("mlp")
    kept = tmp_path / "model.pkl"
    kept.write_bytes(pickle.dumps((fitted, GERMAN.X)))
    script = f"""
import sys, pickle
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("no torch here")
sys.meta_path.insert(0, Blocker())
model, X = pickle.loads(open({str(kept)!r}, "rb").read())
print(repr(model.predict_proba(X)[0, 0]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == repr(fitted.predict_proba(GERMAN.X)[0, 0]), done.stderr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"c1": -1.0}, "c1 is -1.0"),
        ({"c2": float("nan")}, "c2 is nan"),
        ({"loss__margin": -0.1}, "margin is"),
        ({"model": "forest"}, 'model "forest" is unknown'),
        ({"optimizer__schedule": "steps"}, 'schedule "steps" is unknown'),
        ({"references": 3}, "references 3 is neither"),
        ({"architecture__encoder": "squares"}, 'encoder "squares" is unknown'),
        ({"epochs": -1}, "epochs is -1"),
        ({"optimizer__learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"optimizer__validation_fraction": 1.5}, "validation_fraction is 1.5"),
        ({"device": "abacus"}, 'device "abacus"'),
        ({"positive": "ugly"}, "no row is labelled 'ugly'"),
        ({"references": lambda d, X, y: X}, "gave a DataFrame"),
        ({"loss": 0.05}, "pass fewest.training.SevLoss"),
        ({"loss__margins": 0.05}, "loss has no parameter 'margins'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_name(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        trained(**{"model": "logistic", **changes})


def test_one_class_only_is_refused() -> None:
    with pytest.raises(LabelsError, match="one class only"):
        AllOptClassifier(**SHORT).fit(GERMAN.X, np.zeros(len(GERMAN.X)))


def test_a_model_that_decides_nothing_positive_says_so() -> None:
    rare = np.where(np.arange(len(GERMAN.X)) % 100 == 0, "bad", "good")
    with pytest.warns(FewestWarning, match='decides no row "bad"'):
        AllOptClassifier(positive="bad", **SHORT).fit(GERMAN.X, rare)


def test_positive_references_are_brought_back_by_the_penalty_or_named() -> None:
    """Among cases most of which are bad, the typical good one is decided bad unless the penalty says otherwise."""
    numbers = GERMAN.X[["age", "credit_amount"]]
    mostly = np.where(np.arange(len(numbers)) % 4 == 0, "good", "bad")
    settings: dict[str, Any] = {
        **SHORT,
        "epochs": 30,
        "optimizer": Optimizer(0.1),
        "loss": SevLoss(anchor=False),
        "positive": "bad",
    }
    with pytest.warns(FewestWarning, match="references are decided positive by the trained model: mean"):
        AllOptClassifier(c1=0.0, c2=1e-9, **settings).fit(numbers, mostly)
    back = AllOptClassifier(c1=0.0, c2=50.0, **settings).fit(numbers, mostly)
    assert not back.references_.decision.verdicts(back.references_.frame).positive.any()


@pytest.mark.parametrize("model", STRUCTURES)
def test_without_torch_the_install_line_is_given(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r'pip install "fewest\[train\]"'):
        trained(model)


def test_what_is_in_a_group_is_reached_by_two_names_and_searched_over() -> None:
    model = AllOptClassifier(loss=SevLoss(margin=0.1), architecture=Architecture(booster=_small_booster()))
    copied = clone(model)
    assert copied.get_params()["loss__margin"] == 0.1
    assert copied.get_params()["optimizer__l2"] == 1e-4  # a group that is not given has its defaults
    copied.set_params(loss__margin=0.2, architecture__booster__max_depth=5, optimizer__l2=0.5)
    assert (model.loss.margin, model.architecture.booster.max_depth, model.optimizer) == (0.1, 2, None)
    assert (copied.loss.margin, copied.architecture.booster.max_depth, copied.optimizer.l2) == (0.2, 5, 0.5)
    assert copied.loss.anchor
    assert clone(ExpOClassifier()).set_params(architecture__hidden=(4,)).architecture == Architecture(hidden=(4,))
    grid = GridSearchCV(AllOptClassifier(positive="bad", **SHORT), {"loss__margin": [0.0, 0.05]}, cv=2)
    assert grid.fit(GERMAN.X, GERMAN.labels).best_estimator_.loss.margin in (0.0, 0.05)
