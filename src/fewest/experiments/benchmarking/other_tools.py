"""What an explanation costs beside other tools: their own packages, the same model and cases, inside one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from fewest.errors import MissingExtraError
from fewest.experiments.benchmarking import subjects
from fewest.experiments.benchmarking.measure import Row, at_least, cpu, skipped
from fewest.experiments.paper.data import data_folder
from fewest.experiments.peers import DiCE
from fewest.tables.arrays import Floats

MODELS = {"l2lr": "LR", "gbdt": "GBDT 200x3"}
FEW = 10  # cases of the tools that take them one by one
PACKAGES = "pip install dice-ml shap; pip install --no-deps NICEx"


def other_tools() -> Iterator[Row]:
    """How many times the CPU of `explain` another tool takes for a case, from raw rows on; 0.5 is half of it.

    Ours ends with every answer re-checked by the whole pipeline. NICE and SHAP work on the final model and encoded
    columns: encoding the cases, once, counts as theirs.
    """
    for dataset in ("german", "fico") if data_folder() else ("german",):
        for kind, model in MODELS.items():
            subject = subjects.subject(dataset, kind)
            explainer = subject.explainer(unseen="allow")
            explainer.explain(subject.cases)
            ours = cpu(partial(explainer.explain, subject.cases)) / len(subject.cases)
            shap = "LinearSHAP" if kind == "l2lr" else "TreeSHAP"
            for tool, cost in (("DiCE", _dice), ("NICE", _nice), (shap, _shap)):
                yield _row(
                    f"{tool} beside explain, {model}, {dataset}",
                    partial(cost, subject, dataset),
                    ours,
                    len(subject.cases),
                )


def _row(title: str, cost: Callable[[], float], ours: float, cases: int) -> Row:
    limit = 0.0 if "LinearSHAP" in title else 1.0  # a closed form without any search: its ratio is only stated
    try:
        theirs = cost()
    except (ImportError, MissingExtraError):
        return skipped(title, f">= {limit:g}", f"its package is not installed: {PACKAGES}")
    detail = f"{1e6 * theirs:.4g} us against {1e6 * ours:.4g} us a case, {cases} cases"
    return at_least(title, theirs / ours, limit, "x the CPU of explain", detail)


def _dice(subject: subjects.Subject, dataset: str) -> float:
    """dice-ml, random sampling, one counterfactual a case."""
    rows = subjects.load(dataset)
    fitted = DiCE().fit(subject.decision, rows.X_train, rows.y_train)
    cases = subject.cases.iloc[:FEW]
    return cpu(partial(fitted.explain, cases), repeats=3) / len(cases)


def _nice(subject: subjects.Subject, dataset: str) -> float:
    """NICEx with its own settings (the best first search for few changes)."""
    package = import_module("nice")
    encoder, final = subject.decision.model
    trained, labels = _training(subject, dataset)
    tool = package.NICE(final.predict_proba, trained, [], list(range(trained.shape[1])), labels)
    cases = subject.cases.iloc[:FEW]
    return cpu(lambda: [tool.explain(row[None]) for row in encoder.transform(cases)], repeats=3) / FEW


def _shap(subject: subjects.Subject, dataset: str) -> float:
    """shap's closed form for linear models, its tree walk (the fast one, by paths) for trees; all cases at once."""
    package = import_module("shap")
    encoder, final = subject.decision.model
    if hasattr(final, "coef_"):
        tool = package.LinearExplainer(final, _training(subject, dataset)[0])
    else:
        tool = package.TreeExplainer(final)
    return cpu(lambda: tool.shap_values(encoder.transform(subject.cases))) / len(subject.cases)


def _training(subject: subjects.Subject, dataset: str) -> tuple[Floats, Any]:
    """Encoded training rows and their labels."""
    rows = subjects.load(dataset)
    return subject.decision.model[:-1].transform(rows.X_train), np.asarray(rows.y_train)
