"""Classifiers trained by gradient descent: what they share, All-Opt and ExpO.

All-Opt's decisions need few reasons (Section 5.1, "Gradient-based SEV Optimization"); ExpO's scores are nearly linear
around every row (appendix), the yardstick beside it. What predicts is a pipeline of plain scikit-learn parts.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, FewestWarning, UsageError, check_number, check_word
from fewest.models.estimators import TableClassifier
from fewest.models.training.settings import (
    MODELS,
    PAPER,
    WARM_UP,
    Architecture,
    GroupedParameters,
    Optimizer,
    SevLoss,
    check_settings,
    find_torch,
)
from fewest.references import References, clusters

if TYPE_CHECKING:  # it needs torch
    from fewest.models.training._session import Session

Model = Literal["logistic", "mlp", "boosted"]
REGULARIZERS = ("fidelity", "1d")
# A row's samples, where their number is not given: a line needs few, a plane more than it has columns.
ON_A_LINE, AROUND = 20, 100


class History:
    """What every epoch came to, kept and, where that is wanted, shown by a bar on stderr."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, float, float, float]] = []
        self.bar: Any = None
        self.task: Any = None

    def add(self, phase: str, loss: float, accuracy: float, sev: float) -> None:
        """Take note of an epoch; the estimate of mean SEV is NaN where there is none."""
        self.rows.append((len(self.rows) + 1, phase, loss, accuracy, sev))
        if self.bar is not None:
            shown = "" if math.isnan(sev) else f"  mean SEV about {sev:.2f}"
            line = f"{phase}  loss {loss:.4f}  accuracy {accuracy:.3f}{shown}"
            self.bar.update(self.task, advance=1, description=line)

    def table(self) -> pd.DataFrame:
        """Epoch by epoch."""
        return pd.DataFrame(self.rows, columns=["epoch", "phase", "loss", "accuracy", "sev_estimate"])

    @contextmanager
    def shown(self, epochs: int, wanted: bool) -> Iterator[None]:
        """While this lasts, every epoch moves a bar on stderr."""
        if not wanted:
            yield
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=Console(stderr=True)) as self.bar:
            self.task = self.bar.add_task("training", total=epochs)
            yield
        self.bar = None


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
            session.trainer.run("warm-up", self._warm_up)
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


