"""What a training run is told: checked once, before anything is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fewest.errors import MissingExtraError, UsageError, check_word

MODELS = ("logistic", "mlp", "boosted")
SCHEDULES = ("constant", "cosine")
# Adam's step where none is given: the paper's 0.1 makes nets diverge, and a linear model is no better for it.
RATES = {"logistic": 0.02, "mlp": 0.001, "boosted": 0.01}
WARM_UP = 80


@dataclass(frozen=True)
class Schedule:
    """How long and in which steps to train.

    Examples
    --------
    >>> Schedule(batch_size=128, learning_rate=0.01, shape="cosine", l2=0.0).rate_at(0.5)
    0.005
    """

    batch_size: int
    learning_rate: float
    shape: str
    l2: float
    patience: int | None = None
    validation_fraction: float = 0.1

    def rate_at(self, done: float) -> float:
        """Step size when a share of a phase is done."""
        if self.shape == "constant":
            return self.learning_rate
        return round(self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * done)), 12)


def schedule_of(estimator: Any) -> Schedule:
    """The schedule an estimator's parameters describe."""
    return Schedule(
        estimator.batch_size,
        RATES[estimator.model] if estimator.learning_rate is None else estimator.learning_rate,
        estimator.schedule,
        estimator.l2,
        estimator.patience,
        estimator.validation_fraction,
    )


def check_settings(estimator: Any) -> None:
    """Refuse parameters that describe no training run, by name."""
    models = estimator.models
    check_word("model", estimator.model, models)
    check_word("schedule", estimator.schedule, SCHEDULES)
    for name in ("l2", *estimator.weights):
        _at_least(name, getattr(estimator, name), 0.0)
    if getattr(estimator, "distil", 0.0) > 1.0:
        raise UsageError(f"distil is {estimator.distil}", do="choose a share from 0 to 1")
    for name in ("batch_size", "knots"):
        _at_least(name, getattr(estimator, name), 2 if name == "knots" else 1)
    _at_least("epochs", estimator.epochs, 0)
    if estimator.warmup_epochs is not None:
        _at_least("warmup_epochs", estimator.warmup_epochs, 0)
    if estimator.learning_rate is not None and not estimator.learning_rate > 0:
        raise UsageError(f"learning_rate is {estimator.learning_rate}", do="choose a number above 0, or None")
    if not 0.0 < estimator.validation_fraction < 1.0:
        raise UsageError(f"validation_fraction is {estimator.validation_fraction}", do="choose a share such as 0.1")


def _at_least(name: str, value: Any, least: float) -> None:
    if not (isinstance(value, int | float) and not isinstance(value, bool) and least <= value < math.inf):
        raise UsageError(f"{name} is {value!r}", do=f"choose a number of at least {least:g}")


def find_torch() -> Any:
    """The torch module, or a hint how to get it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("training needs torch", do='pip install "fewest[train]"') from error
    return torch


def find_device(word: str) -> str:
    """The device a word stands for; ``auto`` is the GPU where there is one.

    Examples
    --------
    >>> find_device("cpu")
    'cpu'
    """
    torch = find_torch()
    if word == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=word)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f'the device "{word}" cannot be used: {error}', do='use device="auto" or "cpu"') from error
    return word
