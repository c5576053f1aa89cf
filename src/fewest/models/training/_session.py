"""One training run: the encoded table, the head, the references, and the phases it goes through."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.engine.encoding import Encoding
from fewest.engine.structure.base import as_floats
from fewest.errors import FewestError, FewestWarning, ModelError, UsageError
from fewest.models.training._encoders import make_encoder
from fewest.models.training._exports import export
from fewest.models.training._heads import Blocks, Floats, Head, LinearHead, NetworkHead, Targets
from fewest.models.training._recipes import Recipe, cook
from fewest.models.training._settings import find_device, schedule_of
from fewest.models.training._terms import AllOptTerm, Weights
from fewest.models.training._trainer import Epoch, Term, Trainer
from fewest.references import References
from fewest.tables.schema import Schema
from fewest.tables.wording import show_label

ENCODER = {"logistic": "curves", "mlp": "linear", "boosted": "plain"}
Tell = Callable[[Epoch, float], None]


class Session:
    """What is trained, and on what.

    Parameters
    ----------
    estimator : AllOptClassifier or ExpOClassifier
        Its parameters say how.
    frame : (n, columns)
        Typed training rows.
    labels : (n,)
        Their labels.
    tell : callable
        Called after every epoch with what it came to and the estimate of mean SEV, NaN where there is none.
    """

    def __init__(self, estimator: Any, frame: pd.DataFrame, labels: npt.NDArray[Any], tell: Tell) -> None:
        self.estimator = estimator
        self.frame, self.labels = frame, labels
        self.schema: Schema = estimator.schema_
        self.positive = positive_label(estimator)
        self.classes: npt.NDArray[Any] = estimator.classes_
        self.encoder = self._fit_encoder()
        self.Z = self.encode(frame)
        self.blocks = self._trace()
        self.head = self._make_head()
        self.sign = 1.0 if self.positive == self.classes[1] else -1.0
        self.term: Term | None = None
        self.trainer = Trainer(
            self.head, self.head.rows(self.Z), labels == self.positive, schedule_of(estimator),
            estimator.random_state, lambda epoch: tell(epoch, getattr(self.term, "sev_estimate", float("nan"))),
        )  # fmt: skip
        self.references: References | None = None
        self.softened = False

    def _fit_encoder(self) -> Any:
        wanted = self.estimator.encoder
        if wanted is None or isinstance(wanted, str):
            word = wanted or ENCODER[self.estimator.model]
            return make_encoder(word, self.schema, self.frame, self.estimator.knots).fit(self.frame)
        from sklearn.base import clone

        try:
            return clone(wanted).fit(self.frame, self.labels)
        except Exception as error:
            raise ModelError(f"the encoder cannot be fitted: {error}", do="call encoder.fit(X, y) alone") from error

    def encode(self, frame: pd.DataFrame) -> Floats:
        """Rows as the head sees them."""
        return as_floats(self.encoder.transform(frame))

    def _trace(self) -> Blocks:
        """Which feature each encoded column belongs to."""
        from sklearn.dummy import DummyClassifier

        anything = self.pipeline(DummyClassifier(strategy="prior").fit(self.Z, self.labels))
        read = Encoding.read(Decision(anything, positive=self.positive), self.schema)
        if read.feature_of is None:
            raise ModelError(
                f"the encoder's columns cannot be traced to single features: {read.reason}",
                do="use scikit-learn's transformers, feature by feature",
            )
        if (read.feature_of < 0).any():
            raise ModelError("the encoder puts out a constant column", do="leave it out: the model has an intercept")
        return Blocks(read.feature_of.astype(np.int64), len(self.schema.features))

    def _make_head(self) -> Head:
        estimator, device = self.estimator, find_device(self.estimator.device)
        if estimator.model == "logistic":
            return LinearHead(self.blocks, device)
        if estimator.model == "mlp":
            return NetworkHead(self.blocks, estimator.hidden, device, estimator.random_state)
        from fewest.models.training._boosters import leaves_head

        return leaves_head(self, device)

    def pipeline(self, model: Any) -> Any:
        """Encoder and final model as one."""
        from sklearn.pipeline import Pipeline

        return Pipeline([("encoder", self.encoder), ("model", model)])

    def model(self) -> Any:
        """The head as it is now, as a fitted pipeline of plain scikit-learn parts."""
        return self.pipeline(export(self.head, self.classes, self.sign))

    def decision(self) -> Decision:
        """The decision that the head as it is now makes."""
        return Decision(self.model(), positive=self.positive)

    def run(self, phase: str, epochs: int, term: Term | None = None) -> None:
        """Go through a phase."""
        self.term = term
        self.trainer.run(phase, epochs, term, term.start_epoch if isinstance(term, AllOptTerm) else None)

    def soften(self, share: float) -> None:
        """From now on aim at labels and, by this share, at the chances that the model gives now; only once."""
        if not self.softened:
            self.softened = True
            self.trainer.soften(share)

    def sev_phase(self, weights: Weights, epochs: int, recipe: Recipe, every: int | None) -> None:
        """Train with All-Opt's terms; references are looked at again after so many epochs, or never."""
        if weights.c1 == 0 and weights.c2 == 0:
            self.run("plain", epochs)
            return
        self._cook(recipe)

        def refresh(epoch: int) -> Targets | None:
            if every is None or epoch == 0 or epoch % every:
                return None
            self._cook(recipe)
            return self._targets()

        self.run("SEV", epochs, AllOptTerm(weights, self._targets(), refresh))

    def _cook(self, recipe: Recipe) -> None:
        with warnings.catch_warnings():
            # What the references of a model in training lack is no news; those of the trained one are told.
            warnings.simplefilter("ignore", FewestWarning)
            self.references = cook(recipe, self.decision(), self.frame, self.labels, self.references)

    def _targets(self) -> Targets:
        if self.references is None:
            raise FewestError("there are no references yet")
        return self.targets(self.frame, self.Z, self.references)

    def targets(self, frame: pd.DataFrame, Z: Floats, refs: References) -> Targets:
        """What aligning rows with the references they are compared with needs."""
        missing = set(self.schema.columns) - set(refs.frame.columns)
        if missing:
            raise UsageError(f"the references have no column {sorted(missing)[0]!r}", do="give them all features")
        points = self.schema.conform(refs.frame, unseen="allow")
        return self.head.targets(Z, self.encode(points), refs.candidates(frame).astype(np.int64))


def positive_label(estimator: Any) -> Any:
    """The label whose decisions are to need few reasons; the second class unless another is named."""
    if estimator.positive is None:
        return estimator.classes_[1]
    matching = [label for label in estimator.classes_ if label == estimator.positive]
    if not matching:
        known = ", ".join(map(show_label, estimator.classes_))
        raise UsageError(f"no row is labelled {show_label(estimator.positive)}", do=f"choose one of {known}")
    return matching[0]
