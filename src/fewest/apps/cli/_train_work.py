"""The work of ``fewest train``: a table in; a tree or a model whose decisions need few reasons, and its cost, out."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.apps.cli._files import check_folder, read_table
from fewest.apps.cli._text import clean, label_key
from fewest.errors import DataError, FewestWarning, MissingExtraError, UsageError
from fewest.experiments.paper.data import Rows
from fewest.experiments.paper.trees import measure
from fewest.models.rashomon import TOptClassifier
from fewest.models.training import AllOptClassifier, AllOptSearchCV, Architecture, Comparison, compare
from fewest.models.trees.file import as_dict, save_tree
from fewest.reporting import tree_svg, tree_text
from fewest.tables.files import write_bytes, write_text

if TYPE_CHECKING:
    from fewest.apps.cli._command_groups import AllOptRequest, TOptRequest

TREE_USE = "tree.json is a model for `fewest explain --model`; front.csv holds all there was to choose from."
C1, TOLERANCE = 1.0, 0.01
MODEL_USE = "model.skops and references.json are for `fewest explain --model ... --references ...`."


def read_training(path: Path, target: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Features and the column of labels."""
    table = read_table(path)
    if target not in table.columns:
        raise DataError(f'{path.name} has no column "{target}"', do="check --target")
    return table.drop(columns=target), table[target]


def read_labels(column: pd.Series[Any], positive: str | None) -> tuple[npt.NDArray[np.int64], tuple[str, str]]:
    """Labels as 0 and 1, and what those are called.

    1 is the class being explained, by default the second of two; all others are 0.
    """
    if column.isna().any():
        row = int(np.flatnonzero(column.isna().to_numpy())[0])
        raise DataError(f'row {row}, column "{column.name}": the label is missing', do="leave such rows out")
    classes = sorted(column.unique().tolist(), key=lambda label: (isinstance(label, str), label))
    known = {label_key(label): str(label) for label in classes}
    shown = ", ".join(list(known.values())[:5]) + (", ..." if len(known) > 5 else "")
    if len(known) < 2 or (len(known) > 2 and positive is None):
        raise DataError(
            f'column "{column.name}" has {len(known)} classes ({shown}), but two are needed',
            do="check --target" if len(known) < 2 else "check --target, or name one with --positive",
        )
    chosen = list(known)[-1] if positive is None else label_key(positive)
    if chosen not in known:
        raise UsageError(f'--positive {positive}: "{column.name}" has no such class', do=f"its classes are {shown}")
    others = [name for key, name in known.items() if key != chosen]
    y = np.array([label_key(label) == chosen for label in column]).astype(np.int64)
    return y, (others[0] if len(others) == 1 else f"not {known[chosen]}", known[chosen])


def cut(X: pd.DataFrame, y: npt.NDArray[Any], test_size: float, random_state: int) -> list[Any]:
    """Training features, test features, training labels and test labels; both parts have both classes alike."""
    from sklearn.model_selection import train_test_split

    if not 0 < test_size < 1:
        raise UsageError(f"--test-size {test_size:g}", do="choose a share between 0 and 1, say 0.2")
    try:
        return list(train_test_split(X, y, test_size=test_size, stratify=y, random_state=random_state))
    except ValueError as error:
        raise DataError(f"the table cannot be split: {error}", do="pass more rows of both classes") from error


def run_topt(request: TOptRequest) -> int:
    """Fit on the training part, measure on the other, print, write."""
    check_folder(request.out)
    X, column = read_training(request.data, request.target)
    y, names = read_labels(column, request.positive)
    rows = Rows(*cut(X, y, request.test_size, request.random_state))
    model = TOptClassifier(
        regularization=request.regularization, bound=request.bound, max_depth=request.depth,
        random_state=request.random_state, verbose=True,
    ).fit(rows.X_train, rows.y_train)  # fmt: skip
    figures = measure(model, rows)
    files = [] if request.out is None else _write_tree(model, names, request.out)
    if request.as_json:
        known = {name: value if np.isfinite(value) else None for name, value in figures.items()}
        report = {
            **known, "trees": model.n_trees_, "leaf_range": list(model.leaf_range_), "objective": model.objective_,
            "model": as_dict(model.tree_, names), "files": files,
        }  # fmt: skip
        print(json.dumps(report, indent=1, allow_nan=False))
    else:
        print(clean(_topt_text(model, figures, names, files)))
    return 0


