"""``fewest demo``: German Credit from raw columns to a run folder with a report, in one command."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest import references
from fewest.apps.cli._files import check_folder, save
from fewest.apps.cli._text import progress
from fewest.datasets import Dataset, load
from fewest.decision import Decision
from fewest.errors import UsageError
from fewest.explainer import Explainer
from fewest.runs import Run, explain_files
from fewest.runs.run import JOURNAL, MANIFEST, REFERENCES, TREE
from fewest.runs.views import Filter, PopulationView, open_run
from fewest.runs.views import report as page
from fewest.tables.schema import Schema

TITLE = "Who does the model refuse, and what would have changed it? German Credit"
DATA, MODEL, REPORT, TABLE = "cases.csv", "model.skops", "report.html", "explanations.csv"
ALTERNATIVES = 4


def run(folder: Path, model: str, as_json: bool) -> int:
    """Train, explain, print, write."""
    clear(folder)
    view = open_run(explain_german(model, folder).path)
    save(folder / REPORT, page(view))
    (folder / TABLE).write_bytes(view.csv())
    if as_json:
        files = [str(folder / name) for name in (REPORT, TABLE, DATA)]
        summary = {"model": model, "run": str(folder), "summary": view.figures(), "sentence": sentence(view)}
        print(json.dumps({**summary, "files": files, "next": commands(folder)}, indent=1))
        return 0
    figures = {
        name: f"{value:,}" if isinstance(value, int) else f"{value:.4g}" for name, value in view.figures().items()
    }
    width = max(map(len, figures))
    print("\n".join(f"{name:<{width}}  {figure}" for name, figure in figures.items()))
    print(f"\n{sentence(view)}\n")
    print(f"Open {folder / REPORT} in a browser. Then try:")
    print("\n".join(f"  {command}" for command in commands(folder)))
    return 0


def clear(folder: Path) -> None:
    """Make room for a new demo; what is not one of its own is left alone."""
    check_folder(folder)
    begun = next((folder / name for name in (MANIFEST, JOURNAL) if (folder / name).is_file()), None)
    if begun is None:
        return
    if _title(begun) != TITLE:
        raise UsageError(f"--out {folder} is a run of something else", do="name another folder")
    ours = [MANIFEST, JOURNAL, REFERENCES, TREE, DATA, MODEL, REPORT, TABLE]
    for path in (*(folder / name for name in ours), *folder.glob("part-*")):
        path.unlink(missing_ok=True)


def _title(begun: Path) -> Any:
    """The title of a run, finished or not; None where that cannot be read."""
    text = begun.read_text(encoding="utf-8")
    try:
        content = json.loads(text if begun.name == MANIFEST else text.splitlines()[0])
        return content["about"]["title"]
    except (ValueError, LookupError, TypeError):
        return None


def explain_german(model: str, folder: Path) -> Run:
    """Explain all 1,000 cases with a model trained on four fifths of them, into a run folder."""
    german, fitted, X_train, y_train = train_german(model)
    decision = Decision(fitted, positive="bad")
    schema = protecting(german.schema, german.protected)
    explainer = Explainer(decision, references.single(decision, X_train, y_train, schema=schema))
    with TemporaryDirectory() as beside, progress("explaining") as advance:
        data = Path(beside) / DATA
        german.X.to_csv(data, index=False)
        file = _saved(fitted, Path(beside) / MODEL)
        done = explain_files(
            explainer, data, folder, model_file=file, n_jobs=1, alternatives=ALTERNATIVES, title=TITLE,
            progress=lambda rows, total, counts: advance(rows, total or len(german)),
        )  # fmt: skip
        for path in (data, file):
            if path is not None:
                shutil.copyfile(path, folder / path.name)
    return done


def _saved(model: Any, path: Path) -> Path | None:
    """The model as a file that runs no code when it is read; None where skops is not installed."""
    try:
        from skops.io import dump
    except ImportError:
        return None
    dump(model, path)
    return path


def protecting(schema: Schema, names: Iterable[str]) -> Schema:
    """A schema with further features marked as protected."""
    for name in names:
        schema = schema.with_(name, protected=True)
    return schema


def commands(folder: Path) -> list[str]:
    """What to do next with the run folder; by the path of this command where the shell does not find it by name."""
    name = "fewest" if shutil.which("fewest") else sys.argv[0]
    out = [f"{name} explore {folder}", f"{name} report {folder} -o report.html"]
    if (folder / MODEL).is_file():
        out.append(f"{name} verify {folder} --data {folder / DATA} --model {folder / MODEL}")
    return out


def sentence(view: PopulationView) -> str:
    """The first answer that changes two features, the first answer of all where there is none."""
    for wanted in (Filter(status="EXPLAINED", sev=2), Filter(status="EXPLAINED")):
        for line in view.cases(wanted, size=1):
            return f"Case {line.row}: {view.case(line.row).sentence}"
    return "The model refuses nobody."


def train_german(model: str) -> tuple[Dataset, Any, pd.DataFrame, npt.NDArray[np.str_]]:
    """German Credit, a model trained on four fifths of it, and those rows with their labels."""
    from sklearn.model_selection import train_test_split

    german = load("german")
    X_train, _, y_train, _ = train_test_split(
        german.X, german.labels, test_size=0.2, stratify=german.labels, random_state=0
    )
    return german, pipeline(german, model).fit(X_train, y_train), X_train, y_train


def pipeline(data: Dataset, model: str) -> Any:
    """One-hot text columns, standardised numbers, and the model asked for."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    text = [feature.name for feature in data.schema.features if feature.kind == "category"]
    numbers = [feature.name for feature in data.schema.features if feature.is_numeric]
    encode = ColumnTransformer(
        [
            ("text", OneHotEncoder(handle_unknown="ignore", sparse_output=False), text),
            ("numbers", StandardScaler(), numbers),
        ]
    )
    classifiers = {
        "logistic": LogisticRegression(C=0.1, max_iter=1000),
        "boosted": GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0),
        "mlp": MLPClassifier((32,), alpha=1.0, max_iter=2000, random_state=0),
    }
    return Pipeline([("encode", encode), ("decide", classifiers[model])])
