"""What decides and the rows it was trained on, from files or from the demo inside the package."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.apps import child_process
from fewest.apps.cli._demo import train_german
from fewest.apps.cli._files import read_table
from fewest.apps.cli._text import clean, label_key
from fewest.decision import Decision
from fewest.errors import DataError, PositiveReferenceError, UsageError
from fewest.persistence import models
from fewest.references.file import read_saved
from fewest.tables.model_kinds import NUMBERS
from fewest.tables.schema import Schema
from fewest.tables.wording import show_label

DEMOS = ("german",)


@dataclass(frozen=True, eq=False)
class Source:
    """A decision, its training rows with their labels, and what their features are."""

    name: str
    decision: Decision
    X: pd.DataFrame
    labels: npt.NDArray[Any] | None  # None where no target column was named
    schema: Schema
    cases: pd.DataFrame | None = None  # rows to explain, where the source has some of its own
    by_default: bool = False  # whether nobody said which class is explained


def load_model(path: Path, allow_pickle: bool = False) -> Any:
    """A model from a file; in a child process with limits, loading has a limit of its own."""
    with child_process.loading():
        return models.load_model(path, allow_pickle)


def from_demo(
    name: str, model: Path | None = None, positive: str | None = None, threshold: float | None = None,
    allow_pickle: bool = False,
) -> Source:  # fmt: skip
    """The embedded table with the demo's logistic model, trained on four fifths of it, or with a model of yours."""
    if name not in DEMOS:
        raise UsageError(f'there is no demo "{name}"', do=f"choose from {', '.join(DEMOS)}")
    german, fitted, X, labels = train_german("logistic")
    if model is not None:
        fitted, X, labels = load_model(model, allow_pickle), german.X, german.labels
    decision = Decision(fitted, positive=class_of(fitted, positive or "bad"), threshold=threshold)
    return Source(name, decision, X, labels, german.schema, german.X)


def from_files(
    model: Path, train: Path, target: str | None, positive: str | None = None, threshold: float | None = None,
    allow_pickle: bool = False, above: bool | None = None,
) -> Source:  # fmt: skip
    """A model file and its training table."""
    fitted = load_model(model, allow_pickle)
    decision = Decision(fitted, positive=class_of(fitted, positive), threshold=threshold, above=above is not False)
    table = read_table(train)
    if target is not None and target not in table.columns:
        raise DataError(f'{train.name} has no column "{target}"', do="check --target")
    X = table if target is None else table.drop(columns=target)
    if decision.columns is not None and set(decision.columns) <= set(X.columns):
        X = X[list(decision.columns)]
    labels = None if target is None else read_labels(table[target], decision, train.name)
    schema = Schema.infer(X, columns=decision.columns)
    return _announced(Source(train.name, decision, X, labels, schema, by_default=positive is None))


def from_references(
    model: Path, references: Path, positive: str | None, threshold: float | None, allow_pickle: bool,
    above: bool | None = None,
) -> Source:  # fmt: skip
    """What decides and what the features are, from the model and a references file that knows its schema."""
    saved = read_saved(references) if references.suffix.lower() == ".json" else None
    if saved is None or saved.schema is None:
        raise UsageError(
            f"{references.name} does not say what the features are",
            do="pass --train FILE, or make the references with `fewest references build`",
        )
    known = saved.decision
    fitted = load_model(model, allow_pickle)
    if positive is None and known.get("positive") is not None:
        positive = str(known["positive"])
    above = bool(known.get("above", True)) if above is None else above
    if threshold is None and known.get("threshold") is not None:
        threshold = float(known["threshold"]) if above else -float(known["threshold"])
    decision = Decision(fitted, positive=class_of(fitted, positive), threshold=threshold, above=above)
    return _announced(Source(references.name, decision, saved.frame, None, saved.schema, by_default=positive is None))


def _announced(source: Source) -> Source:
    """The source; which class is explained is printed where nobody said it."""
    if source.by_default and source.decision.positive is not None:
        said = clean(show_label(source.decision.positive))
        print(f"explaining class {said} (default); choose with --positive", file=sys.stderr)
    return source


@contextmanager
def other_class_first(source: Source) -> Iterator[None]:
    """Where the typical accepted case is itself refused, and nobody said what a refusal is: ask that first."""
    try:
        yield
    except PositiveReferenceError as error:
        other = source.decision.negative_name
        if not source.by_default or other not in map(str, source.decision.classes):
            raise
        do = f'--positive {other}, if "{other}" is the outcome to explain; else {error.do}'
        raise PositiveReferenceError(error.message, do=do) from error


def class_of(model: Any, text: str | None, option: str = "--positive") -> Any:
    """The model's class that is written so."""
    if text is None:
        return None
    classes = np.asarray(getattr(model, "classes_", ())).tolist()
    known = {label_key(label): label for label in classes}
    if label_key(text) not in known:
        shown = ", ".join(str(label) for label in classes) or "none"
        raise UsageError(f'{option} {text}: the model has no class "{text}"', do=f"its classes are {shown}")
    return known[label_key(text)]


def decision_of(model: Any, settings: Mapping[str, Any]) -> Decision:
    """The decision a run was made with, from the model and the run's settings."""
    kind = str(settings["score"])
    positive, against = (
        None if settings[name] is None else class_of(model, str(settings[name])) for name in ("positive", "against")
    )
    if kind in NUMBERS:
        words = {int(side): str(name) for side, name in settings.get("names", {}).items()}
        above, cut = bool(settings.get("above", True)), float(settings["threshold"])
        return Decision(model, threshold=cut if above else -cut, names=words or None, above=above)
    chosen = kind if kind in ("proba", "decision", "label") else None
    names = {class_of(model, label): name for label, name in settings.get("names", {}).items()} if chosen else None
    return Decision(model, positive, float(settings["threshold"]), against, chosen, names or None)


def read_labels(column: pd.Series[Any], decision: Decision, file: str) -> npt.NDArray[Any]:
    """The labels of a column as the model's own classes."""
    known = {label_key(label): label for label in decision.classes}
    if not known:
        return np.asarray(column)
    keys = [label_key(label) for label in column]
    strange = [row for row, key in enumerate(keys) if key not in known]
    if strange:
        row = strange[0]
        raise DataError(
            f'{file}, row {row}, column "{column.name}": {show_label(column.iloc[row])} is not a class of the model',
            do=f"its classes are {', '.join(str(label) for label in decision.classes)}",
        )
    return np.array([known[key] for key in keys], dtype=object)
