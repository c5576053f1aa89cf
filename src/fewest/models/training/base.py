"""What the trained classifiers share: a pipeline of plain scikit-learn parts that predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError, UsageError
from fewest.models.estimators import TableClassifier
from fewest.models.training._history import History
from fewest.models.training.settings import WARM_UP, GroupedParameters, check_settings, find_torch
from fewest.tables.wording import show_label

if TYPE_CHECKING:  # it needs torch
    from fewest.models.training._session import Session

Model = Literal["logistic", "mlp", "boosted"]


class TrainedClassifier(TableClassifier, GroupedParameters, ABC):
    """A classifier trained by gradient descent; sub-classes say in `_phases` what is added to the cross-entropy.

    Attributes
    ----------
    pipeline_ : Pipeline
        Encoder and final model, plain scikit-learn parts: it predicts without torch.
    history_ : DataFrame
        Phase, loss, accuracy and, where SEV is optimised, the estimate of its mean, epoch by epoch.
    positive_ : label
        The class whose decisions are explained.
    """

    models: ClassVar[tuple[str, ...]] = ()
    encoders: ClassVar[Mapping[str, str]] = {}
    weights: ClassVar[tuple[str, ...]] = ()
    pipeline_: Any
    history_: pd.DataFrame
    positive_: Any
    model: str
    warmup_epochs: int | None
    epochs: int
    positive: Any
    verbose: bool

    def fit(self, X: Any, y: Any) -> Self:
        """Train on raw rows, a frame (n, features) or an array of numbers, with labels of exactly two classes."""
        session, history = self._begin(X, y)
        with history.shown(self._warm_up + self.epochs, self.verbose):
            session.run("warm-up", self._warm_up)
            self._phases(session)
        self._finish(session, history)
        return self

    def _begin(self, X: Any, y: Any) -> tuple[Session, History]:
        """Everything before the first step."""
        find_torch()
        from fewest.models.training._session import Session

        check_settings(self)
        frame, second = self._read_training(X, y)
        self.positive_ = self._positive_label()
        history = History()
        return Session(self, frame, self.classes_[second.astype(np.intp)], history), history

    def _positive_label(self) -> Any:
        """The label whose decisions are to need few reasons; the second class unless another is named."""
        if self.positive is None:
            return self.classes_[1]
        matching = [label for label in self.classes_ if label == self.positive]
        if not matching:
            known = ", ".join(map(show_label, self.classes_))
            raise UsageError(f"no row is labelled {show_label(self.positive)}", do=f"choose one of {known}")
        return matching[0]

    @property
    def _warm_up(self) -> int:
        """Epochs of cross-entropy alone; a booster comes fitted."""
        if self.warmup_epochs is not None:
            return self.warmup_epochs
        return 0 if self.model == "boosted" else WARM_UP

    @abstractmethod
    def _phases(self, session: Session) -> None:
        """What follows the warm-up."""

    def _finish(self, session: Session, history: History) -> None:
        """Keep what was trained."""
        self.pipeline_ = session.model()
        self.history_ = history.table()
        scores = self.pipeline_.predict_proba(session.frame)
        if not np.isfinite(scores).all():
            raise DataError("training did not converge: scores are not numbers", do="choose a smaller learning_rate")

    @property
    def _missing_numbers(self) -> bool:  # type: ignore[override]
        """Whether numbers may be missing: where an encoder of the user's takes care of them."""
        encoder = getattr(self.group("architecture"), "encoder", None)
        return not (encoder is None or isinstance(encoder, str))

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Chances of both classes (n, 2)."""
        rows = self._read_rows(X)
        return np.asarray(self.pipeline_.predict_proba(rows), dtype=np.float64)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Label of each row (n,): the positive class from one half on."""
        chances = self.predict_proba(X)
        return np.asarray(self.classes_[(chances[:, 1] >= 0.5).astype(np.intp)])