def _write_tree(model: TOptClassifier, names: tuple[str, str], folder: Path) -> list[str]:
    """Files for programs, people and spreadsheets.

    The tree alone is written: a skops file cannot hold the estimator, which keeps a schema and a table.
    """
    folder.mkdir(parents=True, exist_ok=True)
    save_tree(model.tree_, folder / "tree.json", names)
    write_text(folder / "tree.svg", tree_svg(model.tree_, names=names))
    write_text(folder / "front.csv", str(model.front_.to_csv(index=False, lineterminator="\n")))
    return [str(folder / name) for name in ("tree.json", "tree.svg", "front.csv")]


def _topt_text(model: TOptClassifier, figures: dict[str, float], names: tuple[str, str], files: list[str]) -> str:
    fewest, most = model.leaf_range_
    sev = "-" if np.isnan(figures["sev_t"]) else f"{figures['sev_t']:.2f}"
    lines = [
        f"train accuracy  {figures['train_accuracy']:.3f}",
        f"test accuracy   {figures['test_accuracy']:.3f}",
        f"mean SEV-T      {sev} over {figures['decided']:,.0f} test rows decided {names[1]}"
        + (f"; {figures['unreachable']:,.0f} cannot be changed" if figures["unreachable"] else ""),
        f"chosen from     {model.n_trees_:,} trees of {fewest} to {most} leaves",
        "",
        tree_text(model.tree_, names),
    ]
    if files:
        lines += ["", f"Written: {', '.join(files)}.", TREE_USE]
    return "\n".join(lines)


def run_allopt(request: AllOptRequest) -> int:
    """Train, hold the result against the same model before All-Opt's phase on the test rows, print, write."""
    from sklearn.base import clone

    check_folder(request.out)
    if request.search and request.c1 is not None:
        raise UsageError("--search finds C1, but --c1 is given", do="drop one of them")
    if request.tolerance is not None and not request.search:
        raise UsageError("--tolerance is for --search", do="drop it, or add --search")
    if request.out is not None:
        _skops()
    X, column = read_training(request.data, request.target)
    y, names = read_labels(column, request.positive)
    # Labels as they stand in the table; of more than two, all but the one being explained under one name.
    own = np.array([column[y == side].iloc[0] for side in (0, 1)] if column.nunique() == 2 else list(names))
    X_train, X_test, y_train, y_test = cut(X, own[y], request.test_size, request.random_state)
    plain = AllOptClassifier(
        request.model.value, request.references.value, c1=C1 if request.c1 is None else request.c1, c2=request.c2,
        warmup_epochs=request.warmup_epochs, epochs=request.epochs, positive=own[1], device=request.device,
        random_state=request.random_state, verbose=not request.search, architecture=_architecture(request, X),
    )  # fmt: skip
    model: AllOptClassifier | AllOptSearchCV = clone(plain)
    if request.search:
        tolerance = TOLERANCE if request.tolerance is None else request.tolerance
        model = AllOptSearchCV(plain, tolerance=tolerance, random_state=request.random_state, verbose=True)
    try:
        model.fit(X_train, y_train)
    except DataError as error:
        if request.encoder is None and X_train.isna().any(axis=None):
            raise DataError(error.message, do="fill it in, or pass --encoder fill") from error
        raise
    with warnings.catch_warnings():
        # What is wrong with the model before does not concern the one that was asked for.
        warnings.simplefilter("ignore", FewestWarning)
        before = plain.set_params(c1=0.0, c2=0.0, epochs=0, verbose=False).fit(X_train, y_train)
    figures = compare(before, model, X_test, y_test, X_train=X_train, y_train=y_train)
    report = _report(request, model, figures, names)
    if request.out is not None:
        report["files"] = _write(model, report, request.out)
    if request.as_json:
        print(json.dumps(report, indent=1, allow_nan=False))
        return 0
    print(clean(f"{figures}\nC1 {report['c1']:g}{', chosen on rows held out' if request.search else ''}"))
    if report["files"]:
        print(clean(f"\nWritten: {', '.join(report['files'])}.\n{MODEL_USE}"))
    return 0


def _architecture(request: AllOptRequest, X: pd.DataFrame) -> Architecture | None:
    """How columns are encoded, where the call says so."""
    if request.encoder is None:
        return None
    if request.encoder.value != "fill":
        return Architecture(encoder=request.encoder.value)
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = list(X.select_dtypes("number"))
    filled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    levels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    others = [name for name in X.columns if name not in numbers]
    return Architecture(encoder=make_column_transformer((filled, numbers), (levels, others)))


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
    write_bytes(folder / "model.skops", _skops().dumps(model.pipeline_))
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
