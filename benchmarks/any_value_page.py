"""The fewest features over all values, here and with CP-SAT, into docs/benchmarks/any_value.md.

FEWEST_DATA=../shared/data python benchmarks/any_value_page.py --cp-sat PYTHON [--cases N] [--deep N] [--quick]

PYTHON is an interpreter with ortools; it is the only package that it needs beside numpy. --quick prints one line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import date
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fewest as fw
from fewest.engine.anyone import AnyoneGoals, Sight
from fewest.engine.structure.base import Ensemble
from fewest.experiments.benchmarking import subjects
from fewest.experiments.benchmarking.measure import timed

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "any_value.md"
SOLVER = Path(__file__).with_name("any_value_cpsat.py")
ALONE = {"n_estimators": 100, "n_jobs": 1, "random_state": 0}
MODELS = {
    "XGBoost, 100 trees, depth 3": lambda: import_module("xgboost").XGBClassifier(max_depth=3, **ALONE),
    "XGBoost, 100 trees, depth 6": lambda: import_module("xgboost").XGBClassifier(max_depth=6, **ALONE),
    "forest, 100 trees, depth 3": lambda: RandomForestClassifier(max_depth=3, **ALONE),
    "forest, 100 trees, depth 6": lambda: RandomForestClassifier(max_depth=6, **ALONE),
}
DATASETS = ("fico", "compas", "german", "adult")


def fitted(name: str, kind: str) -> tuple[fw.Decision, Any, Any, Any]:
    """A pipeline on raw columns, its training rows, and the test rows it refuses."""
    X, test, y, _ = subjects.load(name)
    text = [c for c in X if X[c].dtype.kind not in "biuf"]
    encoder = make_column_transformer(
        (StandardScaler(), [c for c in X if c not in text]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), text),
    )
    decision = fw.Decision(make_pipeline(encoder, MODELS[kind]()).fit(X, y), positive=1)
    return decision, X, y, test


def leaves_of(model: Ensemble, root: int) -> list[tuple[float, list[tuple[int, bool]]]]:
    """Value of each leaf of a tree, and the splits above it with whether it is on their left."""
    if model.column[root] < 0:
        return [(float(model.value[root]), [])]
    sides = ((int(model.left[root]), True), (int(model.right[root]), False))
    return [(v, [(root, left), *path]) for child, left in sides for v, path in leaves_of(model, child)]


def state(sight: Sight, rows: np.ndarray, path: Path) -> None:
    """Write the leaves, what each asks of each feature, and in which features each case lies outside of it."""
    model = sight.inside.structure
    if not isinstance(model, Ensemble) or (model.category >= 0).any():
        raise TypeError("only splits of numbers are stated")
    owner = {int(c): (f, place) for f, own in enumerate(sight.values) for place, c in enumerate(own.columns)}
    tree, worth, slot_leaf, slot_feature, runs, run, outside = [0], [], [], [], [], [0], []
    for root in model.root.tolist():
        for value, splits in leaves_of(model, root):
            for f in sorted({owner[int(model.column[node])][0] for node, _ in splits}):
                mine = [(node, left) for node, left in splits if owner[int(model.column[node])][0] == f]
                block = sight.values[f].block
                inside, holds = np.ones(len(block), dtype=bool), np.ones(len(rows), dtype=bool)
                for node, left in mine:
                    column, threshold = int(model.column[node]), model.threshold[node]
                    inside &= (block[:, owner[column][1]] <= threshold) == left
                    holds &= (rows[:, column] <= threshold) == left
                edges = np.flatnonzero(np.diff(inside.astype(int), prepend=0, append=0)).reshape(-1, 2)
                runs.extend((int(a), int(b) - 1) for a, b in edges)
                run.append(len(runs))
                slot_leaf.append(len(worth))
                slot_feature.append(f)
                outside.append(~holds)
            worth.append(value)
        tree.append(len(worth))
    np.savez(
        path, values=[len(own.block) for own in sight.values], tree=tree, worth=worth, slot_leaf=slot_leaf,
        slot_feature=slot_feature, runs=np.array(runs).reshape(-1, 2), run=run, outside=np.array(outside).T,
        cut=model.reading.cut - model.base,
    )  # fmt: skip


def measure(name: str, kind: str, python: str, count: int, seconds: float) -> list[Any] | None:
    """One line of the page; none where the model refuses nobody."""
    decision, X, y, test = fitted(name, kind)
    explainer = fw.Explainer(decision, fw.references.anyone(decision, X, y), n_jobs=1, unseen="allow")
    test = explainer.references.schema.conform(test, unseen="allow")
    cases = test[decision.refuses(test)].iloc[:count]
    if len(cases) == 0:
        return None
    explainer.explain(cases.iloc[:2])  # compiles
    out, cpu = timed(partial(explainer.explain, cases))
    turned = ~decision.refuses(out.turned())
    goals = explainer.goals
    if not isinstance(goals, AnyoneGoals):
        raise TypeError("not a search over all values")
    sight = goals.task(cases, float("inf"), 0).sight
    with tempfile.TemporaryDirectory() as folder:
        problem, answers = Path(folder, "problem.npz"), Path(folder, "answers.json")
        state(sight, sight.prepared(cases), problem)
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run([python, str(SOLVER), str(problem), str(answers), str(seconds)], check=True, env=clean)
        theirs = json.loads(answers.read_text(encoding="utf-8"))
    ours = [int(cost) if np.isfinite(cost) else None for cost in out.answers.cost]
    both = [(a, b["size"]) for a, b, p in zip(ours, theirs, out.answers.proved, strict=True) if b["proved"] and p]
    solver = sum(answer["cpu"] for answer in theirs)
    found = out.answers.status == 0
    return [
        name, kind, len(cases), f"{out.answers.cost[found].mean():.2f}", f"{out.answers.proved.mean():.0%}",
        f"{turned[found].mean():.0%}", f"{1e3 * cpu / len(cases):.2f}",
        f"{sum(answer['proved'] for answer in theirs) / len(theirs):.0%}", f"{1e3 * solver / len(cases):,.0f}",
        f"{solver / cpu:,.0f}", len(both), sum(a != b for a, b in both),
    ]  # fmt: skip


HEAD = (
    "dataset", "model", "cases", "mean features", "proved", "valid", "CPU ms per case", "CP-SAT proved",
    "CP-SAT CPU ms per case", "ratio", "proved by both", "that differ",
)  # fmt: skip


def page(lines: list[list[Any]], seconds: float) -> str:
    """The page."""
    compared, differ = sum(line[-2] for line in lines), sum(line[-1] for line in lines)
    done = {(line[0], line[1]) for line in lines}
    left = [f"{name}: {kind}" for name in DATASETS for kind in MODELS if (name, kind) not in done]
    parts = [
        "# The fewest features over all values, beside CP-SAT",
        "",
        f"Written by `benchmarks/any_value_page.py` on {date.today().isoformat()}. "
        "`references.anyone` with its defaults on the first refused rows of the test part, one thread, end to end: "
        "scoring, search, and the model's own word on every answer (*valid*: the model decides otherwise on the "
        "changed row). CP-SAT (ortools) "
        "gets the same leaves and values: one leaf per tree, the values of changed features inside it, the "
        f"sum below the threshold, fewest changes; one thread, building included, stopped {seconds:g} seconds "
        "of wall clock after it began to search. On a busy machine that is less processor time: the column "
        "shows how much it had on average, so that shares below 100 % say little, and the ratio there is a "
        "lower bound. It minimises the count alone; here the closest values of all smallest sets are found "
        "too. With few cases the fixed cost of a table weighs more.",
        "",
        "| " + " | ".join(HEAD) + " |",
        "|" + "---|" * len(HEAD),
        *("| " + " | ".join(str(part) for part in line) + " |" for line in lines),
        "",
        f"Proved by both: {compared} cases, of which {differ} differ in the number of features.",
        "",
        f"Not measured here: {'; '.join(left) or 'nothing'} (a model that refuses nobody has no line). PyXAI, oceanpy "
        "and Anchors are on [a page of their own](any_value_tools.md).",
        "",
    ]
    return "\n".join(parts)


def main(argv: list[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cp-sat", required=True, help="an interpreter with ortools")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--deep", type=int, default=200, help="cases of models of depth 6")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--quick", action="store_true", help="one line, printed")
    asked = parser.parse_args(argv)
    lines = []
    for name in asked.datasets[: 1 if asked.quick else None]:
        for kind in asked.models[: 1 if asked.quick else None]:
            count = asked.deep if kind.endswith("6") else asked.cases
            line = measure(name, kind, asked.cp_sat, count, asked.seconds)
            if line is not None:
                lines.append(line)
                print(*line, flush=True)
    if not asked.quick:
        PAGE.write_text(page(lines, asked.seconds), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
