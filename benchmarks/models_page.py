"""Fit every kind of model, explain up to 200 cases with each, and write docs/benchmarks/models.md.

FEWEST_DATA=../shared/data python benchmarks/models_page.py; --quick explains 20 cases and prints instead of writing,
and --only WORD measures the models whose name has that word, and prints; with --keep the page gets their rows.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import (
    calibration,
    discriminant_analysis,
    ensemble,
    gaussian_process,
    linear_model,
    model_selection,
    multiclass,
    naive_bayes,
    neighbors,
    neural_network,
    svm,
    tree,
)
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

import fewest as fw
from fewest.datasets import load

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "models.md"
CASES = 200
SEED = {"random_state": 0}


def boosting() -> Any:
    return ensemble.GradientBoostingClassifier(**SEED)


def members() -> list[tuple[str, Any]]:
    return [("boosting", boosting()), ("linear", linear_model.LogisticRegression(max_iter=2000))]


def classifiers() -> dict[str, Callable[[], Any]]:
    """Name -> an unfitted classifier; those of libraries that are not installed are left out."""
    made: dict[str, Callable[[], Any]] = {
        "LogisticRegression": lambda: linear_model.LogisticRegression(max_iter=2000),
        "LinearSVC": svm.LinearSVC,
        "RidgeClassifier": linear_model.RidgeClassifier,
        "LinearDiscriminantAnalysis": discriminant_analysis.LinearDiscriminantAnalysis,
        "DecisionTreeClassifier": lambda: tree.DecisionTreeClassifier(max_depth=6, **SEED),
        "RandomForestClassifier, depth 8": lambda: ensemble.RandomForestClassifier(100, max_depth=8, **SEED),
        "ExtraTreesClassifier, depth 8": lambda: ensemble.ExtraTreesClassifier(100, max_depth=8, **SEED),
        "GradientBoostingClassifier": lambda: ensemble.GradientBoostingClassifier(**SEED),
        "HistGradientBoostingClassifier": lambda: ensemble.HistGradientBoostingClassifier(**SEED),
        "AdaBoostClassifier": lambda: ensemble.AdaBoostClassifier(**SEED),
        "BaggingClassifier of trees": lambda: ensemble.BaggingClassifier(n_estimators=20, **SEED),
        "MLPClassifier": lambda: neural_network.MLPClassifier((16,), max_iter=1500, **SEED),
        "CalibratedClassifierCV, 5 folds, sigmoid": lambda: calibration.CalibratedClassifierCV(boosting(), cv=5),
        "CalibratedClassifierCV, 5 folds, isotonic": lambda: calibration.CalibratedClassifierCV(
            boosting(), cv=5, method="isotonic"
        ),
        "VotingClassifier, soft": lambda: ensemble.VotingClassifier(members(), voting="soft"),
        "StackingClassifier": lambda: ensemble.StackingClassifier(members(), cv=3),
        "TunedThresholdClassifierCV": lambda: model_selection.TunedThresholdClassifierCV(boosting(), cv=3, **SEED),
        "SVC": svm.SVC,
        "KNeighborsClassifier": lambda: neighbors.KNeighborsClassifier(25),
        "GaussianNB": lambda: naive_bayes.GaussianNB(var_smoothing=1e-3),
        "GaussianProcessClassifier": gaussian_process.GaussianProcessClassifier,
    }
    libraries = {
        "xgboost": ("XGBClassifier", {"n_jobs": 1}),
        "lightgbm": ("LGBMClassifier", {"n_jobs": 1, "verbose": -1}),
        "catboost": ("CatBoostClassifier", {"verbose": 0, "thread_count": 1, "allow_writing_files": False}),
    }
    for library, (name, options) in libraries.items():
        try:
            kind = getattr(__import__(library), name)
        except ImportError:
            continue
        made[f"{name}, 100 trees"] = lambda kind=kind, options=options: kind(n_estimators=100, **options)
        if library == "lightgbm":
            linear = {"n_estimators": 100, "linear_tree": True, "max_depth": 4, **options}
            made[f"{name}, 100 linear trees, depth 4"] = lambda kind=kind, linear=linear: kind(**linear)
    if find_spec("skorch"):
        made["skorch, a net with links past two blocks"] = net_of_skorch
    return made


def net_of_skorch() -> Any:
    """A residual net of two blocks, in double precision, as the encoder before it gives tables."""
    import torch
    from skorch import NeuralNetClassifier
    from torch import nn

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            fixed = {"dtype": torch.float64}
            self.first, self.last = nn.LazyLinear(16, **fixed), nn.Linear(16, 2, **fixed)
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.Linear(16, 16, **fixed), nn.ReLU(), nn.Linear(16, 16, **fixed)) for _ in range(2)
            )

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.first(x))
            for block in self.blocks:
                x = torch.relu(x + block(x))
            return self.last(x)

    fixed = {"criterion": nn.CrossEntropyLoss, "max_epochs": 30, "lr": 0.05, "verbose": 0, "train_split": None}
    return NeuralNetClassifier(Residual, **fixed)


class SparkPipeline:
    """A pipeline of pyspark.ml that is fitted like the others; its copy, which scores without Spark, is measured."""

    def __init__(self, text: list[str], last: str) -> None:
        self.text, self.last = text, last

    def fit(self, X: Any, y: Any) -> Any:
        from pyspark.ml import Pipeline, classification
        from pyspark.ml.feature import OneHotEncoder as Encoder
        from pyspark.ml.feature import StringIndexer, VectorAssembler
        from pyspark.sql import SparkSession

        from fewest.runs.spark_model import SparkClassifier

        quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
        session = SparkSession.builder.master("local[1]").config(map=quiet).getOrCreate()
        numbers = [name for name in X if name not in self.text]
        rows = [(*row, float(label)) for row, label in zip(X[self.text + numbers].to_numpy().tolist(), y, strict=True)]
        kinds = [*(f"`{name}` string" for name in self.text), *(f"`{name}` double" for name in numbers)]
        rows = [tuple(float(cell) if k >= len(self.text) else cell for k, cell in enumerate(row)) for row in rows]
        codes, ones = [f"{name}_n" for name in self.text], [f"{name}_v" for name in self.text]
        stages = [
            StringIndexer(inputCols=self.text, outputCols=codes, handleInvalid="keep"),
            Encoder(inputCols=codes, outputCols=ones),
            VectorAssembler(inputCols=numbers + ones, outputCol="features"),
            getattr(classification, self.last)(),
        ]
        table = session.createDataFrame(rows, ", ".join([*kinds, "label double"]))
        return pickle.loads(pickle.dumps(SparkClassifier(Pipeline(stages=stages).fit(table))))


def of_raw_rows(text: list[str]) -> dict[str, Callable[[], Any]]:
    """Classifiers that take levels as they are; those of libraries that are not installed are left out."""
    made: dict[str, Callable[[], Any]] = {}
    try:
        from catboost import CatBoostClassifier

        fixed = {"n_estimators": 100, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
        made["CatBoostClassifier, categorical features"] = lambda: CatBoostClassifier(cat_features=text, **fixed)
    except ImportError:
        pass
    try:
        from interpret.glassbox import ExplainableBoostingClassifier

        fixed_ebm = {"outer_bags": 2, "max_rounds": 200, "n_jobs": 1, **SEED}
        for pairs in (0, 10):
            name = f"ExplainableBoostingClassifier, {pairs or 'no'} interactions"
            made[name] = lambda pairs=pairs: ExplainableBoostingClassifier(interactions=pairs, **fixed_ebm)
    except ImportError:
        pass
    if find_spec("pyspark") and shutil.which("java"):
        for last in ("LogisticRegression", "RandomForestClassifier", "GBTClassifier"):
            made[f"pyspark.ml pipeline, {last}"] = lambda last=last: SparkPipeline(text, last)
    return made


def of_three_classes() -> dict[str, Callable[[], Any]]:
    return {
        "LogisticRegression, three classes": lambda: linear_model.LogisticRegression(max_iter=2000),
        "RandomForestClassifier, depth 8, three classes": lambda: ensemble.RandomForestClassifier(
            100, max_depth=8, **SEED
        ),
        "GradientBoostingClassifier, three classes": boosting,
        "MLPClassifier, three classes": lambda: neural_network.MLPClassifier((16,), max_iter=1500, **SEED),
        "OneVsRestClassifier of boosting": lambda: multiclass.OneVsRestClassifier(boosting()),
    }


def regressors() -> dict[str, Callable[[], Any]]:
    return {
        "Ridge": linear_model.Ridge,
        "RandomForestRegressor, depth 8": lambda: ensemble.RandomForestRegressor(100, max_depth=8, **SEED),
        "GradientBoostingRegressor": lambda: ensemble.GradientBoostingRegressor(**SEED),
        "HistGradientBoostingRegressor": lambda: ensemble.HistGradientBoostingRegressor(**SEED),
        "MLPRegressor": lambda: neural_network.MLPRegressor(hidden_layer_sizes=(16,), max_iter=1500, **SEED),
        "VotingRegressor": lambda: ensemble.VotingRegressor(
            [("boosting", ensemble.GradientBoostingRegressor(**SEED)), ("linear", linear_model.Ridge())]
        ),
        "SVR": svm.SVR,
    }


def detectors() -> dict[str, Callable[[], Any]]:
    return {
        "IsolationForest": lambda: ensemble.IsolationForest(**SEED),
        "OneClassSVM": lambda: svm.OneClassSVM(nu=0.1),
        "LocalOutlierFactor": lambda: neighbors.LocalOutlierFactor(novelty=True, contamination=0.1),
    }


def measured(decision: fw.Decision, X: Any, y: Any, count: int) -> tuple[str, float, float, int, str]:
    """Strategy, CPU microseconds per case, share proved, cases, and the reason where the model is not read."""
    references = fw.references.single(decision, X, y, centre="median", on_positive="allow")
    explainer = fw.Explainer(decision, references, n_jobs=1)
    cases = X[decision.refuses(X)].iloc[:count]
    first = explainer.with_(max_nodes=2_000).explain(cases.iloc[:2])
    if first.strategies[1] == "levelwise":
        explainer = explainer.with_(max_nodes=2_000)
    else:
        explainer.explain(cases)  # compiles what it needs
    began = time.process_time()
    out = explainer.explain(cases)
    spent = (time.process_time() - began) / max(len(cases), 1)
    counts = out.counts()
    proved = 1 - counts["BUDGET"] / max(len(cases), 1)
    return out.strategies[1], 1e6 * spent, proved, len(cases), " ".join(out.notes)


def rows(count: int, word: str = "") -> list[str]:
    german = load("german")
    text = list(german.X.select_dtypes(exclude="number").columns)

    def piped(estimator: Any) -> Any:
        encoder = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), text), remainder=StandardScaler()
        )
        return make_pipeline(encoder, estimator)

    y = (german.labels == "bad").astype(int)
    amount = german.X["credit_amount"].to_numpy(float)
    X = german.X.drop(columns="credit_amount")
    lines = []
    kinds = {
        "classifier": classifiers(), "raw": of_raw_rows(text), "classes": of_three_classes(),
        "regressor": regressors(), "detector": detectors(),
    }  # fmt: skip
    for kind, makers in kinds.items():
        for name, make in makers.items():
            if word and word not in name:
                continue
            if kind == "raw":
                line = measured(fw.Decision(make().fit(german.X, y), positive=1), german.X, y, count)
            elif kind == "classes":
                bands = np.digitize(amount, [1500, 4000])
                line = measured(fw.Decision(piped(make()).fit(X, bands), positive=2), X, bands, count)
            elif kind == "classifier":
                decision, known = fw.Decision(piped(make()).fit(german.X, y), positive=1), y
                line = measured(decision, german.X, known, count)
            elif kind == "regressor":
                decision = fw.Decision(piped(make()).fit(X, amount / 1000), threshold=4.0)
                line = measured(decision, X, None, count)
            else:
                line = measured(fw.Decision(piped(make()).fit(X)), X, None, count)
            strategy, spent, proved, cases, reason = line
            lines.append(f"| {name} | {strategy} | {spent:,.0f} | {proved:.0%} of {cases} | {reason or '-'} |")
            print(lines[-1], flush=True)
    return lines


def sums_on_fico(count: int) -> list[str]:
    """Calibrated and stacked boosting on FICO, with the search over the members and level by level."""
    from fewest.engine.search import composite, levelwise
    from fewest.experiments.benchmarking.subjects import load as split

    X, cases, y, _ = split("fico")
    lines = []
    for name in ("CalibratedClassifierCV, 5 folds, sigmoid", "StackingClassifier"):
        decision = fw.Decision(classifiers()[name]().fit(X, y), positive=1)
        references = fw.references.single(decision, X, y, centre="median", on_positive="allow")
        explainer = fw.Explainer(decision, references, n_jobs=1)
        asked = cases[decision.refuses(cases)].iloc[:count]
        explainer.explain(asked.iloc[:4])
        spent, searching, outs = [], [], []
        usual = composite.is_searched
        for module, searched in ((composite, usual), (levelwise, lambda *_: False)):
            composite.is_searched, solve, clock = searched, module.solve, [0.0]

            def timed(*given: Any, solve: Any = solve, clock: Any = clock, **more: Any) -> Any:
                start = time.process_time()
                found = solve(*given, **more)
                clock[0] += time.process_time() - start
                return found

            module.solve = timed
            began = time.process_time()
            outs.append(explainer.explain(asked))
            spent.append((time.process_time() - began) / len(asked))
            searching.append(clock[0] / len(asked))
            module.solve = solve
        composite.is_searched = usual
        sizes = (outs[0].sev.fillna(-1) != outs[1].sev.fillna(-1)).sum()
        others = (outs[0].answers.moved != outs[1].answers.moved).any(axis=1).sum()
        same = f"{sizes} other sizes, {others} other sets"
        proved = 1 - outs[0].counts()["BUDGET"] / len(asked)
        lines.append(
            f"| {name} | {1e3 * searching[0]:.2f} | {1e3 * searching[1]:.2f} | {searching[1] / searching[0]:.0f}x | "
            f"{spent[1] / spent[0]:.0f}x | {proved:.0%} of {len(asked)} | {same} |"
        )
        print(lines[-1], flush=True)
    return lines


def replace_rows(table: list[str]) -> None:
    """Put measured rows where the page has those of the same models."""
    fresh = {row.split("|")[1]: row for row in table}
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    PAGE.write_text("\n".join(fresh.get(line.split("|")[1], line) if "|" in line else line for line in lines) + "\n")


def main() -> None:
    warnings.simplefilter("ignore")
    quick = "--quick" in sys.argv
    count = 20 if quick else CASES
    word = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    table = [] if "--fico" in sys.argv else rows(count, word)
    sums = sums_on_fico(count) if os.environ.get("FEWEST_DATA") and not word else []
    lines = [
        "# Models, measured",
        "",
        f"Written by `benchmarks/models_page.py` on {date.today()}. Each kind of model is fitted on German Credit",
        "(regressors predict the amount, models of three classes its band, detectors look at the rows) behind a",
        "one-hot encoder and a scaler (CatBoost with categorical features, boosting machines and Spark without), and",
        "explains up to 200 of its own refused cases against a median, on one thread; level by level with 2,000 nodes.",
        "Microseconds are CPU time of a second call, scoring and confirming with the model included.",
        "`fewest doctor MODEL --train TABLE` prints the same of a model of yours. `--only WORD --keep` measures",
        "the models with that word in their names once more, into this page.",
        "",
        "| model | search | microseconds per case | proved | why its inside is not read |",
        "|---|---|---|---|---|",
        *table,
    ]
    if sums:
        lines += [
            "",
            "On FICO, with the search over the members and level by level. Sets differ where level by level has no",
            "nodes left for a size: it then gives some set of that size, proved smallest but not the nearest.",
            "",
            "| model | ms per case, search | level by level | faster | with scoring | proved | answers |",
            "|---|---|---|---|---|---|---|",
            *sums,
        ]
    if word and "--keep" in sys.argv:
        replace_rows(table)
    if not quick and table and not word:
        PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with threadpool_limits(1):  # the models themselves use one thread, too
        main()
