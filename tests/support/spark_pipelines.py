"""Pipelines of pyspark.ml for the tests, and their numbers as text, with what Spark said of a table."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.runs._spark_stages import SparkParts, SparkTree, Stage
from fewest.runs.spark_model import SparkClassifier

RECORDED = Path(__file__).parent / "spark_recorded.json"
NAMES = ("logistic", "three classes", "tree", "forest", "boosted")


def table(count: int = 160) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(5)
    X = pd.DataFrame({
        "a": rng.normal(size=count).round(2), "b": rng.normal(size=count).round(2),
        "town": rng.choice(["north", "east", "south"], count), "c": rng.integers(0, 5, count),
        "trade": rng.choice(["x", "y", "z", "w"], count),
    })  # fmt: skip
    line = X.a + X.b * (X.town == "north") - 0.4 * X.c + (X.trade == "z") + 0.6
    X.loc[rng.random(count) < 0.1, "b"] = np.nan
    return X, line.to_numpy() + rng.normal(size=count) * 0.2


def fitted(session: Any, name: str) -> Any:
    """A PipelineModel of one of the kinds."""
    from pyspark.ml import Pipeline
    from pyspark.ml import classification as kinds
    from pyspark.ml import feature as steps

    X, line = table()
    label = np.digitize(line, [-0.5, 0.7]) if name == "three classes" else np.where(line > 0, "bad", "good")
    data = X.assign(outcome=label.astype(float) if name == "three classes" else label)
    rows = [tuple(None if cell != cell else cell for cell in row) for row in data.itertuples(index=False)]
    schema = "a double, b double, town string, c bigint, trade string, outcome "
    frame = session.createDataFrame(rows, schema + ("double" if name == "three classes" else "string"))
    stages: list[Any] = [
        steps.Imputer(inputCols=["b"], outputCols=["filled"], strategy="median"),
        steps.StringIndexer(inputCols=["town", "trade"], outputCols=["town_n", "trade_n"], handleInvalid="keep"),
        steps.OneHotEncoder(inputCols=["town_n", "trade_n"], outputCols=["town_v", "trade_v"]),
    ]
    if name == "three classes":
        target = "outcome"
    else:
        target = "label"
        order = "alphabetDesc"  # good is class 0
        stages.append(steps.StringIndexer(inputCol="outcome", outputCol=target, stringOrderType=order))
    trees = {"labelCol": target, "featuresCol": "features", "maxDepth": 3, "seed": 1}
    last: Any
    if name in ("logistic", "three classes"):
        stages.append(steps.VectorAssembler(inputCols=["a", "filled", "c", "town_v", "trade_v"], outputCol="plain"))
        stages.append(steps.StandardScaler(inputCol="plain", outputCol="features", withMean=True))
        last = kinds.LogisticRegression(labelCol=target, featuresCol="features", regParam=0.01, maxIter=20)
    else:
        stages.append(steps.VectorAssembler(inputCols=["a", "filled", "c", "town_n", "trade_v"], outputCol="plain"))
        stages.append(steps.VectorIndexer(inputCol="plain", outputCol="features", maxCategories=4))
        last = {
            "tree": lambda: kinds.DecisionTreeClassifier(**trees),
            "forest": lambda: kinds.RandomForestClassifier(numTrees=5, **trees),
            "boosted": lambda: kinds.GBTClassifier(maxIter=5, **trees),
        }[name]()
    return Pipeline(stages=[*stages, last]).fit(frame)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def record(session: Any) -> None:
    """Write the numbers of all pipelines, and Spark's own chances."""
    X, _ = table()
    out = {}
    for name in NAMES:
        model = SparkClassifier(fitted(session, name))
        out[name] = {"parts": asdict(model.parts), "chances": model.predict_proba(X).round(15).tolist()}
    RECORDED.write_text(json.dumps(out, default=_plain), encoding="utf-8")


def recorded(name: str) -> tuple[SparkClassifier, np.ndarray]:
    """A classifier without Spark, and what Spark said of the table."""
    kept = json.loads(RECORDED.read_text("utf-8"))[name]
    parts = kept["parts"]
    stages = []
    for stage in parts["stages"]:
        numbers = {key: np.array(value) if key in ("mean", "scale") and value is not None else value
                   for key, value in stage["numbers"].items()}  # fmt: skip
        if "codes" in numbers:
            numbers["codes"] = {int(k): {float(v): c for v, c in own.items()} for k, own in numbers["codes"].items()}
        stages.append(Stage(stage["kind"], tuple(stage["takes"]), tuple(stage["makes"]), numbers))
    trees = tuple(
        SparkTree(**{
            key: {int(k): np.array(v) for k, v in value.items()} if key == "levels" else np.array(value)
            for key, value in tree.items()
        })
        for tree in parts["trees"]
    )  # fmt: skip
    arrays = {key: None if parts[key] is None else np.array(parts[key]) for key in ("coef", "intercept")}
    made = SparkParts(
        tuple(stages), tuple(parts["columns"]), parts["features"], parts["probability"], tuple(parts["classes"]),
        trees=trees, boosted=parts["boosted"], **arrays,
    )  # fmt: skip
    model = SparkClassifier.__new__(SparkClassifier)
    model.__dict__.update(
        _live=None, _known={}, parts=made, classes_=np.array(made.classes), n_features_in_=len(made.columns),
        feature_names_in_=np.array(made.columns, dtype=object),
    )  # fmt: skip
    return model, np.array(kept["chances"])
