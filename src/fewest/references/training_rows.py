"""Training rows and what their labels say: the one place where labels are read.

Labels that are not the model's classes are refused: compared with another label, every row would look accepted.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, FewestWarning, UsageError
from fewest.tables.arrays import Bools
from fewest.tables.model_kinds import NUMBERS
from fewest.tables.schema import Schema

SHOWN = 6
MOST_ROWS = 20_000
TIE = 1e-9


class Labels(NamedTuple):
    """What labels say of each row."""

    refused: Bools  # (n,) bool: Rows with the class that is explained
    accepted: Bools  # (n,) bool: Rows with another class; with ``against``, with that one


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """A training table, conformed to its schema, and what its labels say."""

    schema: Schema
    frame: pd.DataFrame  # (n, columns)
    labels: Labels

    @classmethod
    def read(
        cls,
        decision: Decision,
        X: Any,
        y: Any,
        schema: Schema | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        *,
        unseen: Literal["error", "allow"] = "error",
        compare: bool = False,
    ) -> TrainingRows:
        """Read a table and its labels; what is not given of schema and labels is read off the table and the decision.

        With ``compare`` a warning says where the decision is not what the model's own ``predict`` gives.
        """
        schema = schema or Schema.infer(X, groups, decision.columns)
        frame = schema.conform(X, unseen=unseen)
        labels = read_labels(decision, y, frame)
        if not labels.accepted.any():
            raise DataError(
                f"no row is labelled as accepted ({decision.negative_name}), so there is nobody to compare with",
                do="check the labels and `positive=`",
            )
        if compare:
            _warn_where_predict_differs(decision, frame)
        return cls(schema, frame, labels)

    @property
    def accepted(self) -> pd.DataFrame:
        """The rows labelled as accepted."""
        return self.frame[self.labels.accepted]


def read_labels(decision: Decision, y: Any, frame: pd.DataFrame) -> Labels:
    """Which rows the labels call refused and which accepted.

    Booleans are labels where the classes are booleans, or 0 and 1, which XGBoost makes of them. With any other model
    they say which rows were accepted. For a model that predicts numbers, labels are such numbers; without labels its
    own predictions say who is accepted.
    """
    if y is None:
        if decision.kind in NUMBERS:
            return _by_number(decision, frame)
        return Labels(np.zeros(len(frame), dtype=bool), np.ones(len(frame), dtype=bool))
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) != len(frame):
        raise DataError(f"there are {len(frame)} rows but labels of shape {labels.shape}", do="pass one label per row")
    missing = np.asarray(pd.isna(labels))
    if missing.any():
        raise DataError(f"row {int(np.argmax(missing))} has no label ({missing.sum()} such rows)", do="leave them out")
    found = pd.unique(labels).tolist()
    known = decision.classes or (() if decision.positive is None else (decision.positive,))
    if all(isinstance(label, bool | np.bool_) for label in found) and not (known and set(known) <= {0, 1}):
        return _mask(decision, labels.astype(bool), frame)
    if decision.kind in NUMBERS and decision.positive is None:
        return _on_a_side(decision, labels)
    _check_known(decision, found)
    refused = np.asarray(labels == decision.positive)
    return Labels(refused, ~refused if decision.against is None else np.asarray(labels == decision.against))


def _warn_where_predict_differs(decision: Decision, frame: pd.DataFrame) -> None:
    """Warn where the decision and the model's own ``predict`` disagree, on up to 20,000 rows at even steps.

    A tree with as many rows of both classes in a leaf predicts its first class there; a score of 0.5 is not below a
    threshold of 0.5. Nothing is said where another threshold or ``against`` was asked for.
    """
    if decision.kind not in ("proba", "decision") or decision.against is not None:
        return
    if decision.cut != decision.usual_threshold or not hasattr(decision.model, "predict"):
        return
    rows = frame.iloc[:: -(-len(frame) // MOST_ROWS)]
    try:
        predicted = np.asarray(decision.model.predict(decision.arrange(rows))).reshape(len(rows))
    except Exception:  # the decision does not need `predict`
        return
    if not set(pd.unique(predicted).tolist()) <= set(decision.classes):
        return  # it speaks of something else
    score = decision.score(rows)
    differ = (predicted == decision.positive) != (score >= decision.cut)
    if differ.any():
        tie = f": their score is {decision.cut:g}, a tie, which the decision counts as {decision.positive_name}"
        do = f"pass threshold={decision.cut + 1e-6:g} to Decision to side with predict"
        if not np.allclose(score[differ], decision.cut, rtol=0, atol=TIE):
            tie, do = "", 'pass kind="label" to Decision to explain predict instead of the score'
        warnings.warn(
            f"the model's own predict and this decision disagree on {differ.sum()} of {len(rows)} training rows{tie}"
            f"\n  Try: {do}",
            FewestWarning,
            stacklevel=4,
        )


def _check_known(decision: Decision, found: list[Any]) -> None:
    """Refuse labels that do not tell the refused from the accepted."""
    mask = "a boolean array, True where a row was accepted"
    if decision.positive is None:
        raise UsageError(
            f"the model has no classes, so the labels {_listed(found)} do not say who was refused",
            do=f"pass Decision(..., positive=LABEL) with the label of the refused rows, or instead of labels {mask}",
        )
    strange = [label for label in found if label not in decision.classes]
    if decision.classes and strange:
        raise DataError(
            f"the labels {_listed(strange)} are not classes of the model, which are {_listed(decision.classes)}",
            do=f"pass labels as the model knows them, or {mask}",
        )
    # One other label alone is that of a table of accepted rows only, if it is of the same kind as the positive one.
    alike = len(found) == 1 and isinstance(found[0], str) == isinstance(decision.positive, str)
    if not decision.classes and decision.positive not in found and not alike:
        raise DataError(
            f"no row is labelled {decision.positive!r}, the class that is explained; the labels are {_listed(found)}",
            do=f"correct `positive=` or the labels, or pass {mask}",
        )


def _by_number(decision: Decision, frame: pd.DataFrame) -> Labels:
    """What a model that gives numbers decides itself; refused where its threshold leaves nobody to compare with."""
    verdicts = decision.verdicts(frame)
    accepted, values = ~verdicts.positive, verdicts.score * (1 if decision.above else -1)
    if accepted.all() or not accepted.any():
        side = decision.negative_name if accepted.all() else decision.positive_name
        said = f"the model calls all {len(frame)} training rows {side}: its numbers for them are from "
        said, do = f"{said}{values.min():.6g} to {values.max():.6g}", "choose a threshold inside that range"
        if not accepted.any():
            raise DataError(f"{said}, so there is nobody to compare with", do=do)
        warnings.warn(f"{said}\n  Try: {do}", FewestWarning, stacklevel=4)
    return Labels(~accepted, accepted)


def _on_a_side(decision: Decision, labels: Any) -> Labels:
    """Which true numbers lie on the side that is explained; of a detector, 1 and -1 as its ``predict`` has them."""
    if decision.kind == "outlier":
        if not set(pd.unique(labels).tolist()) <= {-1, 1}:
            raise DataError(
                "labels of a detector are 1 (ordinary) and -1", do="pass those, or y=None: its own verdicts"
            )
        refused = labels == (-1 if decision.above else 1)
    else:
        if labels.dtype.kind not in "fiu":
            raise DataError(
                f"the model predicts numbers, and the labels are {_listed(pd.unique(labels).tolist())}",
                do="pass the numbers it was fitted on, or y=None: its own predictions say who is accepted",
            )
        refused = labels >= decision.threshold if decision.above else labels <= decision.threshold
    return Labels(np.asarray(refused), ~np.asarray(refused))


def _mask(decision: Decision, accepted: Bools, frame: pd.DataFrame) -> Labels:
    """Booleans that say who was accepted, unless the model sees it the other way round."""
    against = decision.score(frame) >= decision.cut
    if accepted.any() and not accepted.all():
        share, others = against[accepted].mean(), against[~accepted].mean()
        if share > others:
            raise DataError(
                "booleans say which rows were accepted, but the model refuses more of those that are True "
                f"({share:.0%}) than of the others ({others:.0%})",
                do="pass ~y if True means refused, or the labels the model was fitted on",
            )
    return Labels(~accepted, accepted)


def _listed(labels: Sequence[Any]) -> str:
    return ", ".join(repr(label) for label in labels[:SHOWN]) + (" ..." if len(labels) > SHOWN else "")
