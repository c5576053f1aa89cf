"""All-Opt: classifiers whose decisions need few reasons (Section 5.1, "Gradient-based SEV Optimization")."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fewest.decision import Decision
from fewest.errors import FewestWarning
from fewest.models.training._progress import Diary
from fewest.models.training._recipes import cook, hangs_on_model, recipe_of
from fewest.models.training._session import Session
from fewest.models.training._settings import MODELS
from fewest.models.training._terms import Weights
from fewest.models.training.base import Model, TrainedClassifier
from fewest.references import References


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
    margin : float
        How far below one half is low enough; the paper's SEV loss has none.
    anchor : bool
        Leave the mean score to the cross-entropy, so that queries are not won by deciding against nobody. The paper's
        loss does not; see `docs/methods/training.md`.
    distil : float
        From 0 to 1: how far the second phase aims at the chances that the model gave after the warm-up instead of the
        labels. 1 keeps a booster, which knows its training rows too well already, from learning them by heart.
    encoder : str or transformer, optional
        ``curves`` (default of ``logistic``: a sum of piecewise linear curves), ``linear`` (default of ``mlp``),
        ``plain`` (default of ``boosted``), or any unfitted transformer of raw rows that keeps features apart.
    knots : int
        Corners of a curve.
    hidden : sequence of int
        Sizes of the net's hidden layers.
    booster : estimator, optional
        An unfitted gradient booster of scikit-learn, XGBoost or LightGBM. Default: the paper's 200 trees of depth 3.
    learn : str
        What of the booster is re-learned: ``leaves``, or one weight per tree (``trees``, the paper's way).
    warmup_epochs : int, optional
        Epochs of cross-entropy alone. Default: 80, none for ``boosted``.
    epochs : int
        Epochs with All-Opt's terms.
    batch_size : int
    learning_rate : float, optional
        Adam's step. Default: 0.02, 0.001 and 0.01 by model.
    schedule : str
        ``constant``, or ``cosine``: the step falls to zero over each phase.
    l2 : float
        Weight decay; for ``boosted`` towards the booster's own leaf values.
    patience : int, optional
        Stop a phase after so many epochs without progress on rows held out. Default: no early stopping.
    validation_fraction : float
        Share of rows held out for that.
    refresh : int
        References that depend on the model are made anew after so many epochs.
    queries_per_step : int, optional
        At most so many queries of a batch are aligned. Default: all.
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
    >>> import fewest as fw
    >>> from fewest.datasets import load
    >>> data = load("german")
    >>> model = AllOptClassifier(c1=2.0, warmup_epochs=20, epochs=10).fit(data.X, data.labels)
    >>> str(model.positive_), float(model.score(data.X, data.labels)) > 0.7
    ('good', True)
    >>> model = AllOptClassifier(c1=2.0, warmup_epochs=20, epochs=10, positive="bad").fit(data.X, data.labels)
    >>> explainer = fw.Explainer(fw.Decision(model, positive="bad"), model.references_)
    >>> bool(explainer.explain(data.X).sev().mean() < 1.1)
    True
    """

    models = MODELS
    weights = ("c1", "c2", "margin", "distil")
    references_: References

    decides_by = "pipeline_"  # the attribute that scores alone: its inside may be read

    def __init__(
        self,
        model: Model = "logistic",
        references: Any = "single",
        c1: float = 1.0,
        c2: float = 1.0,
        margin: float = 0.05,
        anchor: bool = True,
        distil: float = 0.0,
        encoder: Any = None,
        knots: int = 10,
        hidden: Sequence[int] = (128, 128),
        booster: Any = None,
        learn: Literal["leaves", "trees"] = "leaves",
        warmup_epochs: int | None = None,
        epochs: int = 20,
        batch_size: int = 128,
        learning_rate: float | None = None,
        schedule: Literal["constant", "cosine"] = "constant",
        l2: float = 1e-4,
        patience: int | None = None,
        validation_fraction: float = 0.1,
        refresh: int = 5,
        queries_per_step: int | None = None,
        positive: Any = None,
        device: str = "auto",
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.references = references
        self.c1 = c1
        self.c2 = c2
        self.margin = margin
        self.anchor = anchor
        self.distil = distil
        self.encoder = encoder
        self.knots = knots
        self.hidden = hidden
        self.booster = booster
        self.learn = learn
        self.warmup_epochs = warmup_epochs
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.l2 = l2
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.refresh = refresh
        self.queries_per_step = queries_per_step
        self.positive = positive
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _phases(self, session: Session) -> None:
        self._sev_phase(session, self.c1)

    def _sev_phase(self, session: Session, c1: float) -> None:
        """Train on with the SEV loss at this weight."""
        session.soften(self.distil)
        weights = Weights(c1, self.c2, self.margin, self.anchor, self.queries_per_step)
        recipe = recipe_of(self.references, self.random_state)
        session.sev_phase(weights, self.epochs, recipe, self.refresh if hangs_on_model(self.references) else None)

    def _finish(self, session: Session, diary: Diary) -> None:
        super()._finish(session, diary)
        decision = Decision(self, positive=self.positive_)
        recipe = recipe_of(self.references, self.random_state)
        self.references_ = cook(recipe, decision, session.frame, session.labels, session.references)
        self._warn(decision, session)

    def _warn(self, decision: Decision, session: Session) -> None:
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
