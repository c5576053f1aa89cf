"""``fewest train allopt``: a table in; a model whose decisions need few reasons, and what that cost, out."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.apps.cli._text import clean
from fewest.apps.cli._train_table import TrainLabels, check_folder, cut, read_labels, read_training
from fewest.errors import FewestWarning, MissingExtraError, UsageError
from fewest.models.training import AllOptClassifier, AllOptSearchCV, Comparison, compare
from fewest.tables.files import write_text

if TYPE_CHECKING:
    from fewest.apps.cli._train import AllOptRequest

C1, TOLERANCE = 1.0, 0.01
HOW_TO_USE = "model.skops and references.json are for `fewest explain --model ... --references ...`."


def run(request: AllOptRequest) -> int:
    """Train, hold the result against the same model before All-Opt's phase on the test rows, print, write."""
    _check(request)
    X, column = read_training(request.data, request.target)
    labels = read_labels(column, request.positive)
    X_train, X_test, y_train, y_test = cut(X, _own(column, labels), request.test_size, request.random_state)
    plain = _estimator(request, _own(column, labels)[np.flatnonzero(labels.y)[0]])
    model = _learner(request, plain).fit(X_train, y_train)
    with warnings.catch_warnings():
        # What is wrong with the model before does not concern the one that was asked for.
        warnings.simplefilter("ignore", FewestWarning)
        before = plain.set_params(c1=0.0, c2=0.0, epochs=0, verbose=False).fit(X_train, y_train)
    figures = compare(before, model, X_test, y_test, X_train=X_train, y_train=y_train)
    report = _report(request, model, figures, labels.names)
    if request.out is not None:
        report["files"] = _write(model, report, request.out)
    print(json.dumps(report, indent=1, allow_nan=False) if request.as_json else clean(_as_text(report, figures)))
    return 0


def _check(request: AllOptRequest) -> None:
    """Refuse contradictions before anything is read or trained."""
    check_folder(request.out)
    if request.search and request.c1 is not None:
        raise UsageError("--search finds C1, but --c1 is given", do="drop one of them")
    if request.tolerance is not None and not request.search:
        raise UsageError("--tolerance is for --search", do="drop it, or add --search")
    if request.out is not None:
        _skops()


def _own(column: pd.Series[Any], labels: TrainLabels) -> npt.NDArray[Any]:
    """Labels as they stand in the table; of more than two, all but the one being explained under one name."""
    own = [column[labels.y == side].iloc[0] for side in (0, 1)] if column.nunique() == 2 else list(labels.names)
    return np.array(own)[labels.y]


def _estimator(request: AllOptRequest, positive: Any) -> AllOptClassifier:
    return AllOptClassifier(
        request.model.value, request.references.value, c1=C1 if request.c1 is None else request.c1, c2=request.c2,
        warmup_epochs=request.warmup_epochs, epochs=request.epochs, positive=positive, device=request.device,
        random_state=request.random_state, verbose=not request.search,
    )  # fmt: skip


def _learner(request: AllOptRequest, plain: AllOptClassifier) -> AllOptClassifier | AllOptSearchCV:
    from sklearn.base import clone

    if not request.search:
        return clone(plain)  # type: ignore[no-any-return]
    tolerance = TOLERANCE if request.tolerance is None else request.tolerance
    return AllOptSearchCV(plain, tolerance=tolerance, random_state=request.random_state, verbose=True)


def _report(
    request: AllOptRequest, model: AllOptClassifier | AllOptSearchCV, figures: Comparison, names: tuple[str, str]
) -> dict[str, Any]:
    """Plain values for programs; nothing in it depends on the time or the place."""
    searched = isinstance(model, AllOptSearchCV)
    content = figures.to_dict()
    return {
        "model": str(request.model), "references": str(request.references), "names": list(names),
        "c1": model.best_c1_ if searched else model.c1, "c2": model.best_c2_ if searched else model.c2,
        "test_rows": content["rows"], "figures": content["figures"], "changed": len(content["changed"]),
        "front": json.loads(model.front_.to_json(orient="records")) if searched else None, "files": [],
    }  # fmt: skip


def _write(model: AllOptClassifier | AllOptSearchCV, report: dict[str, Any], folder: Path) -> list[str]:
    """The model as plain scikit-learn parts, its references, and tables."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".model.{os.getpid()}.part"
    try:
        _skops().dump(model.pipeline_, beside)
        os.replace(beside, folder / "model.skops")
    finally:
        beside.unlink(missing_ok=True)
    model.references_.save(folder / "references.json")
    tables = {"history.csv": model.history_}
    if isinstance(model, AllOptSearchCV):
        tables["front.csv"] = model.front_
    for name, table in tables.items():
        write_text(folder / name, str(table.to_csv(index=False, lineterminator="\n")))
    files = [str(folder / name) for name in ("model.skops", "references.json", "report.json", *tables)]
    write_text(folder / "report.json", json.dumps({**report, "files": files}, indent=1, allow_nan=False) + "\n")
    return files


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingExtraError("writing a model needs skops", do="pip install skops, or leave --out away") from error
    return skops.io


def _as_text(report: dict[str, Any], figures: Comparison) -> str:
    lines = [str(figures), f"C1 {report['c1']:g}" + ("" if report["front"] is None else ", chosen on rows held out")]
    if report["files"]:
        lines += ["", f"Written: {', '.join(report['files'])}.", HOW_TO_USE]
    return "\n".join(lines)
