"""Two models on the same rows: what sparser explanations cost, and whose decision changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.metrics import roc_auc_score

from fewest import references as sources
from fewest.credibility import Credibility, mixture
from fewest.decision import Decision, Verdicts
from fewest.errors import DataError, UsageError
from fewest.explainer import Explainer
from fewest.references import References
from fewest.references.training_rows import read_labels
from fewest.results.explanation import STATUSES, Status
from fewest.results.explanations import Explanations
from fewest.results.metrics import closeness, likelihood, sparsity
from fewest.tables.saved_schema import plain

NAMES = ("before", "after")
EXPLAINED = STATUSES.index(Status.EXPLAINED)
SAID = {
    "accuracy": "accuracy", "roc_auc": "AUC", "positives": "refused", "mean_sev": "mean SEV",
    "share_one": "share with SEV 1", "unreachable": "cannot be turned", "l_inf": "median largest change (SD)",
    "log_likelihood": "mean log-likelihood",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Comparison:
    """Figures of two models, each explained on the rows that it decides positive itself.

    Attributes
    ----------
    table : DataFrame
        A row per figure, with ``before``, ``after`` and ``difference``: ``accuracy``, ``roc_auc``, ``positives``,
        ``mean_sev``, ``share_one``, ``unreachable`` (positive rows that have no SEV), ``l_inf`` (median over the
        explained rows, in standard deviations) and ``log_likelihood`` (mean, where training rows are known). NaN where
        there is no such figure.
    changed : DataFrame
        The rows decided otherwise, by their index: ``before`` and ``after`` (the outcomes), both scores, and both SEV,
        missing where a row is not decided positive or cannot be turned.
    rows : int
        Rows compared.
    """

    table: pd.DataFrame
    changed: pd.DataFrame
    rows: int

    def __str__(self) -> str:
        shown = self.table.dropna(how="all").rename(index=SAID)
        width = max(map(len, shown.index))
        lines = [f"{'':<{width}}  {'before':>9}  {'after':>9}  {'change':>9}"]
        for name, before, after, change in shown.itertuples():
            lines.append(f"{name:<{width}}  {_figure(before):>9}  {_figure(after):>9}  {_figure(change, '+'):>9}")
        share = len(self.changed) / self.rows
        return "\n".join([*lines, f"{len(self.changed):,} of {self.rows:,} decisions changed ({share:.1%})"])

    def to_dict(self) -> dict[str, Any]:
        """Plain values: None where there is no figure."""
        changed = [
            {"row": label, **record}
            for label, record in zip(self.changed.index, self.changed.to_dict("records"), strict=True)
        ]
        figures = self.table.to_dict("index")
        return {"rows": self.rows, "figures": plain(figures), "changed": plain(changed)}


class Side(NamedTuple):
    """One of the two models on the rows compared."""

    decision: Decision
    verdicts: Verdicts
    out: Explanations | None  # of the rows decided positive; None where there are none


def compare(
    before: Any,
    after: Any,
    X: Any,
    y: Any,
    references_before: References | None = None,
    references_after: References | None = None,
    X_train: Any = None,
    y_train: Any = None,
    positive: Any = None,
) -> Comparison:
    """Hold two models against each other on the same rows.

    Parameters
    ----------
    before, after : classifiers or Decisions
    X, y : table and labels
        Rows that neither was trained on.
    references_before, references_after : References, optional
        What decisions are compared with. Default: the ``references_`` of the model; the mean of the accepted training
        rows for one that has none.
    X_train, y_train : table and labels, optional
        Training rows. With them explanations are held against the density of the accepted ones, the same for both.
    positive : label, optional
        The class being explained. Default: the ``positive_`` of a model, else the second of two.

    Examples
    --------
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> strict = Decision(lambda rows: (rows["debt"].to_numpy() > 1).astype(float), positive=1)
    >>> kind = Decision(lambda rows: ((rows["debt"] > 5) & (rows["age"] > 0)).to_numpy(dtype=float), positive=1)
    >>> refs = [sources.supplied(decision, {"debt": [1], "age": [40]}, X=X) for decision in (strict, kind)]
    >>> print(compare(strict, kind, X, y, *refs))
                                   before      after     change
    accuracy                         0.75          1      +0.25
    AUC                              0.75          1      +0.25
    refused                             3          2         -1
    mean SEV                            1          1         +0
    share with SEV 1                    1          1         +0
    cannot be turned                    0          0         +0
    median largest change (SD)       1.98      2.121    +0.1414
    1 of 4 decisions changed (25.0%)
    """
    if (X_train is None) != (y_train is None):
        raise UsageError("training rows and their labels come together", do="pass X_train and y_train, or neither")
    decisions = _decisions(before, after, positive)
    first, second = (
        given or _references(decision, name, X_train, y_train)
        for name, decision, given in zip(NAMES, decisions, (references_before, references_after), strict=True)
    )
    sides = _side(decisions[0], first, X), _side(decisions[1], second, X)
    frame = first.schema.conform(X, unseen="allow")
    truth = read_labels(decisions[0], y, frame).refused
    density = None if X_train is None else mixture(decisions[0], X_train, y_train, schema=first.schema)
    table = pd.DataFrame({name: _figures(side, truth, density) for name, side in zip(NAMES, sides, strict=True)})
    table["difference"] = table["after"] - table["before"]
    return Comparison(table, _changed(*sides, frame.index), len(truth))


def _decisions(before: Any, after: Any, positive: Any) -> tuple[Decision, Decision]:
    """Both models as decisions about the same class."""
    known = [model.positive if isinstance(model, Decision) else getattr(model, "positive_", None)
             for model in (before, after)]  # fmt: skip
    given = [label for label in (positive, *known) if label is not None]
    if any(label != given[0] for label in given):
        raise UsageError(
            f"the models are not about the same class: {', '.join(map(str, given))}",
            do="pass models, Decisions and positive= that are",
        )
    wanted = given[0] if given else None
    first, second = (m if isinstance(m, Decision) else Decision(m, positive=wanted) for m in (before, after))
    if first.positive is None or first.positive != second.positive:
        raise UsageError("the class being explained is not known", do="pass Decisions with positive=")
    return first, second


def _references(decision: Decision, name: str, X: Any, y: Any) -> References:
    own = getattr(decision.model, "references_", None)
    if isinstance(own, References):
        return own
    if X is None:
        raise UsageError(f"the model {name!r} has no references_", do=f"pass references_{name}, or X_train and y_train")
    # Where the mean itself is decided positive, the rows that cannot be turned are counted instead.
    return sources.single(decision, X, y, on_positive="allow")


def _side(decision: Decision, refs: References, X: Any) -> Side:
    frame = refs.schema.conform(X, unseen="allow")
    if len(frame) == 0:
        raise DataError("there are no rows to compare the models on", do="pass at least one")
    verdicts = decision.verdicts(frame)
    if not verdicts.positive.any():
        return Side(decision, verdicts, None)
    return Side(decision, verdicts, Explainer(decision, refs, unseen="allow").explain(frame[verdicts.positive]))


def _figures(side: Side, truth: npt.NDArray[np.bool_], density: Credibility | None) -> dict[str, float]:
    score, positive = side.verdicts
    both = truth.any() and not truth.all()
    figures = dict.fromkeys(SAID, np.nan) | {
        "accuracy": float((positive == truth).mean()),
        "roc_auc": float(roc_auc_score(truth, score)) if both else np.nan,
        "positives": float(positive.sum()),
        "unreachable": 0.0,
    }
    if side.out is None:
        return figures
    sparse = sparsity(side.out)
    return figures | {
        "mean_sev": sparse.mean_sev,
        "share_one": sparse.share_one,
        "unreachable": float(len(side.out) - sparse.n),
        "l_inf": closeness(side.out).median_l_inf,
        "log_likelihood": np.nan if density is None else likelihood(side.out, density).mean,
    }


def _changed(before: Side, after: Side, index: Any) -> pd.DataFrame:
    """The rows decided otherwise."""
    named = {True: before.decision.positive_name, False: before.decision.negative_name}
    table = pd.DataFrame(
        {
            "before": [named[bool(positive)] for positive in before.verdicts.positive],
            "after": [named[bool(positive)] for positive in after.verdicts.positive],
            "score_before": before.verdicts.score,
            "score_after": after.verdicts.score,
            "sev_before": _sev(before),
            "sev_after": _sev(after),
        },
        index=index,
    )
    return table[before.verdicts.positive != after.verdicts.positive]


def _sev(side: Side) -> pd.api.extensions.ExtensionArray:
    """SEV of each row; missing where there is none."""
    sev = np.full(len(side.verdicts.positive), np.nan)
    if side.out is not None:
        answers = side.out.answers
        counts = answers.moved.sum(axis=1).astype(float)
        sev[side.verdicts.positive] = np.where(answers.status == EXPLAINED, counts, np.nan)
    return pd.array(sev, dtype="Int64")


def _figure(value: float, sign: str = "") -> str:
    return "-" if np.isnan(value) else f"{value:{sign}.4g}"
