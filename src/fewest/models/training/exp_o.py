"""ExpO: classifiers that are nearly linear around every row, the yardstick beside All-Opt (appendix of the paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from fewest.errors import UsageError
from fewest.models.training._fidelity import FidelityTerm, Regularizer
from fewest.models.training._progress import Diary
from fewest.models.training._session import Session
from fewest.models.training.base import TrainedClassifier

REGULARIZERS = ("fidelity", "1d")
# A row's samples, where their number is not given: a line needs few, a plane more than it has columns.
ON_A_LINE, AROUND = 20, 100


class ExpOClassifier(TrainedClassifier):
    """A classifier whose scores a linear model can follow around each row (Plumb et al. 2020). Needs ``torch``.

    The loss is cross-entropy + ``c`` * infidelity: around each row points are sampled, a linear model is fitted to the
    chances the classifier gives them, and the mean square of what is left is the infidelity.

    Parameters
    ----------
    model : str
        ``logistic`` or ``mlp``.
    regularizer : str
        ``fidelity`` samples all columns at once, ``1d`` one of them, drawn for each row.
    c : float
        Weight of the infidelity.
    samples : int, optional
        Points around each row; more than the encoded columns for ``fidelity``. Default: 20 for ``1d``; for
        ``fidelity`` 100, or twice the columns where that is more. The authors of the paper take 1000.
    spread : float
        Standard deviation of the samples, in encoded columns.
    encoder : str or transformer
        See `AllOptClassifier`.
    knots, hidden, epochs, warmup_epochs, learning_rate, schedule, batch_size, l2, validation_fraction, patience
        See `AllOptClassifier`.
    positive, random_state, device, verbose
        See `AllOptClassifier`.

    Attributes
    ----------
    pipeline_, history_, positive_, schema_, classes_
        See `TrainedClassifier`.

    Examples
    --------
    >>> from fewest.datasets import load
    >>> data = load("german")
    >>> model = ExpOClassifier(c=1.0, warmup_epochs=10, epochs=5, positive="bad").fit(data.X, data.labels)
    >>> model.history_["phase"].value_counts().to_dict()
    {'warm-up': 10, 'ExpO': 5}
    """

    models = ("logistic", "mlp")
    weights = ("c",)

    decides_by = "pipeline_"  # the attribute that scores alone: its inside may be read

    def __init__(
        self,
        model: Literal["logistic", "mlp"] = "logistic",
        regularizer: Regularizer = "fidelity",
        c: float = 0.01,
        samples: int | None = None,
        spread: float = 0.1,
        encoder: Any = "linear",
        knots: int = 10,
        hidden: Sequence[int] = (128, 128),
        epochs: int = 20,
        warmup_epochs: int | None = None,
        learning_rate: float | None = None,
        schedule: Literal["constant", "cosine"] = "constant",
        batch_size: int = 128,
        l2: float = 1e-4,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        positive: Any = None,
        random_state: int = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.regularizer = regularizer
        self.c = c
        self.samples = samples
        self.spread = spread
        self.encoder = encoder
        self.knots = knots
        self.hidden = hidden
        self.epochs = epochs
        self.warmup_epochs = warmup_epochs
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.batch_size = batch_size
        self.l2 = l2
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.positive = positive
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _phases(self, session: Session) -> None:
        samples = self._samples(len(session.blocks.feature_of))
        term = FidelityTerm(self.regularizer, self.c, samples, self.spread, self.random_state)
        session.run("ExpO", self.epochs, term)

    def _samples(self, columns: int) -> int:
        """Points around each row; one that is not given, or that cannot be fitted to, is looked at here."""
        fewest = 3 if self.regularizer == "1d" else columns + 2
        if self.samples is None:
            return ON_A_LINE if self.regularizer == "1d" else max(AROUND, 2 * columns)
        if self.samples < fewest:
            raise UsageError(
                f"samples is {self.samples}, which a linear model of {columns} columns fits whatever they are",
                do=f"take at least {fewest}",
            )
        return self.samples

    def _begin(self, X: Any, y: Any) -> tuple[Session, Diary]:
        if self.regularizer not in REGULARIZERS:
            raise UsageError(f"regularizer {self.regularizer!r} is unknown", do=f"use {' or '.join(REGULARIZERS)}")
        if not 0 < self.spread < math.inf:
            raise UsageError(f"spread is {self.spread!r}", do="choose a number above 0, such as 0.1")
        return super()._begin(X, y)
