"""Choosing C1 along a path: what is chosen, what it is chosen on, and what becomes of it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import fewest as fw
from fewest.errors import DataError, FewestWarning, UsageError
from fewest.models.estimators import LabelsError
from fewest.models.training import AllOptClassifier, AllOptSearchCV, Architecture, Optimizer
from fewest.models.training._session import Session
from fewest.models.training._trainer import Trainer
from fewest.models.training.search import C1Path, Stop, StopTally, mark_stops, point

pytest.importorskip("torch")

SHORT: dict[str, Any] = {"warmup_epochs": 12, "epochs": 3, "device": "cpu", "positive": "bad",
                         "architecture": Architecture(knots=5)}  # fmt: skip
LINEAR = AllOptClassifier(
    architecture=Architecture("linear"), warmup_epochs=20, epochs=1, optimizer=Optimizer(batch_size=32)
)
COLUMNS = ["c1", "c2", "accuracy", "roc_auc", "mean_sev", "share_one", "positives", "unreachable", "pareto", "within",
           "chosen"]  # fmt: skip


def table(rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    X = pd.DataFrame({
        "debt": random.normal(size=rows).round(2), "age": random.integers(18, 80, rows),
        "income": random.normal(size=rows).round(2), "job": random.choice(["none", "cook", "clerk"], rows),
    })  # fmt: skip
    risk = X["debt"] - 0.04 * (X["age"] - 50) - X["income"] + (X["job"] == "none") + random.normal(size=rows)
    return X, np.where(risk > 0.6, "bad", "good")


X, Y = table()


def searched(**changes: Any) -> AllOptSearchCV:
    settings = {"c1": (0.5, 2.0, 8.0), "tolerance": 0.03, **changes}
    return AllOptSearchCV(AllOptClassifier(**SHORT), **settings).fit(X, Y)


@pytest.fixture(scope="module")
def search() -> AllOptSearchCV:
    return searched()


def best_by_hand(front: pd.DataFrame, tolerance: float) -> float:
    """C1 that ought to be chosen, read off a front in which every stop is in the race."""
    best = {name: max(front[name]) for name in ("accuracy", "roc_auc")}
    near = [stop for stop in front.itertuples()
            if all(getattr(stop, name) >= best[name] - tolerance - 1e-12 for name in best)]  # fmt: skip
    least = min(stop.mean_sev for stop in near)
    return max((stop.accuracy + stop.roc_auc, -stop.c1) for stop in near if stop.mean_sev == least)[1] * -1


def test_the_chosen_stop_is_the_sparsest_within_the_tolerance(search: AllOptSearchCV) -> None:
    front = search.front_
    assert list(front.columns) == COLUMNS
    assert front["c1"].tolist() == [0.0, 0.5, 2.0, 8.0]
    assert front["chosen"].sum() == 1
    assert not front["unreachable"].any()
    (chosen,) = front["c1"][front["chosen"]]
    assert search.best_c1_ == chosen == best_by_hand(front, 0.03)
    assert front["mean_sev"].iloc[-1] < front["mean_sev"].iloc[0]


def test_another_choice_is_caught(search: AllOptSearchCV) -> None:
    """Negative control of the test above: no other stop passes for the chosen one."""
    others = search.front_["c1"][~search.front_["chosen"]]
    assert best_by_hand(search.front_, 0.03) not in others.tolist()
    assert best_by_hand(search.front_, 1.0) == search.front_.sort_values(["mean_sev", "c1"])["c1"].iloc[0]


def test_references_are_made_once_while_the_model_does_not_change() -> None:
    """A stop is measured with references that the next phase starts from; a phase makes other ones."""
    made = []

    def middle(decision: fw.Decision, rows: pd.DataFrame, labels: Any) -> fw.References:
        made.append(fw.references.near_threshold(decision, rows, labels, width=0.5))
        return made[-1]

    path = C1Path(AllOptClassifier(**SHORT, references=middle), X, Y)
    stops = [path.tally(X, Y) for _ in path.walk([0.5, 8.0], [1.0])]
    assert len(made) == len(stops) + 1  # each branch begins anew where the warm-up ended
    assert made[0].frame.equals(made[1].frame)
    assert not made[1].frame.equals(made[2].frame)
    fresh = path.session.references_under(fw.Decision(path.session.model(), positive="bad"))
    pd.testing.assert_frame_equal(path.session.references_now().frame, fresh.frame)


# c1, roc_auc, accuracy, mean_sev, positives, unreachable -> which is chosen at a tolerance of 0.01
FRONTS = [
    ("the sparsest of those near enough", [(0.80, 0.7, 2.0, 9, 0), (0.79, 0.7, 1.5, 9, 0), (0.77, 0.7, 1.0, 9, 0)], 1),
    ("both measures must be near enough", [(0.80, 0.7, 2.0, 9, 0), (0.80, 0.6, 1.0, 9, 0)], 0),
    ("among equals the better one", [(0.800, 0.7, 1.0, 9, 0), (0.805, 0.7, 1.0, 9, 0)], 1),
    ("among equals in all the first", [(0.8, 0.7, 1.0, 9, 0), (0.8, 0.7, 1.0, 9, 0)], 0),
    ("nobody decided against is no success", [(0.8, 0.7, 2.0, 9, 0), (0.8, 0.7, np.nan, 0, 0)], 0),
    ("cases that cannot be turned neither", [(0.8, 0.7, 2.0, 20, 1), (0.8, 0.7, 1.0, 20, 2)], 0),
    ("what is out of the race sets no mark", [(0.9, 0.7, np.nan, 0, 0), (0.8, 0.7, 2.0, 9, 0)], 1),
    ("where none is near in both, the least lack", [(0.8, 0.60, 1.0, 9, 0), (0.7, 0.68, 1.0, 9, 0),
                                                    (0.75, 0.67, 2.0, 9, 0)], 2),
]  # fmt: skip


@pytest.mark.parametrize(("points", "chosen"), [case[1:] for case in FRONTS], ids=[case[0] for case in FRONTS])
def test_the_choice_by_example(points: list[tuple[float, ...]], chosen: int) -> None:
    front = pd.DataFrame(points, columns=["roc_auc", "accuracy", "mean_sev", "positives", "unreachable"])
    marked = mark_stops(front, ["roc_auc", "accuracy"], tolerance=0.01, max_unreachable=0.05)
    assert np.flatnonzero(marked["chosen"]).tolist() == [chosen]


def test_stops_that_another_matches_and_beats_are_not_on_the_front() -> None:
    front = pd.DataFrame({"roc_auc": [0.8, 0.8, 0.7, 0.7, 0.9], "mean_sev": [2.0, 2.1, 1.0, 1.0, np.nan],
                          "positives": [9, 9, 9, 9, 0], "unreachable": 0})  # fmt: skip
    marked = mark_stops(front, ["roc_auc"], 0.01, 0.05)
    assert marked["pareto"].tolist() == [True, False, True, True, False]


def test_folds_are_put_together_by_their_counts() -> None:
    folds = [StopTally(10, 9, 0.9, 4, 2, 6, 0), StopTally(30, 15, 0.7, 8, 8, 8, 8)]
    told = point(Stop(1.0, 2.0), folds)
    assert told == {"c1": 1.0, "c2": 2.0, "accuracy": 0.6, "roc_auc": pytest.approx(0.8), "mean_sev": 1.4,
                    "share_one": 0.8, "positives": 12, "unreachable": 2}  # fmt: skip


def test_where_nothing_can_be_chosen_the_warm_up_is_kept_with_a_warning() -> None:
    y = np.where(np.arange(len(X)) % 20 == 0, "bad", "good")  # rare and by chance: nobody is decided against
    estimator = AllOptClassifier(**{**SHORT, "warmup_epochs": 1})
    with pytest.warns(FewestWarning) as caught:
        search = AllOptSearchCV(estimator, c1=(1.0,)).fit(X, y)
    said = " ".join(str(one.message) for one in caught)
    assert "the model of the warm-up is kept" in said
    assert "decides no row" in said
    assert (search.best_c1_, search.best_c2_) == (0.0, 0.0)
    assert search.front_["mean_sev"].isna().all()


class Spy:
    """Rows that sessions are given to train on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[pd.Index[Any]] = []
        real = Session.__init__

        def noted(session: Session, estimator: Any, frame: pd.DataFrame, *rest: Any) -> None:
            self.seen.append(frame.index)
            real(session, estimator, frame, *rest)

        monkeypatch.setattr(Session, "__init__", noted)


