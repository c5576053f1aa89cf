"""``fewest explain``: a table, a model and its training table in; verified answers out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest import references as fw_references
from fewest.cli._files import check_result_path, read_table, write_result
from fewest.cli._models import load_model
from fewest.cli._text import clean, progress
from fewest.constraints import AtMost, Constraint, Constraints, Immutable
from fewest.decision import Decision
from fewest.errors import DataError, TimeLimitError, UndefinedError, UsageError
from fewest.explainer import Explainer
from fewest.explanation import STATUSES, Status
from fewest.explanations import Explanations
from fewest.references import References
from fewest.schema import Schema

SENTENCES = 5


@dataclass(frozen=True)
class Request:
    """What was asked on the command line."""

    data: Path
    model: Path
    train: Path
    target: str | None = None
    positive: str | None = None
    threshold: float | None = None
    centre: Any = "mean"
    references: Path | None = None
    immutable: tuple[str, ...] = ()
    weight: tuple[str, ...] = ()
    at_most: float | None = None
    plus: bool = False
    alternatives: int = 0
    time_limit: float | None = None
    out: Path | None = None
    as_json: bool = False
    strict: bool = False
    allow_pickle: bool = False


def run(request: Request) -> int:
    """Explain the table; the results are written before an incomplete end is reported."""
    check_result_path(request.out)
    if request.target is None and request.references is None:
        raise UsageError("without --references the training labels are needed", do="pass --target COL")
    weights = read_weights(request.weight)
    explainer = _explainer(request, weights)
    cases = read_table(request.data, text=_text_columns(explainer.schema))
    with progress("explaining") as advance:
        out = explainer.explain(
            cases, alternatives=request.alternatives, time_limit=request.time_limit, progress=advance
        )
    if request.out is not None:
        write_result(out, request.out, f"Which facts decided? {request.data.name}", f"predicted {out[0].positive}")
    print(out.to_json() if request.as_json else clean(as_text(out)))
    return _ending(request, out)


def read_weights(pairs: tuple[str, ...]) -> dict[str, float]:
    """Read ``COL=W`` pairs; the last equals sign divides, as column names may hold one.

    Examples
    --------
    >>> read_weights(("age=3", "a=b=0.5"))
    {'age': 3.0, 'a=b': 0.5}
    """
    weights = {}
    for pair in pairs:
        name, sign, number = pair.rpartition("=")
        try:
            if not (sign and name):
                raise ValueError
            weights[name] = float(number)
        except ValueError:
            raise UsageError(f"--weight {pair}: this is not COL=W", do="e.g. --weight age=3") from None
    return weights


def _explainer(request: Request, weights: dict[str, float]) -> Explainer:
    model = load_model(request.model, request.allow_pickle)
    decision = Decision(model, positive=_class(model, request.positive), threshold=request.threshold)
    constraints: list[Constraint] = [Immutable(name) for name in request.immutable]
    if request.at_most is not None:
        constraints.append(AtMost(request.at_most))
    return Explainer(
        decision,
        _references(request, decision),
        constraints=Constraints(*constraints),
        weights=weights,
        direction="plus" if request.plus else "minus",
    )


def _class(model: Any, text: str | None) -> Any:
    """The model's class that is written so."""
    if text is None:
        return None
    classes = np.asarray(getattr(model, "classes_", ())).tolist()
    known = {_key(label): label for label in classes}
    if _key(text) not in known:
        shown = ", ".join(str(label) for label in classes) or "none"
        raise UsageError(f'--positive {text}: the model has no class "{text}"', do=f"its classes are {shown}")
    return known[_key(text)]


def _key(label: Any) -> str:
    """The same text for labels that mean the same: 1, 1.0 and "1"."""
    try:
        return repr(float(label))
    except (TypeError, ValueError):
        return str(label).strip()


def _text_columns(schema: Schema) -> list[str]:
    """Columns that are text in the training table."""
    return [name for name, dtype in schema.dtypes.items() if _is_text(dtype)]


def _is_text(dtype: Any) -> bool:
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    return bool(pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype))


def _references(request: Request, decision: Decision) -> References:
    table = read_table(request.train)
    X = table.drop(columns=[request.target] if request.target in table.columns else [])
    if decision.columns is not None and set(decision.columns) <= set(X.columns):
        X = X[list(decision.columns)]
    if request.references is not None:
        return _supplied(request.references, decision, X)
    if request.target not in table.columns:
        raise DataError(f'{request.train.name} has no column "{request.target}"', do="check --target")
    labels = read_labels(table[request.target], decision, request.train.name)
    return fw_references.single(decision, X, labels, centre=request.centre)


def _supplied(path: Path, decision: Decision, X: pd.DataFrame) -> References:
    """References from a file; a table is read like the training table."""
    if path.suffix.lower() != ".json":
        schema = Schema.infer(X)
        return fw_references.supplied(decision, read_table(path, text=_text_columns(schema)), schema=schema)
    try:
        return fw_references.supplied(decision, path, X=X)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path.name} is not a references file: {type(error).__name__}", do="write it with References.save"
        ) from error


def read_labels(column: pd.Series[Any], decision: Decision, file: str) -> npt.NDArray[Any]:
    """The labels of a column as the model's own classes."""
    known = {_key(label): label for label in decision.classes}
    if not known:
        return np.asarray(column)
    keys = [_key(label) for label in column]
    strange = [row for row, key in enumerate(keys) if key not in known]
    if strange:
        row = strange[0]
        raise DataError(
            f'{file}, row {row}, column "{column.name}": {column.iloc[row]!r} is not a class of the model',
            do=f"its classes are {', '.join(str(label) for label in decision.classes)}",
        )
    return np.array([known[key] for key in keys], dtype=object)


def as_text(out: Explanations) -> str:
    """Figures, then the first sentences."""
    lines = [str(out.summary())]
    against = np.flatnonzero(out.answers.status != STATUSES.index(Status.ALREADY_NEGATIVE))
    shown = [out[int(row)] for row in against[:SENTENCES]]
    if shown:
        lines += ["", *(f"{answer.label}: {answer}" for answer in shown)]
    if len(against) > len(shown):
        lines.append(f"... and {len(against) - len(shown):,} more: --json or --out gives all")
    return "\n".join(lines)


def _ending(request: Request, out: Explanations) -> int:
    """0, or an error that says what is incomplete: it comes after the results."""
    counts = out.counts()
    stopped, impossible = counts[Status.BUDGET.value], counts[Status.UNREACHABLE.value]
    if request.time_limit is not None and stopped and out.seconds >= request.time_limit:
        raise TimeLimitError(
            f"the time limit of {request.time_limit:g} s was reached: {stopped:,} of {len(out):,} cases are unfinished",
            do="allow more time; what was found is in the results",
        )
    if request.strict and (stopped or impossible):
        raise UndefinedError(
            f"{impossible:,} cases have no answer with this reference and {stopped:,} are unfinished",
            do="look at their status in the results, or leave out --strict",
        )
    return 0
