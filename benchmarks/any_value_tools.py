"""Other tools on the models of any_value_tools_page.py, each in an environment of its own.

PYTHON-WITH-THE-TOOL benchmarks/any_value_tools.py TOOL FOLDER SECONDS

TOOL: pyxai or oceanpy (the fewest changes), pyxai-sufficient or anchors (what alone suffices). FOLDER holds
problem.npz (rows as the model sees them, and which columns are one feature) and model.pkl; answers.json is written
there. It needs what the tool needs, and the scikit-learn and xgboost that the model was fitted with.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

Answer = dict[str, Any]


def cpu() -> float:
    """Seconds of processor time of this process and of those it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Problem:
    """Training rows and cases in the model's columns; ``group`` is the feature of each column."""

    def __init__(self, folder: Path) -> None:
        given = np.load(folder / "problem.npz")
        self.train, self.labels, self.cases = given["train"], given["labels"], given["cases"]
        self.group, self.levels = given["group"], given["levels"]  # (columns,): whether it is one level of a category
        with open(folder / "model.pkl", "rb") as file:
            self.model = pickle.load(file)
        self.names = [f"v{g}={k}" if level else f"v{g}" for k, (g, level) in enumerate(
            zip(self.group, self.levels, strict=True))]  # fmt: skip

    def columns(self, feature: int) -> list[int]:
        """The columns of a feature."""
        return np.flatnonzero(self.group == feature).tolist()

    def nearest(self, column: int, own: float, low: float, high: float, low_in: bool) -> float:
        """The value seen in training next to the case's own with low <= value < high, or low < value <= high."""
        seen = np.unique(self.train[:, column])
        read = as_read(self, seen)
        inside = seen[(read >= low) & (read < high) if low_in else (read > low) & (read <= high)]
        if len(inside):
            return float(inside[np.abs(inside - own).argmin()])
        ends = [end for end in (low, high) if np.isfinite(end)]
        return float(np.mean(ends)) if len(ends) == 2 else ends[0] + (1.0 if ends[0] == low else -1.0)


def settled(given: Problem, row: Any, case: Any, free: set[int]) -> Any:
    """One level per category: the one that was put on; or, where all were taken off, one that no tree asks about."""
    for feature in np.unique(given.group[given.levels]).tolist():
        own = given.columns(feature)
        if (row[own] == case[own]).all():
            continue
        on = [k for k in own if row[k] > 0.5 and case[k] < 0.5] or [k for k in own if k in free]
        row[own] = 0.0
        row[on[:1]] = 1.0
    return row


def as_read(given: Problem, rows: Any) -> Any:
    """Rows as the model compares them with its thresholds: in single precision, and XGBoost's as its files print it."""
    single = np.asarray(rows, dtype=np.float32)
    if "XGB" not in type(given.model).__name__:
        return single.astype(float)
    return np.array([float(str(value)) for value in single.ravel()]).reshape(single.shape)


def pyxai_explainer(given: Problem) -> Any:
    """An explainer that knows which columns are numbers and which are the levels of a category."""
    import pandas as pd
    from pyxai import Explaining, Learning, Tools

    Tools.set_verbose(0)
    table = pd.DataFrame(as_read(given, given.train), columns=given.names).assign(label=given.labels)
    table = table.sort_values("label", kind="stable")  # classes are numbered as they come
    _, model = Learning.ModelIO.import_models(given.model, table)
    kinds: dict[str, Any] = {"numerical": [n for n, level in zip(given.names, given.levels, strict=True) if not level]}
    # Stated as one category, version 2.0.1 takes all levels off in boosted trees: two literals become a sum below zero.
    if "XGB" in type(given.model).__name__ and given.levels.any():
        kinds["binary"] = [name for name, level in zip(given.names, given.levels, strict=True) if level]
    else:
        for feature in np.unique(given.group[given.levels]).tolist():
            codes = [str(k) for k in given.columns(feature)]
            kinds.setdefault("categorical", {})[f"v{feature}={{{','.join(codes)}}}"] = tuple(codes)
    return Explaining.initialize(model, features_type=kinds)


def pyxai(given: Problem, seconds: int) -> Callable[[Any], Answer]:
    """Minimal contrastive reasons under the theory of the columns: fewest columns."""
    explainer = pyxai_explainer(given)
    known = explainer.get_model().map_id_binaries_to_features
    strict = "XGB" in type(given.model).__name__  # x >= threshold there, x > threshold in scikit-learn
    asked = {int(known[k][0]) - 1 for k in range(1, len(known))}
    free = set(range(len(given.group))) - asked

    def answer(case: Any) -> Answer:
        explainer.set_instance(as_read(given, case).tolist())
        flipped = {abs(one) for one in explainer.minimal_contrastive_reason(n=1, time_limit=seconds) or ()}
        proved = explainer.elapsed_time != explainer.TIMEOUT
        if not flipped:
            return {"row": None, "proved": False}
        bounds = {column: [-np.inf, np.inf] for column in asked}
        for literal in explainer.binary_representation:
            column, _, threshold = known[abs(literal)][:3]
            above = (literal > 0) != (abs(literal) in flipped)
            side = bounds[int(column) - 1]
            side[0 if above else 1] = (max if above else min)(side[0 if above else 1], float(threshold))
        row, own = case.copy(), as_read(given, case)
        for column, (low, high) in bounds.items():
            inside = low <= own[column] < high if strict else low < own[column] <= high
            if not inside:
                row[column] = given.nearest(column, row[column], low, high, strict)
        return {"row": settled(given, row, case, free).tolist(), "proved": proved}

    return answer


