"""Decision: a fitted model, the class being explained and a threshold; raw rows in, scores and verdicts out.

Only the user's own model, called on raw rows, has the last word here (rule 2). A row scored alone and in a batch can
differ in the last bits, so rows close to the threshold are scored again, alone. How close that is, is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError, ModelError, UsageError, check_number
from fewest.tables.arrays import Bools, Floats, Ints
from fewest.tables.cards import ShownAsCard
from fewest.tables.frames import to_frame, without_names
from fewest.tables.model_kinds import (
    NUMBERS,
    WITHOUT_CLASSES,
    check_is_fitted,
    class_labels,
    column_names,
    no_classes,
    no_threshold,
    predicted_numbers,
    score_kind,
    usual_cut,
)
from fewest.tables.scores import (
    DOUBLE,
    ROWS_TRIED,
    SINGLE,
    Noise,
    Precision,
    as_net_input,
    first_bad_cell,
    torch_chances,
    warn_of_chances,
)
from fewest.tables.wording import show_label

REFUSED, ACCEPTED = "refused", "accepted"  # the outcomes of a model without classes, where nobody named one
UNUSUAL, ORDINARY = "unusual", "ordinary"  # ... and of one that finds outliers
Alone = Callable[[Ints], Floats]  # places of rows -> the score of each, scored alone


class Verdicts(NamedTuple):
    """Scores of rows and whether each is decided positive (against the case)."""

    score: Floats
    positive: Bools


@dataclass(frozen=True, eq=False)
class Decision(ShownAsCard):
    """What decides: a model, the class that is explained, and where the line is drawn.

    Parameters
    ----------
    model : object
        A fitted classifier with ``predict_proba``, ``decision_function`` or ``predict``; a regressor, a bare XGBoost or
        LightGBM booster or a detector of outliers; a torch module with one logit or two class outputs; or a function
        from a table to one score per row.
    positive : label, optional
        The class being explained (the refusal). Default: the second of two classes. Needed with more than two, and to
        read labels where the model has no classes (functions, torch modules).
    threshold : float, optional
        A row is positive when its score is at least this. Default: where the model's own ``predict`` draws the line,
        0.5 for probabilities, 0 for decision functions, class differences and detectors. Regressors need one.
    against : label, optional
        With more than two classes: explain "positive instead of this class". Without it, "positive and no other".
    kind : str, optional
        Which score to use: ``proba``, ``decision`` or ``label``. Default: the first one that the model has.
    names : mapping, optional
        What people call the outcomes: class -> word, e.g. ``{0: "approved", 1: "refused"}``. Sentences, reports and
        letters use them; for a model without classes 1 is the outcome that is explained, 0 the other.
    above : bool
        For models that give numbers: explain rows at the threshold and above it (default), or at it and below it. The
        score is then minus the number. A detector's number is minus its decision function: unusual from 0 on.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression, Ridge
    >>> X = pd.DataFrame({"debt": [0.0, 1.0, 2.0, 3.0]})
    >>> decision = Decision(LogisticRegression().fit(X, ["ok", "ok", "bad", "bad"]), positive="bad")
    >>> decision.refuses(X).tolist()
    [False, False, True, True]
    >>> Decision(decision.model, "bad", names={"ok": "approved", "bad": "refused"})
    <decision of LogisticRegression: refused where the score is >= 0.5>
    >>> Decision(Ridge().fit(X, [100, 90, 50, 40]), threshold=70, above=False).refuses(X).tolist()
    [False, False, True, True]
    """

    model: Any
    positive: Any = None
    threshold: float | None = None
    against: Any = None
    kind: str | None = None
    names: Mapping[Any, str] | None = None
    above: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", score_kind(self.model, self.kind, self.threshold))
        if self.kind in WITHOUT_CLASSES:
            if self.against is not None:
                raise UsageError("`against` needs a classifier with classes", do="leave it out")
        else:
            self._check_classes(self.classes)
        if self.kind in NUMBERS:
            check_is_fitted(self.model)
        elif not self.above and self.kind != "function":
            raise UsageError("`above` is for models that give numbers", do="choose the class with positive=")
        if self.threshold is None:
            object.__setattr__(self, "threshold", self.usual_threshold)
        if self.threshold is None:
            raise no_threshold(self.model)
        check_number("the threshold", self.threshold, "pass a finite number, say 0.5")
        self._check_names()

    def __repr__(self) -> str:
        return f"<decision of {type(self.model).__name__}: {self.positive_name} where the score is >= {self.cut:g}>"

    def _check_names(self) -> None:
        """Refuse names of outcomes that the model does not have, and one name for two."""
        if self.names is None:
            return
        known = self.classes or (0, 1)
        do = f'pass a word each: names={{{show_label(known[0])}: "approved", {show_label(known[1])}: "refused"}}'
        if not isinstance(self.names, Mapping):
            raise UsageError(f"names is {self.names!r}", do=do)
        for label, name in self.names.items():
            if label not in known:
                raise UsageError(f"names: {show_label(label)} is not a class of the model", do=do)
            if not isinstance(name, str) or not name.strip() or list(self.names.values()).count(name) > 1:
                raise UsageError(f"names: {show_label(label)} is called {name!r}, which names no outcome alone", do=do)

    def _name(self, label: Any) -> str:
        """What people call a class."""
        return (self.names or {}).get(label, str(label))

    def _check_classes(self, classes: tuple[Any, ...]) -> None:
        name = type(self.model).__name__
        if not classes:
            raise no_classes(self.model)
        known = ", ".join(map(show_label, classes))
        if len(classes) < 2:
            raise ModelError(f"{name} knows one class only, {known}", do="fit it on rows of both classes")
        if self.positive is None:
            if len(classes) > 2:
                raise UsageError(f"{name} has {len(classes)} classes", do=f"pass positive=, one of {known}")
            object.__setattr__(self, "positive", classes[1])
        for label in (self.positive, self.against):
            if label is not None and label not in classes:
                raise UsageError(f"{show_label(label)} is not a class of the model", do=f"use one of {known}")
        if self.against is not None and self.against == self.positive:
            raise UsageError("`against` is the positive class itself", do="name another class")

    @cached_property
    def classes(self) -> tuple[Any, ...]:
        """The model's class labels; empty for functions."""
        labels = class_labels(self.model)
        return () if labels is None else tuple(np.asarray(labels).tolist())

    @property
    def cut(self) -> float:
        """The score from which a row is positive: the threshold, turned round where small numbers are explained."""
        return float(self.threshold) if self.above else -float(self.threshold)  # type: ignore[arg-type]

    @property
    def usual_threshold(self) -> float | None:
        """Where the model's own ``predict`` draws the line, such as 0.5 for probabilities; None where it draws none."""
        return usual_cut(self.model, str(self.kind), len(self.classes), self.positive_index)

    @property
    def positive_index(self) -> int:
        """Position of the explained class."""
        if self.classes:
            return self.classes.index(self.positive)
        # A module's outputs are those of the classes 0 and 1; any other name is that of class 1.
        first = self.kind == "torch" and not isinstance(self.positive, str) and self.positive == 0
        return 0 if first or not self.above else 1

    @property
    def against_index(self) -> int | None:
        """Position of the class it is compared with, where one was named."""
        if self.against is None or len(self.classes) == 2:
            return None
        return self.classes.index(self.against)

    @property
    def positive_name(self) -> str:
        """How the outcome that is explained is called: by its name, its class, or "refused" where there is neither."""
        if not self.classes:
            named = (self.names or {}).get(1)
            return named or (self._sides[0] if self.positive is None else str(self.positive))
        return self._name(self.positive)

    @property
    def negative_name(self) -> str:
        """How the other outcome is called."""
        if not self.classes:
            named = (self.names or {}).get(0)
            return named or (self._sides[1] if self.positive is None else f"not {self.positive_name}")
        others = [label for label in self.classes if label != self.positive]
        if self.against is not None:
            return self._name(self.against)
        return self._name(others[0]) if len(others) == 1 else f"not {self.positive_name}"

    @property
    def shows_percent(self) -> bool:
        """Whether scores are probabilities."""
        return self.kind in ("proba", "torch") and len(self.classes) <= 2

    @property
    def number(self) -> str:
        """For predicted numbers: whether the score is the number (``up``) or minus it (``down``); else empty."""
        return ("up" if self.kind == "value" else "") if self.above else "down"

    @property
    def _sides(self) -> tuple[str, str]:
        """What the outcomes of a model without classes are called, where nobody named them."""
        if self.kind == "outlier":
            return (UNUSUAL, ORDINARY) if self.above else (ORDINARY, UNUSUAL)
        if self.kind == "value":
            cut = f"{self.threshold:g}"
            return (f"{cut} or more", f"below {cut}") if self.above else (f"{cut} or less", f"above {cut}")
        return REFUSED, ACCEPTED

    @cached_property
    def columns(self) -> tuple[str, ...] | None:
        """Columns the model was fitted on, where it remembers them."""
        return column_names(self.model)

    def arrange(self, frame: pd.DataFrame) -> Any:
        """The table in the form the model was fitted on: a frame by name, or an array where it knows no names."""
        if self.kind == "function":
            return frame
        if self.columns is not None and set(self.columns) <= set(frame.columns):
            return frame[list(self.columns)]
        if (wanted := getattr(self.model, "n_features_in_", frame.shape[1])) != frame.shape[1]:
            raise DataError(
                f"the model was fitted on {wanted} columns, the table has {frame.shape[1]}",
                do="pass the same feature columns as in fit",
            )
        return without_names(self.model, frame)

    def score(self, table: Any) -> Floats:
        """Score of each raw row, by one call of the model."""
        frame = table if isinstance(table, pd.DataFrame) else to_frame(table, self.columns)
        return np.asarray(self.call(self.arrange(frame), frame)[0])

    def call(self, model_input: Any, frame: pd.DataFrame | None = None, model: Any = None) -> tuple[Any, Precision]:
        """Score prepared input with ``model`` (default: the whole model); the scores and how exact they are."""
        n_rows = model_input.shape[0]
        if n_rows == 0:
            return np.empty(0), DOUBLE
        scorer = self._scorer(self.model if model is None else model)
        try:
            values = np.asarray(scorer(model_input))
        except Exception as error:
            raise self.blame(error, frame) from error
        precision = SINGLE if values.dtype in (np.float32, np.float16) else DOUBLE
        if values.ndim != 1 or len(values) != n_rows:
            raise ModelError(
                f"the model returned scores of shape {values.shape} for {n_rows} rows",
                do="a score function returns one number per row",
            )
        scores = values.astype(np.float64)
        if np.isnan(scores).any():
            row = int(np.flatnonzero(np.isnan(scores))[0])
            raise ModelError(f"the model's score of row {row} is NaN", do="look for values it cannot take")
        return scores, precision

    def _scorer(self, model: Any) -> Callable[[Any], Any]:
        if self.kind == "function":
            return model if self.above else lambda X: -np.asarray(model(X))
        if self.kind in NUMBERS:
            sign = 1 if self.above else -1
            return lambda X: sign * predicted_numbers(model, str(self.kind), X)
        if self.kind == "torch":
            return lambda X: torch_chances(model, X)[:, self.positive_index]
        if self.kind == "label":
            return lambda X: (np.asarray(model.predict(X)) == self.positive).astype(float)
        method = model.predict_proba if self.kind == "proba" else model.decision_function
        return lambda X: self._pick(np.asarray(method(as_net_input(model, X))))

    def _pick(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The score of the explained class out of what the model returns."""
        j = self.positive_index
        if table.ndim == 1:
            return table if j == 1 else -table
        if table.shape[1] != len(self.classes):
            return table  # wrong shape: reported by the caller
        if len(self.classes) == 2:
            return table[:, j]
        if self.against_index is not None:
            return np.asarray(table[:, j] - table[:, self.against_index])
        return np.asarray(table[:, j] - np.delete(table, j, axis=1).max(axis=1))

    def blame(self, error: Exception, frame: pd.DataFrame | None) -> Exception:
        """Say which cell the model most likely choked on."""
        if isinstance(error, ModelError | DataError | UsageError):
            return error
        text = str(error).splitlines()[0] if str(error) else ""
        what = f"the model failed on the table: {type(error).__name__}: {text}"
        cell = None if frame is None else first_bad_cell(frame)
        if cell is None:
            return ModelError(what, do="check that the model's own predict works on this table")
        row, column, value = cell
        return DataError(
            f'row {row}, column "{column}": the value is {value}, which this model refuses. {what}',
            do="impute or drop such rows, or put an imputer into the pipeline",
        )

    def verdicts(self, table: Any, alone: Alone | None = None) -> Verdicts:
        """Score rows and decide them; rows close to the threshold are scored alone, one call each (or by ``alone``)."""
        frame = table if isinstance(table, pd.DataFrame) else to_frame(table, self.columns)
        scores, precision = self.call(self.arrange(frame), frame)
        return self.settle(scores, precision, frame, alone)

    def refuses(self, table: Any) -> Bools:
        """Which rows are decided positive: what `verdicts` says of them, in less time where scores are not needed."""
        frame = table if isinstance(table, pd.DataFrame) else to_frame(table, self.columns)
        scores, precision = self.call(self.arrange(frame), frame)
        close = np.abs(scores - self.cut) <= self._near_cut(self.noise(frame).precision(precision))
        return np.asarray(self._again(scores, close, frame) >= self.cut)

    def _again(self, scores: Floats, doubtful: Bools, frame: pd.DataFrame, alone: Alone | None = None) -> Floats:
        """The scores, those that are doubtful of rows scored alone."""
        scores, again = scores.copy(), np.flatnonzero(doubtful)
        if len(again):
            scores[again] = alone(again) if alone else [self.score(frame.iloc[[row]])[0] for row in again]
        return scores

    def settle(self, scores: Floats, precision: Precision, frame: pd.DataFrame, alone: Alone | None = None) -> Verdicts:
        """Decide from batch scores, and report scores that do not depend on the batch a row was scored in.

        Rows within ``near`` of the threshold, and those whose rounding batch noise could tip, are scored alone (by
        ``alone``, given their places). Scores are rounded, except where that would carry them across the threshold.
        """
        precision = self.noise(frame).precision(precision)
        size = np.maximum(1.0, np.abs(scores))
        # Predicted numbers can be large: they keep as many digits, not as many decimals.
        digits = np.floor(np.log10(size)) if self.kind == "value" else 0.0
        places = 10.0 ** (precision.decimals - digits)
        grid = scores * places
        tips = np.abs(grid - np.floor(grid) - 0.5) <= precision.noise * places * size
        close = np.abs(scores - self.cut) <= self._near_cut(precision)
        scores = self._again(scores, tips | close, frame, alone)
        positive = scores >= self.cut
        rounded = np.round(scores * places) / places
        return Verdicts(np.where((rounded >= self.cut) == positive, rounded, scores), positive)

    def band(self, frame: pd.DataFrame) -> float:
        """Half-width of the band around the threshold in which a batch score does not decide."""
        nominal = self.call(self.arrange(frame), frame)[1]
        self.noise(frame)
        return self.half_band(nominal)

    def half_band(self, nominal: Precision) -> float:
        """The same for scores of a nominal precision, by the noise measured so far."""
        known: Noise | None = self.__dict__.get("_noise")
        return self._near_cut(nominal if known is None else known.precision(nominal))

    def _near_cut(self, precision: Precision) -> float:
        return precision.near * max(1.0, abs(self.cut))

    def noise(self, frame: pd.DataFrame) -> Noise:
        """How much a row's score differs between batches, measured once, on the first rows it can be measured on."""
        known: Noise | None = self.__dict__.get("_noise")
        if known is None or known.rows < min(len(frame), ROWS_TRIED):
            known = Noise.measured(self.score, frame.iloc[:0] if self.kind == "label" else frame, self.cut)
            object.__setattr__(self, "_noise", known)
        return known

    def check(self, frame: pd.DataFrame) -> None:
        """Refuse a model that changes its input, changes its mind, or scores a row by the rows beside it."""
        sample = frame.iloc[:ROWS_TRIED]
        before = sample.copy(deep=True)
        first = self.score(sample)
        if not before.equals(sample):
            raise ModelError("the model changed the table it was given", do="let it work on a copy: X = X.copy()")
        again = self.score(sample)
        if (np.abs(first - again) > 1e-6 * np.maximum(1.0, np.abs(first))).any():
            raise ModelError("the model gave two different scores to the same rows", do="fix its random state")
        if self.kind == "torch":
            warn_of_chances(self.model, self.arrange(sample))
        noise = self.noise(sample)
        if not noise.is_rounding:
            raise ModelError(
                f"a row's score changes with the rows beside it, by {noise.mixed:.2g}",
                do="take batch statistics out of the model (torch: model.eval())",
            )
