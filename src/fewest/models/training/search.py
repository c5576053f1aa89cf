"""Choosing how much sparsity may weigh: along one path of rising C1, the sparsest model that is still good enough.

One training, many models: All-Opt's terms weigh more from stop to stop, and each phase goes on from the last.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import check_is_fitted

from fewest.errors import DataError, FewestWarning, UsageError
from fewest.models.estimators import LabelsError, TableClassifier
from fewest.models.training.classifiers import AllOptClassifier
from fewest.models.training.settings import check_settings

MEASURES = ("roc_auc", "accuracy")
SAME = 1e-12


@dataclass(eq=False, repr=False)
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

    estimator: AllOptClassifier
    c1: Sequence[float] = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
    c2: Sequence[float] | None = None
    tolerance: float = 0.01
    measures: Sequence[str] = MEASURES
    max_unreachable: float = 0.05
    validation: Any = 0.2
    baseline: Any = None
    exact: bool = True
    refit: bool = True
    random_state: int = 0
    verbose: bool = False

    best_estimator_: AllOptClassifier = field(init=False)
    best_c1_: float = field(init=False)
    best_c2_: float = field(init=False)
    start_: Any = field(init=False)
    baseline_: dict[str, float] | None = field(init=False)
    front_: pd.DataFrame = field(init=False)
    pipeline_ = property(attrgetter("best_estimator_.pipeline_"), doc="Encoder and final model of the best estimator.")
    references_ = property(attrgetter("best_estimator_.references_"), doc="References of the best estimator.")
    positive_ = property(attrgetter("best_estimator_.positive_"), doc="The class whose decisions are explained.")
    history_ = property(attrgetter("best_estimator_.history_"), doc="The best estimator's training, epoch by epoch.")

    decides_by = "pipeline_"  # the attribute that scores alone: its inside may be read

    def fit(self, X: Any, y: Any) -> Self:
        """Hold rows out, walk, choose, and walk again on all rows; arguments as for `AllOptClassifier`."""
        c1, c2 = self._weights()
        _, second = self._read_training(X, y)
        X, labels = indexable(X, self.classes_[second.astype(np.intp)])
        splits = held_out(self.validation, labels, self.random_state)
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
        path.estimator._finish(path.session, path.history)
        return path.estimator

    def _astray(self, path: C1Path, stop: Stop, values: Any) -> bool:
        path.session.trainer.restore(values)
        expected = self.front_[(self.front_["c1"] == stop.c1) & (self.front_["c2"] == stop.c2)]["accuracy"].iloc[0]
        return bool(path.session.trainer.accuracy() < expected - self.tolerance)

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


def held_out(wanted: Any, labels: npt.NDArray[Any], random_state: int = 0) -> list[tuple[Any, Any]]:
    """Numbers of the rows to train on and of those held out: of a share of them, of folds, or of a splitter."""
    try:
        if isinstance(wanted, float):
            splitter = StratifiedShuffleSplit(1, test_size=wanted, random_state=random_state)
        elif isinstance(wanted, int):
            splitter = StratifiedKFold(wanted, shuffle=True, random_state=random_state)
        else:
            splitter = check_cv(wanted, labels, classifier=True)
        return list(splitter.split(np.zeros((len(labels), 1)), labels))
    except (ValueError, TypeError) as error:
        # One row, one row of a class, a share of 2: scikit-learn's own words say which.
        raise LabelsError(f"validation={wanted!r} cannot be done: {error}", do="hold out 0.2, or 5 folds") from error


class Stop(NamedTuple):
    """Where on a path a model was taken: the weights of the last phase, zero for the warm-up."""

    c1: float
    c2: float


WARM_UP = Stop(0.0, 0.0)


class StopTally(NamedTuple):
    """What a model does on rows that it was not trained on, in counts that can be added up."""

    rows: int
    right: int  # decided as they are labelled
    roc_auc: float
    positives: int
    explained: int  # of the positives, those that have an exact SEV
    features: int  # sum of all SEV
    ones: int  # how many SEV are 1


class C1Path:
    """A session that is led from stop to stop; the estimator is the path's own, and its weights follow the stops."""

    def __init__(self, estimator: AllOptClassifier, X: Any, y: Any) -> None:
        self.estimator = estimator
        self.session, self.history = estimator._begin(X, y)

    def walk(self, c1: Sequence[float], c2: Sequence[float]) -> Iterator[Stop]:
        """Warm up, then for each c2 go from there through all c1; the model can be looked at after each stop."""
        estimator, session = self.estimator, self.session
        epochs = estimator._warm_up + estimator.epochs * len(c1) * len(c2)
        with self.history.shown(epochs, estimator.verbose):
            session.trainer.run("warm-up", estimator._warm_up)
            yield WARM_UP
            values, order = session.trainer.snapshot(), session.trainer.source.get_state()
            for reference_weight in c2:
                # Every branch is the one that would be walked alone: same start, same order of rows.
                session.trainer.restore(values)
                session.trainer.source.set_state(order)
                session.references = None
                for weight in c1:
                    estimator.set_params(c1=weight, c2=reference_weight)
                    estimator._phases(session)
                    yield Stop(float(weight), float(reference_weight))

    def tally(self, X: Any, y: Any, exact: bool = True) -> StopTally:
        """Figures of the model as it is now on rows held out; its references are made of the training rows.

        Where they need not be exact, rows that no single feature turns count as if two did.
        """
        session = self.session
        decision = session.decision()
        frame = self.estimator._read_rows(X)
        against = np.asarray(y) == session.positive
        if against.all() or not against.any():
            raise DataError("the rows held out are of one class only", do="choose another `validation`")
        verdicts = decision.verdicts(frame)
        positives = int(verdicts.positive.sum())
        sev: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        if positives:
            # Of all these models one is kept, and that one's references are made, and warned of, again.
            cases, refs = frame[verdicts.positive], session.references_now()
            sev = session.sev(decision, refs, cases) if exact else session.one_or_two(cases, refs)
        return StopTally(
            len(frame), int((verdicts.positive == against).sum()), float(roc_auc_score(against, verdicts.score)),
            positives, len(sev), int(sev.sum()), int((sev == 1).sum()),
        )  # fmt: skip


