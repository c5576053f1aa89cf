"""ExpO: classifiers that are nearly linear around every row, the yardstick beside All-Opt (appendix of the paper)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fewest.errors import UsageError, check_word
from fewest.models.training._history import History
from fewest.models.training.base import TrainedClassifier
from fewest.models.training.settings import Architecture, Optimizer

if TYPE_CHECKING:
    from fewest.models.training._session import Session

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
    epochs, warmup_epochs, architecture, optimizer, positive, random_state, device, verbose
        See `AllOptClassifier`; the encoder is ``linear`` by default.

    Attributes
    ----------
    pipeline_, history_, positive_, schema_, classes_
        See `TrainedClassifier`.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9] * 20, "age": [30, 40, 50] * 40})
    >>> model = ExpOClassifier(warmup_epochs=3, epochs=2).fit(X, [0, 0, 0, 1, 1, 1] * 20)
    >>> model.history_["phase"].value_counts().to_dict()
    {'warm-up': 3, 'ExpO': 2}
    """

    models = ("logistic", "mlp")
    encoders: ClassVar[Mapping[str, str]] = {"logistic": "linear", "mlp": "linear"}
    weights = ("c",)
    groups: ClassVar[Mapping[str, type]] = {"architecture": Architecture, "optimizer": Optimizer}

    decides_by = "pipeline_"  # the attribute that scores alone: its inside may be read

    def __init__(
        self,
        model: Literal["logistic", "mlp"] = "logistic",
        regularizer: Literal["fidelity", "1d"] = "fidelity",
        c: float = 0.01,
        samples: int | None = None,
        spread: float = 0.1,
        epochs: int = 20,
        warmup_epochs: int | None = None,
        architecture: Architecture | None = None,
        optimizer: Optimizer | None = None,
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
        self.epochs = epochs
        self.warmup_epochs = warmup_epochs
        self.architecture = architecture
        self.optimizer = optimizer
        self.positive = positive
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _phases(self, session: Session) -> None:
        from fewest.models.training._losses import FidelityTerm

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

    def _begin(self, X: Any, y: Any) -> tuple[Session, History]:
        check_word("regularizer", self.regularizer, REGULARIZERS)
        if not 0 < self.spread < math.inf:
            raise UsageError(f"spread is {self.spread!r}", do="choose a number above 0, such as 0.1")
        return super()._begin(X, y)