def test_rows_held_out_never_reach_the_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    split = [(np.arange(200), np.arange(200, 300))]
    searched(validation=split)
    candidates, last = spy.seen
    assert candidates.tolist() == list(range(200))
    assert last.tolist() == list(range(300))  # the spy notices rows held out where they are used: in the last training


def test_labels_held_out_change_measures_and_no_model() -> None:
    split = [(np.arange(200), np.arange(200, 300))]
    flipped = Y.copy()
    flipped[200:] = np.where(Y[200:] == "bad", "good", "bad")
    search = AllOptSearchCV(AllOptClassifier(**SHORT), c1=(0.5, 2.0), validation=split, refit=False)
    one, other = clone(search).fit(X, Y).front_, clone(search).fit(X, flipped).front_
    models = ["c1", "mean_sev", "share_one", "positives", "unreachable"]
    pd.testing.assert_frame_equal(one[models], other[models])
    np.testing.assert_allclose(one["accuracy"] + other["accuracy"], 1.0)


def walked(c1: list[float]) -> AllOptClassifier:
    """The path by hand."""
    model = AllOptClassifier(**SHORT)
    session, history = model._begin(X, Y)
    session.trainer.run("warm-up", model._warm_up)
    for weight in c1:
        model.set_params(c1=weight)._phases(session)
    model._finish(session, history)
    return model


