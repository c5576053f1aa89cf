"""All-Opt: classifiers whose decisions need few reasons (Section 5.1, "Gradient-based SEV Optimization")."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fewest.decision import Decision
from fewest.errors import FewestWarning
from fewest.models.training._history import History
from fewest.models.training.base import Model, TrainedClassifier
from fewest.models.training.settings import MODELS, Architecture, Optimizer, SevLoss
from fewest.references import References

if TYPE_CHECKING:
    from fewest.models.training._session import Session


class AllOptClassifier(TrainedClassifier):
    """A classifier trained so that one feature is enough to turn its decisions. Needs ``torch``.

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
        ``margin``, ``anchor``, ``distil``, ``refresh``, ``queries_per_step``.
    architecture : Architecture, optional
        ``encoder``, ``knots``, ``hidden``, ``booster``, ``learn``.
    optimizer : Optimizer, optional
        ``learning_rate``, ``schedule``, ``batch_size``, ``l2``, ``patience``, ``validation_fraction``. What is in a
        group is set, and searched over, by two names: ``set_params(optimizer__l2=0.001)``.
    positive : label, optional
        The class decided against a case. Default: the second in order.
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
    >>> import pandas as pd
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9] * 20, "age": [30, 40, 50] * 40})
    >>> model = AllOptClassifier(warmup_epochs=10, epochs=2, positive="bad", loss=SevLoss(margin=0.1))
    >>> model = model.set_params(optimizer__batch_size=32).fit(X, ["good", "good", "good", "bad", "bad", "bad"] * 20)
    >>> import fewest as fw
    >>> int(fw.Explainer(fw.Decision(model, positive="bad"), model.references_).explain(X).sev().max())
    1
    """

    models = MODELS
    encoders: ClassVar[Mapping[str, str]] = {"logistic": "curves", "mlp": "linear", "boosted": "plain"}
    weights = ("c1", "c2")
    groups: ClassVar[Mapping[str, type]] = {"loss": SevLoss, "architecture": Architecture, "optimizer": Optimizer}
    references_: References

    decides_by = "pipeline_"  # the attribute that scores alone: its inside may be read

    def __init__(
        self,
        model: Model = "logistic",
        references: Any = "single",
        c1: float = 1.0,
        c2: float = 1.0,
        warmup_epochs: int | None = None,
        epochs: int = 20,
        loss: SevLoss | None = None,
        architecture: Architecture | None = None,
        optimizer: Optimizer | None = None,
        positive: Any = None,
        device: str = "auto",
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.references = references
        self.c1 = c1
        self.c2 = c2
        self.warmup_epochs = warmup_epochs
        self.epochs = epochs
        self.loss = loss
        self.architecture = architecture
        self.optimizer = optimizer
        self.positive = positive
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _phases(self, session: Session) -> None:
        self._sev_phase(session, self.c1)

    def _sev_phase(self, session: Session, c1: float) -> None:
        """Train on with the SEV loss at this weight."""
        session.sev_phase(c1, self.c2, self.group("loss"), self.epochs)

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
        if not decision.verdicts(session.frame).positive.any():
            warnings.warn(
                f'the trained model decides no row "{self.positive_}", so there is nothing to explain. Lower c1.',
                FewestWarning,
                stacklevel=3,
            )
