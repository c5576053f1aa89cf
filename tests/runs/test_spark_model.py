"""Pipelines of pyspark.ml: read, scored by Spark and, where there is no Spark, alone; held against brute force."""

from __future__ import annotations

import os
import pickle
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from spark_cluster import Cluster, connected
from spark_pipelines import NAMES, fitted, recorded, table

import fewest as fw
from fewest import checks
from fewest.errors import DataError, ModelError
from fewest.runs.spark_model import SparkClassifier

X = table()[0]
STRATEGIES = {"logistic": "additive", "three classes": "additive, class by class"}


def explained(model: Any, count: int = 20, **options: Any) -> tuple[fw.Explainer, Any]:
    decision = fw.Decision(model, positive=model.classes_[1], **options)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, None, on_positive="allow"), n_jobs=1)
    return explainer, explainer.explain(X[decision.verdicts(X).positive].iloc[:count], alternatives=10)


@pytest.mark.parametrize("name", NAMES)
def test_a_pipeline_without_spark_scores_as_spark_did_and_agrees_with_brute_force(name: str) -> None:
    model, by_spark = recorded(name)
    assert np.abs(model.predict_proba(X) - by_spark).max() < 1e-12
    assert np.array_equal(model.predict(X), model.classes_[by_spark.argmax(axis=1)])
    explainer, out = explained(model)
    assert out.strategies[1] == STRATEGIES.get(name, "ensemble"), out.notes
    assert checks.check_exact(explainer, out) > 0
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("name", ["logistic", "forest"])
def test_other_numbers_than_those_that_score_are_noticed(name: str) -> None:
    """Negative control: what is read is another pipeline than what scores."""
    model, by_spark = recorded(name)
    honest, parts = recorded(name)[0].parts, model.parts
    if parts.coef is not None:
        wrong = replace(parts, coef=parts.coef[:, ::-1].copy())
    else:
        wrong = replace(parts, trees=tuple(replace(one, left=one.right, right=one.left) for one in parts.trees))
    assert np.abs(wrong.chances(wrong.vector(X)) - by_spark).max() > 0.1
    model.parts = wrong
    model.predict_proba = lambda rows: honest.chances(honest.vector(rows))  # type: ignore[method-assign]
    with pytest.warns(fw.FewestWarning, match="does not reproduce"):
        explainer, out = explained(model)
    assert checks.check_exact(explainer, out) > 0


def test_levels_that_were_never_seen_are_kept_or_named() -> None:
    model, _ = recorded("forest")
    strange = X.iloc[:3].assign(town="moon")
    assert np.isfinite(model.predict_proba(strange)).all()
    stages = tuple(
        replace(stage, numbers={**stage.numbers, "keep": False}) if stage.kind == "indexer" else stage
        for stage in model.parts.stages
    )
    model.parts = replace(model.parts, stages=stages)
    with pytest.raises(DataError, match="'moon' is a level that the StringIndexer does not know"):
        model.predict_proba(strange)


def test_what_is_no_pipeline_of_columns_is_refused() -> None:
    class Nothing:
        stages: tuple[Any, ...] = ()

        def transform(self) -> None: ...

    with pytest.raises(ModelError, match="no stage of this pipeline is a classifier"):
        SparkClassifier(Nothing())


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason='Spark is not here: pip install "fewest[spark]"')
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java, which is not here")
    cluster = Cluster(tmp_path_factory.mktemp("spark"))
    cluster.url = "local[1]"
    with connected(cluster, {}) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_spark_has_the_last_word_and_copies_say_the_same(name: str, session: Any) -> None:
    model = SparkClassifier(fitted(session, name))
    calls: list[int] = []
    asked = model._asked
    model._asked = lambda rows: calls.append(len(rows)) or asked(rows)  # type: ignore[method-assign,func-returns-value]
    copy = pickle.loads(pickle.dumps(recorded(name)[0]))
    assert np.abs(copy.predict_proba(X) - model.predict_proba(X)).max() < 1e-12
    _, out = explained(model)
    assert 0 < len(calls) < 12, calls  # jobs of Spark, not one for each row
    assert out.strategies[1] == STRATEGIES.get(name, "ensemble")
    travelled = pickle.loads(pickle.dumps(SparkClassifier(model._live)))
    assert np.abs(travelled.predict_proba(X) - model.predict_proba(X)).max() < 1e-12
    local, same = explained(travelled)
    assert [answer.sev for answer in out] == [answer.sev for answer in same]
    assert checks.check_exact(local, same) > 0


@pytest.mark.slow
def test_copies_on_executors_give_the_answers_of_the_driver(session: Any) -> None:
    from fewest.runs.spark import explain

    explainer, out = explained(SparkClassifier(fitted(session, "forest")))
    cells = out.frame[list(X)].itertuples(index=False)
    rows = [(number, *(None if cell != cell else cell for cell in row)) for number, row in enumerate(cells)]
    df = session.createDataFrame(rows, "number bigint, a double, b double, town string, c bigint, trade string")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        answers = explain(df, explainer, id="number").select("row", "sev").collect()
    found = {int(row["row"]): row["sev"] for row in answers}
    assert [found[number] for number in range(len(out))] == [answer.sev for answer in out]


@pytest.mark.slow
def test_a_stage_that_is_not_read_is_named_and_spark_is_asked_instead(session: Any) -> None:
    from pyspark.ml import PipelineModel
    from pyspark.ml.feature import SQLTransformer

    whole = fitted(session, "logistic")
    model = SparkClassifier(PipelineModel(stages=[SQLTransformer(statement="SELECT * FROM __THIS__"), *whole.stages]))
    assert np.abs(model.predict_proba(X) - recorded("logistic")[1]).max() < 1e-12  # nothing it makes is used

    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.feature import MinMaxScaler, VectorAssembler

    rows = session.createDataFrame([(*map(float, row), float(row[0] > 0)) for row in X[["a", "c"]].to_numpy()],
                                   "a double, c double, label double")  # fmt: skip
    made = VectorAssembler(inputCols=["a", "c"], outputCol="v").transform(rows)
    scaler = MinMaxScaler(inputCol="v", outputCol="features").fit(made)
    last = LogisticRegression().fit(scaler.transform(made))
    model = SparkClassifier(
        PipelineModel(stages=[VectorAssembler(inputCols=["a", "c"], outputCol="v"), scaler, last])
    )  # fmt: skip
    _, out = explained(model, 3)
    assert out.strategies[1] == "levelwise"
    assert "MinMaxScalerModel is not a stage" in " ".join(out.notes)
    with pytest.raises(ModelError, match="cannot leave its Spark session"):
        pickle.dumps(model)