def test_the_model_is_that_of_the_path_on_all_rows() -> None:
    search = searched(tolerance=1.0, measures=["roc_auc"], validation=[(np.arange(200), np.arange(200, 300))])
    assert search.best_c1_ > 0.5
    steps = [weight for weight in (0.5, 2.0, 8.0) if weight <= search.best_c1_]
    path, straight = walked(steps), walked(steps[-1:])
    np.testing.assert_array_equal(search.predict_proba(X), path.predict_proba(X))
    assert np.abs(search.predict_proba(X) - straight.predict_proba(X)).max() > 1e-3  # negative control
    assert len(search.history_) == 12 + 3 * len(steps)
    assert search.best_estimator_.c1 == search.best_c1_


@pytest.mark.slow
def test_the_same_seed_gives_the_same_front_and_model_and_another_another(search: AllOptSearchCV) -> None:
    again, other = searched(), searched(random_state=1, refit=False)
    pd.testing.assert_frame_equal(search.front_, again.front_)
    np.testing.assert_array_equal(search.predict_proba(X), again.predict_proba(X))
    assert not search.front_.equals(other.front_)


def test_a_branch_is_the_same_alone_and_beside_others() -> None:
    both = searched(c1=(2.0, 0.5), c2=(0.0, 5.0), refit=False).front_
    alone = searched(c1=(0.5, 2.0), c2=(5.0,), refit=False).front_
    figures = COLUMNS[:8]
    assert both[["c1", "c2"]].to_numpy().tolist() == [[0, 0], [0.5, 0], [2, 0], [0.5, 5], [2, 5]]
    pd.testing.assert_frame_equal(both[figures].iloc[3:].reset_index(drop=True),
                                  alone[figures].iloc[1:].reset_index(drop=True))  # fmt: skip
    assert searched(c1=(0.5,), refit=False).front_["c2"].tolist() == [0.0, 1.0]  # the estimator's own


@pytest.mark.slow
def test_folds_and_splitters_hold_out_every_row_once() -> None:
    by_number = searched(c1=(2.0,), validation=2, refit=False).front_
    splitter = StratifiedKFold(2, shuffle=True, random_state=0)
    by_splitter = searched(c1=(2.0,), validation=splitter, refit=False).front_
    pd.testing.assert_frame_equal(by_number, by_splitter)
    one_fold = searched(c1=(2.0,), refit=False).front_
    assert by_number["positives"].iloc[0] > 2 * one_fold["positives"].iloc[0]


def test_a_fitted_search_is_a_classifier_explained_by_structure(search: AllOptSearchCV) -> None:
    assert search.classes_.tolist() == ["bad", "good"]
    assert search.positive_ == "bad"
    assert search.score(X, Y) > 0.6
    decision = fw.Decision(search, positive="bad")
    out = fw.Explainer(decision, search.references_).explain(X)
    assert out.strategies[1] == "additive"
    copied = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(copied.predict(X), search.predict(X))


@pytest.mark.slow
def test_scikit_learns_own_search_is_explained_by_structure_too() -> None:
    grid = GridSearchCV(AllOptClassifier(**SHORT), {"c1": [0.5, 4.0]}, cv=2, scoring="roc_auc").fit(X, Y)
    decision = fw.Decision(grid, positive="bad")
    out = fw.Explainer(decision, grid.best_estimator_.references_).explain(X)
    assert out.strategies[1] == "additive"
    assert grid.best_params_["c1"] in (0.5, 4.0)


def test_levels_that_only_rows_held_out_have_are_no_error() -> None:
    strange = X.assign(job=np.where(np.arange(len(X)) == 299, "pilot", X["job"]))
    split = [(np.arange(200), np.arange(200, 300))]
    front = AllOptSearchCV(AllOptClassifier(**SHORT), c1=(1.0,), validation=split, refit=False).fit(strange, Y).front_
    assert front["positives"].min() > 0