@dataclass(eq=False, repr=False)
class AllOptClassifier(TrainedClassifier):
    """A classifier trained so that one feature is enough to change the outcome. Needs ``torch``.

    The loss is cross-entropy + ``c1`` * SEV loss + ``c2`` * loss of positive references. The SEV loss is the mean, over
    the rows decided positive, of the least score that aligning one original feature with the reference gives, floored
    at ``0.5 - margin``. Which variant is trained (All-Opt-1, -cluster, -flexible) is a matter of the references.

    Parameters
    ----------
    model : str
        ``logistic``, ``mlp``, or ``boosted``: the trees of a fitted booster with re-learned leaf values.
    references : str, References or callable
        What decisions are compared with: ``single``, ``clusters``, fixed references, or a function of a decision and
        training rows such as ``functools.partial(fewest.references.clusters, n_clusters=4)``.
    c1, c2 : float
        Weights of the SEV loss and of the loss of positive references.
    warmup_epochs : int, optional
        Epochs of cross-entropy alone. Default: 80, none for ``boosted``.
    epochs : int
        Epochs with All-Opt's terms.
    loss : SevLoss, optional
        ``margin``, ``theta``, ``anchor``, ``distil``, ``refresh``, ``queries_per_step``; ``kind`` (All-Opt+, Vol-Opt),
        ``features`` (All-Opt-R) and ``term``, one of yours.
    architecture : Architecture, optional
        ``encoder``, ``knots``, ``hidden``, ``booster``, ``learn``.
    optimizer : Optimizer, optional
        ``learning_rate``, ``schedule``, ``batch_size``, ``l2``, ``patience``, ``validation_fraction``. What is in a
        group is set, and searched over, by two names: ``set_params(optimizer__l2=0.001)``.
    positive : label, optional
        The class whose decisions are explained. Default: the second in order.
    device : str
        ``auto`` is the GPU where there is one.
    random_state : int
    verbose : bool
        Show a progress bar on stderr.

    Attributes
    ----------
    references_ : References
        Those of the trained model, ready for `fewest.Explainer`.
    pipeline_, history_, positive_, schema_, classes_
        See `TrainedClassifier`.

    Examples
    --------
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9] * 20, "age": [30, 40, 50] * 40})
    >>> model = AllOptClassifier(warmup_epochs=10, epochs=2, positive="bad", loss=SevLoss(margin=0.1))
    >>> model = model.set_params(optimizer__batch_size=32).fit(X, ["good", "good", "good", "bad", "bad", "bad"] * 20)
    >>> import fewest as fw
    >>> int(fw.Explainer(fw.Decision(model, positive="bad"), model.references_).explain(X).sev.max())
    1
    """

    model: Model = "logistic"
    references: Any = "single"
    c1: float = 1.0
    c2: float = 1.0
    warmup_epochs: int | None = None
    epochs: int = 20
    loss: SevLoss | None = None
    architecture: Architecture | None = None
    optimizer: Optimizer | None = None
    positive: Any = None
    device: str = "auto"
    random_state: int = 0
    verbose: bool = False

    models = MODELS
    encoders: ClassVar[Mapping[str, str]] = {"logistic": "curves", "mlp": "linear", "boosted": "plain"}
    weights = ("c1", "c2")
    groups: ClassVar[Mapping[str, type]] = {"loss": SevLoss, "architecture": Architecture, "optimizer": Optimizer}
    references_: References = field(init=False)

    decides_by = "pipeline_"  # the attribute that scores alone: its inside may be read

    @classmethod
    def paper(cls, model: Model = "logistic", **settings: Any) -> Self:
        """The estimator as the paper's appendix has it: its loss, its step, 80 + 20 epochs, what it trains.

        The SEV loss is floored at 0.5, the references' at 0.5 - 0.05, without anchor and weight decay; Adam's step is
        0.1 with batches of 128; numbers enter straight (``linear``), and the trees of a booster are re-weighted.
        With ``references="clusters"`` they are those of ``preset="paper"``, made anew every five epochs.

        The paper chose C1 and C2 by grid search and prints no grid; the authors' scripts have 0.1, 1 and 10 for C1, and
        0 for C2: ``AllOptSearchCV(AllOptClassifier.paper(), c1=(0.1, 1, 10), c2=(0, 1))`` chooses on rows held out.

        Parameters
        ----------
        model : str
            ``logistic``, ``mlp`` or ``boosted``.
        **settings
            What is to differ, by its own name, whichever group it is in.

        Examples
        --------
        >>> model = AllOptClassifier.paper("boosted", c1=3.0)
        >>> model.loss.theta, model.loss.margin, model.architecture.learn, model.warmup_epochs, model.c1
        (0.05, 0.0, 'trees', 80, 3.0)
        """
        made = {"learn": "trees"} if model == "boosted" else {"encoder": "linear"}
        if settings.get("references") == "clusters":
            settings["references"] = partial(clusters, preset="paper")
        return cls.from_settings(**{**PAPER, **made, "model": model, **settings})

    def _phases(self, session: Session) -> None:
        session.sev_phase(self.c1, self.c2, self.group("loss"), self.epochs)

    def _finish(self, session: Session, history: History) -> None:
        super()._finish(session, history)
        decision = Decision(self, positive=self.positive_)
        self.references_ = session.references_under(decision)
        verdicts = decision.verdicts(self.references_.frame)
        if verdicts.positive.any():
            named = ", ".join(self.references_.names[k] for k in np.flatnonzero(verdicts.positive))
            warnings.warn(
                f"references are decided positive by the trained model: {named}. Raise c2, or choose other references.",
                FewestWarning,
                stacklevel=3,
            )
        if not decision.refuses(session.frame).any():
            warnings.warn(
                f'the trained model decides no row "{self.positive_}", so there is nothing to explain. Lower c1.',
                FewestWarning,
                stacklevel=3,
            )


@dataclass(eq=False, repr=False)
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
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9] * 20, "age": [30, 40, 50] * 40})
    >>> model = ExpOClassifier(warmup_epochs=3, epochs=2).fit(X, [0, 0, 0, 1, 1, 1] * 20)
    >>> model.history_["phase"].value_counts().to_dict()
    {'warm-up': 3, 'ExpO': 2}
    """

    model: Literal["logistic", "mlp"] = "logistic"
    regularizer: Literal["fidelity", "1d"] = "fidelity"
    c: float = 0.01
    samples: int | None = None
    spread: float = 0.1
    epochs: int = 20
    warmup_epochs: int | None = None
    architecture: Architecture | None = None
    optimizer: Optimizer | None = None
    positive: Any = None
    random_state: int = 0
    device: str = "auto"
    verbose: bool = False

    models = ("logistic", "mlp")
    encoders: ClassVar[Mapping[str, str]] = {"logistic": "linear", "mlp": "linear"}
    weights = ("c",)
    groups: ClassVar[Mapping[str, type]] = {"architecture": Architecture, "optimizer": Optimizer}

    decides_by = "pipeline_"  # the attribute that scores alone: its inside may be read

    def _phases(self, session: Session) -> None:
        from fewest.models.training._trainer import FidelityTerm

        samples = self._samples(len(session.blocks.feature_of))
        term = FidelityTerm(self.regularizer, self.c, samples, self.spread, self.random_state)
        session.trainer.run("ExpO", self.epochs, term)

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
        check_number("spread", self.spread, "choose a number above 0, such as 0.1", above=0)
        return super()._begin(X, y)