def point(stop: Stop, tallies: Sequence[StopTally]) -> dict[str, Any]:
    """Figures of a stop, over all folds."""
    rows, right, _, positives, explained, features, ones = (sum(column) for column in zip(*tallies, strict=True))
    return {
        **stop._asdict(),
        "accuracy": right / rows,
        "roc_auc": float(np.mean([tally.roc_auc for tally in tallies])),
        "mean_sev": features / explained if explained else np.nan,
        "share_one": ones / explained if explained else np.nan,
        "positives": positives,
        "unreachable": positives - explained,
    }


def in_words(figures: dict[str, Any]) -> str:
    """A stop in one line."""
    sev = "-" if np.isnan(figures["mean_sev"]) else f"{figures['mean_sev']:.2f}"
    return (
        f"c1 {figures['c1']:g}  accuracy {figures['accuracy']:.3f}  AUC {figures['roc_auc']:.3f}  "
        f"mean SEV {sev} over {figures['positives'] - figures['unreachable']:,} rows"
    )


def mark_stops(
    points: pd.DataFrame,
    measures: Sequence[str],
    tolerance: float,
    max_unreachable: float,
    baseline: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """The same stops, with ``pareto``, ``within`` and ``chosen``; see `AllOptSearchCV.front_`.

    Stops without rows decided positive, or with too many that have no SEV, are out of the race. Among those within
    the tolerance of the best that are left, the least mean SEV is taken, then the best measures, then the first. Where
    none is within in all measures, the one that lacks least is taken. The best is the baseline where one is given.
    """
    usable = points["mean_sev"].notna() & (points["unreachable"] <= max_unreachable * points["positives"])
    table = points.assign(pareto=_undominated(points, measures, usable.to_numpy(dtype=bool)), within=False)
    chosen = 0
    if usable.any():
        values = points[list(measures)]
        best = values[usable].max() if baseline is None else pd.Series({name: baseline[name] for name in measures})
        lack = (best - values).max(axis=1)  # in the measure where that is most
        table["within"] = usable & (lack <= tolerance + SAME)
        near = points[table["within"]]
        order = np.lexsort((-near[list(measures)].sum(axis=1).round(12), near["mean_sev"].round(12)))
        chosen = int(near.index[order[0]]) if len(near) else int(lack.where(usable, np.inf).to_numpy().argmin())
    else:
        warnings.warn(
            "at no value of c1 are rows held out decided positive and can be turned; the model of the warm-up is kept",
            FewestWarning,
            stacklevel=3,
        )
    table["chosen"] = np.arange(len(table)) == chosen
    return table


def _undominated(points: pd.DataFrame, measures: Sequence[str], usable: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Stops in the race that no other matches in everything and beats in something."""
    values = np.column_stack([points[list(measures)].to_numpy(dtype=float), -points["mean_sev"].to_numpy(dtype=float)])
    out = usable.copy()
    for row in np.flatnonzero(usable):
        matched = (values >= values[row]).all(axis=1) & (values > values[row]).any(axis=1)
        out[row] = not (matched & usable).any()
    return out