def test_progress_is_told_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    searched(c1=(2.0,), verbose=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line.split("  ")[0] for line in printed.err.splitlines()] == ["c1 0", "c1 2", "training on all rows"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"c1": ()}, "c1 has no values"),
        ({"c2": ()}, "c2 has no values"),
        ({"c1": (0.1, -1.0)}, "c1 is -1"),
        ({"c2": (np.nan,)}, "c2 is nan"),
        ({"tolerance": -0.1}, "tolerance is -0.1"),
        ({"max_unreachable": 2.0}, "max_unreachable is 2"),
        ({"measures": ("f1",)}, "choose from roc_auc, accuracy"),
        ({"measures": ()}, "choose from roc_auc, accuracy"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_name(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        searched(**changes)


def test_other_estimators_are_refused() -> None:
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(UsageError, match="pass an AllOptClassifier"):
        AllOptSearchCV(LogisticRegression()).fit(X, Y)  # type: ignore[arg-type]


@pytest.mark.parametrize("validation", [2.0, 1, "half", -0.5])
def test_validation_that_cannot_be_done_is_refused(validation: Any) -> None:
    with pytest.raises(LabelsError, match=r"hold out 0\.2"):
        searched(validation=validation)


def test_rows_that_cannot_be_used_are_refused() -> None:
    search = AllOptSearchCV(AllOptClassifier(**SHORT), c1=(1.0,))
    with pytest.raises(LabelsError, match="one class only"):
        search.fit(X, np.full(len(X), "bad"))
    with pytest.raises(DataError, match='column "debt": the value is missing'):
        search.fit(X.assign(debt=X["debt"].where(X.index != 3)), Y)
    one_sided = clone(search).set_params(validation=[(np.arange(200), np.flatnonzero(Y == "bad")[-5:])])
    with pytest.raises(DataError, match="of one class only"):
        one_sided.fit(X, Y)


def test_a_front_without_a_model_says_so() -> None:
    search = searched(c1=(2.0,), refit=False)
    assert search.best_c1_ in (0.0, 2.0)
    with pytest.raises(UsageError, match="refit=True"):
        search.predict(X)


@pytest.mark.slow
# Some checks fit tables of a few rows on which nothing is decided positive: that warning is what they see.
@pytest.mark.filterwarnings("ignore::fewest.errors.FewestWarning")
@parametrize_with_checks([AllOptSearchCV(LINEAR, c1=(0.5,), validation=0.5)])
def test_scikit_learns_checks_pass(estimator: Any, check: Any) -> None:
    assert check(estimator) is None


class Coin:
    """A model that gives everybody the same chance, or knows the labels by heart."""

    def __init__(self, chance: float = 0.4) -> None:
        self.chance = chance

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"chance": self.chance}

    def set_params(self, **changes: Any) -> Coin:
        self.chance = changes["chance"]
        return self

    def fit(self, X: Any, y: Any) -> Coin:
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.tile([1 - self.chance, self.chance], (len(X), 1))


def test_a_baseline_is_what_the_tolerance_is_counted_from() -> None:
    """A coin is easily reached by every stop, so that the sparsest of all is chosen; the best stop is not."""
    free = searched(baseline=Coin(), tolerance=0.0, refit=False)
    assert free.baseline_ is not None
    assert free.baseline_["roc_auc"] == 0.5
    reached = free.front_[(free.front_["roc_auc"] >= 0.5) & (free.front_["accuracy"] >= free.baseline_["accuracy"])]
    assert free.front_["mean_sev"][free.front_["chosen"]].iloc[0] == reached["mean_sev"].min()
    assert free.front_["within"].sum() > searched(tolerance=0.0, refit=False).front_["within"].sum()


def test_the_start_of_the_path_can_be_the_baseline() -> None:
    found = searched(baseline="start", refit=False)
    assert found.baseline_ == {name: found.front_[name].iloc[0] for name in ("roc_auc", "accuracy")}
    with pytest.raises(UsageError, match="baseline is 'end'"):
        searched(baseline="end")


def test_the_start_is_kept_as_a_model(search: AllOptSearchCV) -> None:
    found = search
    alone = clone(found.estimator).set_params(epochs=0).fit(X, Y)
    assert np.array_equal(found.start_.predict_proba(alone._read_rows(X)), alone.predict_proba(X))


def test_sev_that_need_not_be_exact_counts_one_or_two(search: AllOptSearchCV) -> None:
    assert search.exact
    exact, rough = search.front_, searched(exact=False, refit=False).front_
    assert np.allclose(exact["share_one"], rough["share_one"])
    assert np.allclose(rough["mean_sev"], 2 - rough["share_one"])
    assert (rough["mean_sev"] <= exact["mean_sev"] + 1e-12).all()


@pytest.mark.slow
def test_a_model_that_went_astray_on_all_rows_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched(tolerance=1.0, measures=["roc_auc"])
    assert found.best_c1_ > 0
    monkeypatch.setattr(Trainer, "accuracy", lambda trainer: -1.0)
    back = searched(tolerance=1.0, measures=["roc_auc"])
    assert back.best_c1_ == 0
    start = back.start_.predict_proba(back.best_estimator_._read_rows(X))
    assert np.array_equal(back.predict_proba(X), start)