def pyxai_sufficient(given: Problem, seconds: int) -> Callable[[Any], Answer]:
    """Sufficient reasons of forests, tree-specific reasons of boosted trees: those that PyXAI has."""
    explainer = pyxai_explainer(given)
    known, boosted = explainer.get_model().map_id_binaries_to_features, "XGB" in type(given.model).__name__

    def answer(case: Any) -> Answer:
        explainer.set_instance(as_read(given, case).tolist())
        reason = (explainer.tree_specific_reason if boosted else explainer.sufficient_reason)(time_limit=seconds)
        if not reason:
            return {"features": None}
        return {"features": sorted({int(given.group[int(known[abs(one)][0]) - 1]) for one in reason})}

    return answer


def oceanpy(given: Problem, seconds: int) -> Callable[[Any], Answer]:
    """The CP backend with norm 0: fewest features."""
    import pandas as pd
    from ocean.abc import Mapper
    from ocean.cp import Explainer
    from ocean.feature import Feature

    mapping: dict[str, Any] = {}
    for feature in dict.fromkeys(given.group.tolist()):  # in the order of the columns, by which it reads a row
        own = given.columns(feature)
        if given.levels[own[0]]:
            mapping[f"v{feature}"] = Feature(Feature.Type.ONE_HOT_ENCODED, codes=tuple(str(k) for k in own))
        else:
            seen = given.train[:, own[0]]
            mapping[f"v{feature}"] = Feature(Feature.Type.CONTINUOUS, levels=(seen.min() - 0.5, seen.max() + 0.5))
    pairs = [(f"v{g}", str(k) if level else "") for k, (g, level) in enumerate(
        zip(given.group, given.levels, strict=True))]  # fmt: skip
    columns = pd.MultiIndex.from_tuples(pairs) if given.levels.any() else pd.Index([name for name, _ in pairs])
    if hasattr(given.model, "get_booster"):
        given.model.get_booster().feature_names = [" ".join(pair).strip() for pair in pairs]
    explainer = Explainer(given.model, mapper=Mapper(mapping, columns=columns))

    def answer(case: Any) -> Answer:
        found = explainer.explain(as_read(given, case), y=0, norm=0, max_time=seconds, num_workers=1)
        proved = explainer.get_solving_status() in ("OPTIMAL", "INFEASIBLE")
        if found is None:
            return {"row": None, "proved": proved}
        return {"row": np.where(found.x == as_read(given, case), case, found.x).tolist(), "proved": proved}

    return answer


def anchors(given: Problem, _seconds: int) -> Callable[[Any], Answer]:
    """Anchors over features: numbers as the model sees them, categories as the number of their level."""
    from anchor.anchor_tabular import AnchorTabularExplainer

    features = np.unique(given.group).tolist()
    own = [given.columns(feature) for feature in features]
    levels = [bool(given.levels[columns[0]]) for columns in own]

    def narrow(rows: Any) -> Any:
        """One column per feature; a category without a level has one number more."""
        parts = []
        for columns, is_level in zip(own, levels, strict=True):
            part = rows[:, columns]
            parts.append(np.where(part.any(axis=1), part.argmax(axis=1), len(columns)) if is_level else part[:, 0])
        return np.column_stack(parts).astype(float)

    def decide(rows: Any) -> Any:
        wide = np.zeros((len(rows), len(given.group)))
        for j, (columns, is_level) in enumerate(zip(own, levels, strict=True)):
            if not is_level:
                wide[:, columns[0]] = rows[:, j]
                continue
            for place, column in enumerate(columns):
                wide[:, column] = rows[:, j] == place
        return given.model.predict(wide)

    named = {j: [str(k) for k in range(len(own[j]) + 1)] for j, is_level in enumerate(levels) if is_level}
    explainer = AnchorTabularExplainer(["accepted", "refused"], [f"v{f}" for f in features], narrow(given.train), named)
    np.random.seed(0)  # noqa: NPY002

    def answer(case: Any) -> Answer:
        found = explainer.explain_instance(narrow(case[None])[0], decide, threshold=0.95)
        return {"features": sorted({features[j] for j in found.features()})}

    return answer


TOOLS = {
    "pyxai": (pyxai, "pyxai"),
    "pyxai-sufficient": (pyxai_sufficient, "pyxai"),
    "oceanpy": (oceanpy, "oceanpy"),
    "anchors": (anchors, "anchor-exp"),
}


def main(tool: str, folder: str, seconds: str) -> None:
    """Answer every case, one after the other."""
    warnings.simplefilter("ignore")
    given = Problem(Path(folder))
    make, package = TOOLS[tool]
    began = cpu()
    answer = make(given, int(seconds))
    built, answers = cpu() - began, []
    for case in given.cases:
        began = cpu()
        try:
            one = answer(case)
        except Exception as error:  # a tool that fails on a case has no answer for it
            one = {"row": None, "features": None, "proved": False, "error": f"{type(error).__name__}: {error}"}
        answers.append({**one, "cpu": cpu() - began})
    said = {"version": version(package), "built": built, "answers": answers}
    Path(folder, "answers.json").write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    tool, folder, seconds = sys.argv[1:]
    os.chdir(folder)  # some write files where they stand
    main(tool, folder, seconds)
