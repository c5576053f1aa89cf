"""How a classifier is trained: parameters that belong together, and all of them checked before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Literal, Self

from sklearn.base import BaseEstimator, clone

from fewest.constraints import Immutable
from fewest.errors import MissingExtraError, UsageError, check_number, check_word

MODELS = ("logistic", "mlp", "boosted")
SCHEDULES = ("constant", "cosine")
KINDS = ("minus", "plus", "volume")
# Adam's step where none is given: the paper's 0.1 makes nets diverge, and a linear model is no better for it.
RATES = {"logistic": 0.02, "mlp": 0.001, "boosted": 0.01}
WARM_UP = 80
# The paper's appendix on training: two phases, batches of 128, a step of 0.1, theta 0.05, nothing else in the loss.
PAPER: dict[str, Any] = {
    "warmup_epochs": WARM_UP, "epochs": 20, "batch_size": 128, "learning_rate": 0.1, "l2": 0.0,
    "margin": 0.0, "theta": 0.05, "anchor": False, "refresh": 5,
}  # fmt: skip


@dataclass(frozen=True)
class AlignedBatch:
    """The queries of a batch, those decided positive, as a loss term of yours gets them; what is learned has gradients.

    Parameters
    ----------
    numbers : tensor (n,)
        Their places in the training table.
    scores : tensor (n,)
        Their log-odds of the positive class.
    aligned : tensor (n, k, features)
        Log-odds with one feature taken from each of the k references a query is compared with; with ``kind="plus"``, of
        the references with one feature taken from the query. Of the features that may change.
    references : tensor (n, k)
        Log-odds of these references.
    features : tuple of str
        Names of the features, in the order of ``aligned``.

    Examples
    --------
    >>> def far_references(batch):
    ...     return 0.1 * batch.references.mean()
    >>> SevLoss(term=far_references).term is far_references
    True
    """

    numbers: Any
    scores: Any
    aligned: Any
    references: Any
    features: tuple[str, ...]


@dataclass(frozen=True)
class SevLoss:
    """How All-Opt's terms are computed.

    With f the chance of the positive class, a query x (a row decided positive), r a reference it is compared with, the
    SEV loss, whose weight is C1, is one of

    - ``minus`` (All-Opt-): the mean over x of max(the least of f(x with feature j from r), 1/2 - margin);
    - ``plus`` (All-Opt+): the mean over x of max(1 - the greatest of f(r with feature j from x), 1/2 - margin), that
      is 1 less the earlier paper's min(greatest, 1/2 + margin): for one feature that brings the decision about;
    - ``volume`` (Vol-Opt): the mean over x, r and encoded columns c of log(abs(log-odds of r) / abs(w_c)), the sides
      of the box around r inside which no single column brings the decision about; for linear models only.

    Least and greatest are over the features that may change and the references that x is compared with.

    Parameters
    ----------
    margin : float
        How far below one half an aligned query is low enough; the paper's SEV loss has none.
    theta : float, optional
        How far below one half a reference is low enough; the paper's is 0.05. Default: the margin.
    anchor : bool
        Leave the mean score to the cross-entropy, so that queries are not won by deciding against nobody. The paper's
        loss does not; see `docs/methods/training.md`.
    distil : float
        From 0 to 1: how far the second phase aims at the chances that the model gave after the warm-up instead of the
        labels. 1 keeps a booster, which knows its training rows too well already, from learning them by heart.
    refresh : int
        References that depend on the model are made anew after this many epochs.
    queries_per_step : int, optional
        Up to this many queries of a batch are aligned. Default: all.
    kind : str
        ``minus``, ``plus`` or ``volume``.
    features : sequence of str, optional
        The features that may change (All-Opt-R): the others take no part in the loss. Default: all.
    term : callable, optional
        A term of yours: gets an `AlignedBatch`, gives a tensor with one number, which is added to the loss.
    """

    margin: float = 0.05
    theta: float | None = None
    anchor: bool = True
    distil: float = 0.0
    refresh: int = 5
    queries_per_step: int | None = None
    kind: Literal["minus", "plus", "volume"] = "minus"
    features: Sequence[str] | None = None
    term: Callable[[AlignedBatch], Any] | None = None

    @property
    def reference_margin(self) -> float:
        """Theta as it is used."""
        return self.margin if self.theta is None else self.theta

    @property
    def direction(self) -> Literal["minus", "plus"]:
        """The SEV that it makes small."""
        return "minus" if self.kind == "minus" else "plus"

    def limits(self, names: Sequence[str]) -> list[Immutable]:
        """What keeps the other ones of the features."""
        return [] if self.features is None else [Immutable(name) for name in names if name not in self.features]


@dataclass(frozen=True)
class Architecture:
    """What is trained.

    Parameters
    ----------
    encoder : str or transformer, optional
        ``curves`` (a sum of piecewise linear curves; default of All-Opt's ``logistic``), ``linear`` (default of ``mlp``
        and of ExpO), ``plain`` (default of ``boosted``), or any unfitted transformer of raw rows that keeps features
        apart.
    knots : int
        Corners of a curve.
    hidden : sequence of int
        Sizes of the net's hidden layers.
    booster : estimator, optional
        An unfitted gradient booster of scikit-learn, XGBoost or LightGBM. Default: the paper's 200 trees of depth 3.
    learn : str
        What of the booster is re-learned: ``leaves``, or one weight per tree (``trees``, the paper's way).
    """

    encoder: Any = None
    knots: int = 10
    hidden: Sequence[int] = (128, 128)
    booster: Any = None
    learn: Literal["leaves", "trees"] = "leaves"


@dataclass(frozen=True)
class Optimizer:
    """In which steps it is trained.

    Parameters
    ----------
    learning_rate : float, optional
        Adam's step. Default: 0.02, 0.001 and 0.01 for ``logistic``, ``mlp`` and ``boosted``.
    schedule : str
        ``constant``, or ``cosine``: the step falls to zero over each phase.
    batch_size : int
    l2 : float
        Weight decay; for ``boosted`` towards the booster's own leaf values.
    patience : int, optional
        Stop a phase after this many epochs without progress on rows held out. Default: no early stopping.
    validation_fraction : float
        Share of rows held out for that.
    """

    learning_rate: float | None = None
    schedule: Literal["constant", "cosine"] = "constant"
    batch_size: int = 128
    l2: float = 1e-4
    patience: int | None = None
    validation_fraction: float = 0.1

    def rate_at(self, done: float) -> float:
        """Step size when a share of a phase is done."""
        assert self.learning_rate is not None
        if self.schedule == "constant":
            return self.learning_rate
        return round(self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * done)), 12)


class GroupedParameters(BaseEstimator):  # type: ignore[misc]
    """An estimator some of whose parameters are dataclasses, reached as ``group__name``; None is a group's defaults."""

    groups: ClassVar[Mapping[str, type]] = {}

    @classmethod
    def from_settings(cls, **settings: Any) -> Self:
        """The estimator with parameters given by their own names, whichever group they are in."""
        model = cls()
        names = {name.rpartition("__")[2]: name for name in model.get_params()}
        return model.set_params(**{names.get(name, name): value for name, value in settings.items()})

    def group(self, name: str) -> Any:
        """The group of that name as it is used."""
        given = getattr(self, name)
        return self.groups[name]() if given is None else given

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; deep ones include those of the groups, and of estimators in them."""
        out: dict[str, Any] = super().get_params(deep)
        for name in self.groups if deep else ():
            group = self.group(name)
            for field in fields(group) if is_dataclass(group) else ():
                value = getattr(group, field.name)
                out[f"{name}__{field.name}"] = value
                if hasattr(value, "get_params") and not isinstance(value, type):
                    out |= {f"{name}__{field.name}__{key}": each for key, each in value.get_params().items()}
        return out

    def set_params(self, **params: Any) -> Self:
        """Set parameters; one of a group (``loss__margin=0.1``) replaces the group, which others may share."""
        flat = {key: value for key, value in params.items() if key.partition("__")[0] not in self.groups}
        whole = {key: value for key, value in params.items() if key in self.groups}
        super().set_params(**flat, **whole)
        for key in [key for key in params if key not in flat and key not in whole]:
            name, _, rest = key.partition("__")
            field, _, inner = rest.partition("__")
            group, value = self.group(name), params[key]
            if field not in (each.name for each in fields(group)):
                known = ", ".join(each.name for each in fields(group))
                raise UsageError(f"{name} has no parameter {field!r}", do=f"choose one of {known}")
            if inner:
                value = clone(getattr(group, field)).set_params(**{inner: value})
            setattr(self, name, replace(group, **{field: value}))
        return self


def optimizer_of(estimator: Any) -> Optimizer:
    """The optimizer of an estimator, with the step that its model has by default."""
    optimizer: Optimizer = estimator.group("optimizer")
    rate = optimizer.learning_rate
    return replace(optimizer, learning_rate=RATES[estimator.model] if rate is None else rate)


def check_settings(estimator: Any) -> None:
    """Refuse parameters that describe no training run, by name."""
    for name, kind in estimator.groups.items():
        if not isinstance(estimator.group(name), kind):
            shown = f"{name} is {getattr(estimator, name)!r}"
            raise UsageError(shown, do=f"pass fewest.training.{kind.__name__}(...), or None for its defaults")
    loss, optimizer = estimator.group("loss") if "loss" in estimator.groups else None, estimator.group("optimizer")
    check_word("model", estimator.model, estimator.models)
    check_word("schedule", optimizer.schedule, SCHEDULES)
    _at_least(optimizer, 0.0, "l2")
    _at_least(estimator, 0.0, *estimator.weights)
    if loss is not None:
        _at_least(loss, 0.0, "margin", "distil", *(["theta"] if loss.theta is not None else []))
        if loss.distil > 1.0:
            raise UsageError(f"distil is {loss.distil}", do="choose a share from 0 to 1")
        _check_kind(estimator, loss)
    _at_least(optimizer, 1, "batch_size")
    _at_least(estimator.group("architecture"), 2, "knots")
    _at_least(estimator, 0, "epochs", *(["warmup_epochs"] if estimator.warmup_epochs is not None else []))
    if optimizer.learning_rate is not None and not optimizer.learning_rate > 0:
        raise UsageError(f"learning_rate is {optimizer.learning_rate}", do="choose a number above 0, or None")
    if not 0.0 < optimizer.validation_fraction < 1.0:
        raise UsageError(f"validation_fraction is {optimizer.validation_fraction}", do="choose a share such as 0.1")


def _check_kind(estimator: Any, loss: SevLoss) -> None:
    """Refuse a loss that is not defined for the model, features that are not a list, a term that cannot be called."""
    check_word("kind", loss.kind, KINDS)
    encoder = estimator.group("architecture").encoder or estimator.encoders[estimator.model]
    if loss.kind == "volume" and (estimator.model != "logistic" or encoder == "curves"):
        raise UsageError(
            'kind "volume" is for linear models',
            do='use model="logistic" with architecture=Architecture(encoder="linear")',
        )
    if loss.features is not None and (isinstance(loss.features, str) or len(loss.features) == 0):
        raise UsageError(f"features is {loss.features!r}", do='list the ones that may change: ("debt", "income")')
    if loss.term is not None and not callable(loss.term):
        raise UsageError(f"term is {loss.term!r}", do="pass a function of an AlignedBatch")


def _at_least(holder: Any, least: float, *names: str) -> None:
    for name in names:
        check_number(name, getattr(holder, name), f"choose a number of at least {least:g}", least=least)


def find_torch() -> Any:
    """The torch module, or a hint how to get it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("training needs torch", do='pip install "fewest[train]"') from error
    return torch


def find_device(word: str) -> str:
    """The device a word stands for; ``auto`` is the GPU where there is one."""
    torch = find_torch()
    if word == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=word)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f'the device "{word}" cannot be used: {error}', do='use device="auto" or "cpu"') from error
    return word
