"""One training, many models: All-Opt's terms weigh more from stop to stop, and each phase goes on from the last.

Kept is the sparsest of the stops that are nearly as good as the best.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError, FewestWarning
from fewest.explainer import Explainer
from fewest.models.training.all_opt import AllOptClassifier

SAME = 1e-12


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
            session.run("warm-up", estimator._warm_up)
            yield WARM_UP
            values, order = session.trainer.snapshot(), session.trainer.source.get_state()
            for reference_weight in c2:
                # Every branch is the one that would be walked alone: same start, same order of rows.
                session.trainer.restore(values)
                session.trainer.source.set_state(order)
                session.references = None
                for weight in c1:
                    estimator.set_params(c1=weight, c2=reference_weight)
                    estimator._sev_phase(session, weight)
                    yield Stop(float(weight), float(reference_weight))

    def tally(self, X: Any, y: Any, exact: bool = True) -> StopTally:
        """Figures of the model as it is now on rows held out; its references are made of the training rows.

        Where they need not be exact, rows that no single feature turns count as if two did.
        """
        from sklearn.metrics import roc_auc_score

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
            cases, refs = frame[verdicts.positive], session.references_under(decision, quiet=True)
            explainer = Explainer(decision, refs, unseen="allow")
            sev = explainer.explain(cases).sev() if exact else session.one_or_two(cases, refs)
        return StopTally(
            len(frame), int((verdicts.positive == against).sum()), float(roc_auc_score(against, verdicts.score)),
            positives, len(sev), int(sev.sum()), int((sev == 1).sum()),
        )  # fmt: skip

    def accuracy(self) -> float:
        """Accuracy of the model as it is now on the rows it is trained on."""
        return self.session.trainer.accuracy()

    def finish(self) -> AllOptClassifier:
        """The estimator, fitted as the session is now."""
        self.estimator._finish(self.session, self.history)
        return self.estimator


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
        lack = _lack(points, measures, usable, baseline)
        table["within"] = usable & (lack <= tolerance + SAME)
        near = np.flatnonzero(table["within"])
        chosen = _sparsest(points, measures, near) if len(near) else int(lack.where(usable, np.inf).to_numpy().argmin())
    else:
        warnings.warn(
            "at no value of c1 are rows held out decided positive and can be turned; the model of the warm-up is kept",
            FewestWarning,
            stacklevel=3,
        )
    table["chosen"] = np.arange(len(table)) == chosen
    return table


def _lack(
    points: pd.DataFrame, measures: Sequence[str], usable: pd.Series[bool], baseline: Mapping[str, float] | None
) -> pd.Series[float]:
    """How much each stop is behind the best, in the measure where that is most."""
    values = points[list(measures)]
    best = values[usable].max() if baseline is None else pd.Series({name: baseline[name] for name in measures})
    return (best - values).max(axis=1)


def _sparsest(points: pd.DataFrame, measures: Sequence[str], rows: npt.NDArray[np.intp]) -> int:
    left = points.iloc[rows]
    order = np.lexsort((-left[list(measures)].sum(axis=1).round(12), left["mean_sev"].round(12)))
    return int(rows[order[0]])


def _undominated(points: pd.DataFrame, measures: Sequence[str], usable: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Stops in the race that no other matches in everything and beats in something."""
    values = np.column_stack([points[list(measures)].to_numpy(dtype=float), -points["mean_sev"].to_numpy(dtype=float)])
    out = usable.copy()
    for row in np.flatnonzero(usable):
        matched = (values >= values[row]).all(axis=1) & (values > values[row]).any(axis=1)
        out[row] = not (matched & usable).any()
    return out
