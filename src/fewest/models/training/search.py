"""Choosing how much sparsity may weigh: along one path of rising C1, the sparsest model that is still good enough."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import check_is_fitted

from fewest.errors import UsageError
from fewest.models.estimators import LabelsError, TableClassifier
from fewest.models.training._path import WARM_UP, C1Path, Stop, StopTally, in_words, mark_stops, point
from fewest.models.training.all_opt import AllOptClassifier
from fewest.models.training.settings import check_settings

MEASURES = ("roc_auc", "accuracy")


class AllOptSearchCV(TableClassifier):
    """All-Opt with C1 chosen on rows held out. Needs ``torch``.

    One model is trained by cross-entropy alone, then on with C1 at its first value, then at its second, and so on: a
    whole front for one warm-up. Every stop is measured on the rows held out, SEV exactly. Chosen is the stop with the
    least mean SEV whose measures are all within ``tolerance`` of the best; then its path is walked again on all rows.

    Parameters
    ----------
    estimator : AllOptClassifier
        Everything but ``c1`` is taken from it; ``epochs`` is the length of each phase. Set what is in its groups by
        three names: ``set_params(estimator__loss__margin=0.1)``.
    c1 : sequence of float
        Weights of the SEV loss, taken in rising order. The warm-up itself is a stop too, with ``c1`` zero.
    c2 : sequence of float, optional
        Weights of the loss of positive references, one branch of the path for each. Default: the estimator's.
    tolerance : float
        How much worse than the best the chosen stop may be, in each measure.
    measures : sequence of str
        ``roc_auc``, ``accuracy``, or both.
    max_unreachable : float
        A stop is not chosen where more than this share of the rows decided positive have no SEV.
    validation : float, int or splitter
        Share of the rows held out, number of folds, or any splitter of scikit-learn; figures of several folds are
        put together.
    baseline : classifier or "start", optional
        What the tolerance is counted from, instead of the best stop: an unfitted model of raw rows, which is fitted on
        the same rows as the stops, or the path's own start.
    exact : bool
        Measure SEV exactly at every stop. Otherwise ``mean_sev`` counts two for every row that no single feature turns,
        which is at most its mean SEV, and much faster where many features are needed.
    refit : bool
        Walk the path to the chosen stop on all rows. Without it there is a front, but no model.
    random_state : int
        Decides which rows are held out.
    verbose : bool
        Report every stop on stderr.

    Attributes
    ----------
    best_estimator_ : AllOptClassifier
        Fitted, ``c1`` and ``c2`` those of the last phase. Fitting a clone of it skips the phases before.
    best_c1_, best_c2_ : float
        The chosen stop; both zero where that is the warm-up.
    start_ : Pipeline
        Where the path that was walked on all rows began: the model after the warm-up.
    baseline_ : dict or None
        ``accuracy`` and ``roc_auc`` of the baseline on the rows held out.
    front_ : DataFrame
        A row per stop: ``c1``, ``c2``, ``accuracy``, ``roc_auc``, ``mean_sev``, ``share_one`` on the rows held out,
        how many of them are decided positive (``positives``) and have no SEV (``unreachable``), whether no other stop
        is at least as good in all measures and in SEV (``pareto``), is near enough to the best (``within``), and is
        ``chosen``.
    references_, positive_, pipeline_, history_
        Those of the best estimator.

    Examples
    --------
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9] * 20, "age": [30, 40, 50] * 40})
    >>> quick = AllOptClassifier(warmup_epochs=5, epochs=1)
    >>> search = AllOptSearchCV(quick, c1=(0.5, 2.0)).fit(X, [0, 0, 0, 1, 1, 1] * 20)
    >>> search.front_["c1"].tolist(), int(search.front_["chosen"].sum())
    ([0.0, 0.5, 2.0], 1)
    """

    best_estimator_: AllOptClassifier
    best_c1_: float
    best_c2_: float
    start_: Any
    baseline_: dict[str, float] | None
    front_: pd.DataFrame
    pipeline_ = property(attrgetter("best_estimator_.pipeline_"), doc="Encoder and final model of the best estimator.")
    references_ = property(attrgetter("best_estimator_.references_"), doc="References of the best estimator.")
    positive_ = property(attrgetter("best_estimator_.positive_"), doc="The class whose decisions are explained.")
    history_ = property(attrgetter("best_estimator_.history_"), doc="The best estimator's training, epoch by epoch.")

    decides_by = "pipeline_"  # the attribute that scores alone: its inside may be read

    def __init__(
        self,
        estimator: AllOptClassifier,
        c1: Sequence[float] = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
        c2: Sequence[float] | None = None,
        tolerance: float = 0.01,
        measures: Sequence[str] = MEASURES,
        max_unreachable: float = 0.05,
        validation: Any = 0.2,
        baseline: Any = None,
        exact: bool = True,
        refit: bool = True,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.c1 = c1
        self.c2 = c2
        self.tolerance = tolerance
        self.measures = measures
        self.max_unreachable = max_unreachable
        self.validation = validation
        self.baseline = baseline
        self.exact = exact
        self.refit = refit
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Hold rows out, walk, choose, and walk again on all rows; arguments as for `AllOptClassifier`."""
        c1, c2 = self._weights()
        _, second = self._read_training(X, y)
        X, labels = indexable(X, self.classes_[second.astype(np.intp)])
        splits = self._splits(labels)
        walks = [self._measure(X, labels, *parts, c1, c2) for parts in splits]
        stops = list(walks[0])
        points = pd.DataFrame([point(stop, [walk[stop] for walk in walks]) for stop in stops])
        self.baseline_ = self._baseline(X, labels, splits, points)
        self.front_ = mark_stops(points, self.measures, self.tolerance, self.max_unreachable, self.baseline_)
        chosen = stops[int(np.flatnonzero(self.front_["chosen"])[0])]
        self.best_c1_, self.best_c2_ = chosen
        if self.refit:
            self._tell("training on all rows")
            self.best_estimator_ = self._walk_to(chosen, X, labels, c1)
        return self

    def _weights(self) -> tuple[list[float], list[float]]:
        """The path's weights in order, after everything that can be wrong with the parameters has been looked at."""
        if not isinstance(self.estimator, AllOptClassifier):
            raise UsageError(f"the estimator is a {type(self.estimator).__name__}", do="pass an AllOptClassifier")
        if not len(self.measures) or not set(self.measures) <= set(MEASURES):
            raise UsageError(f"measures is {self.measures!r}", do=f"choose from {', '.join(MEASURES)}")
        for name in ("tolerance", "max_unreachable"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} is {getattr(self, name)!r}", do="choose a share from 0 to 1, such as 0.01")
        if isinstance(self.baseline, str) and self.baseline != "start":
            raise UsageError(f"baseline is {self.baseline!r}", do='use "start", or pass an unfitted classifier')
        c1, c2 = list(self.c1), [self.estimator.c2] if self.c2 is None else list(self.c2)
        if not c1 or not c2:
            raise UsageError(f"{'c1' if not c1 else 'c2'} has no values", do="give some, such as c1=(0.1, 1.0)")
        for name, values in (("c1", c1), ("c2", c2)):
            for value in values:
                check_settings(clone(self.estimator).set_params(**{name: value}))
        return sorted({float(value) for value in c1 if value > 0}), sorted({float(value) for value in c2})

    def _splits(self, labels: npt.NDArray[Any]) -> list[tuple[Any, Any]]:
        """Numbers of the rows to train on and of those held out."""
        wanted = self.validation
        try:
            if isinstance(wanted, float):
                splitter = StratifiedShuffleSplit(1, test_size=wanted, random_state=self.random_state)
            elif isinstance(wanted, int):
                splitter = StratifiedKFold(wanted, shuffle=True, random_state=self.random_state)
            else:
                splitter = check_cv(wanted, labels, classifier=True)
            return list(splitter.split(np.zeros((len(labels), 1)), labels))
        except (ValueError, TypeError) as error:
            # One row, one row of a class, a share of 2: scikit-learn's own words say which.
            raise LabelsError(
                f"validation={wanted!r} cannot be done: {error}", do="hold out 0.2, or 5 folds"
            ) from error

    def _baseline(
        self, X: Any, labels: npt.NDArray[Any], splits: list[tuple[Any, Any]], points: pd.DataFrame
    ) -> dict[str, float] | None:
        """Measures of the baseline on the rows held out, over all folds."""
        if self.baseline is None:
            return None
        if isinstance(self.baseline, str):
            return {name: float(points[name].iloc[0]) for name in MEASURES}
        right, rows, areas = 0, 0, []
        for used, held in splits:
            model = clone(self.baseline).fit(_safe_indexing(X, used), labels[used])
            chances = model.predict_proba(_safe_indexing(X, held))[:, 1]
            second = labels[held] == self.classes_[1]
            right, rows = right + int(((chances >= 0.5) == second).sum()), rows + len(held)
            areas.append(float(roc_auc_score(second, chances)))
        return {"accuracy": right / rows, "roc_auc": float(np.mean(areas))}

    def _measure(
        self, X: Any, labels: npt.NDArray[Any], used: Any, held: Any, c1: list[float], c2: list[float]
    ) -> dict[Stop, StopTally]:
        """Figures of every stop of a path through some rows, on the others."""
        path = C1Path(clone(self.estimator), _safe_indexing(X, used), labels[used])
        cases = _safe_indexing(X, held)
        out = {}
        for stop in path.walk(c1, c2):
            out[stop] = path.tally(cases, labels[held], self.exact)
            self._tell(in_words(point(stop, [out[stop]])))
        return out

    def _walk_to(self, chosen: Stop, X: Any, labels: npt.NDArray[Any], c1: list[float]) -> AllOptClassifier:
        """The path's model at a stop, of all rows."""
        path = C1Path(clone(self.estimator), X, labels)
        steps = [weight for weight in c1 if weight <= chosen.c1]
        kept: list[tuple[Stop, Any]] = []
        for stop in path.walk(steps, [chosen.c2] if steps else []):
            if stop == WARM_UP:
                self.start_ = path.session.model()
            kept.append((stop, path.session.trainer.snapshot()))
        # A model that knows its own rows less well than it knew those held out went astray: the stop before it did not.
        while len(kept) > 1 and self._astray(path, *kept[-1]):
            kept.pop()
            chosen = kept[-1][0]
        path.session.trainer.restore(kept[-1][1])
        self.best_c1_, self.best_c2_ = chosen
        path.estimator.set_params(c1=chosen.c1, c2=chosen.c2)
        return path.finish()

    def _astray(self, path: C1Path, stop: Stop, values: Any) -> bool:
        path.session.trainer.restore(values)
        expected = self.front_[(self.front_["c1"] == stop.c1) & (self.front_["c2"] == stop.c2)]["accuracy"].iloc[0]
        return bool(path.accuracy() < expected - self.tolerance)

    def _tell(self, line: str) -> None:
        if self.verbose:
            print(line, file=sys.stderr, flush=True)

    @property
    def _missing_numbers(self) -> bool:  # type: ignore[override]
        return bool(self.estimator._missing_numbers)

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Chances of both classes (n, 2)."""
        return self._model().predict_proba(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Label of each row (n,)."""
        return self._model().predict(X)

    def _model(self) -> AllOptClassifier:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise UsageError("the search has a front but no model", do="fit it with refit=True")
        return self.best_estimator_
