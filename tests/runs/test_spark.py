"""Spark on this machine, in one process or as a cluster: the answers of the run folder, also when an executor dies."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from spark_cluster import Cluster, connected, killed_in_the_middle, wait_for

import fewest as fw
from fewest.datasets import load
from fewest.errors import DataError, UsageError
from fewest.runs import explain_files
from fewest.runs import spark as spark_module
from fewest.runs.batches import explain_batches
from fewest.runs.spark import KEPT, _Task, explain

pa = pytest.importorskip("pyarrow")
ROWS, FILES = 20_000, 16
SETTINGS = {
    "spark.sql.files.minPartitionNum": str(FILES),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "250",
    "spark.sql.session.timeZone": "Europe/Berlin",
}


@pytest.fixture(scope="session", params=["local", "cluster"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One Java process that is driver and executor; or a master with two workers, five of them."""
    pytest.importorskip("pyspark", reason='Spark is not here: pip install "fewest[spark]"')
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java, which is not here")
    if not Path("/proc/self/task").is_dir():
        pytest.skip("the executors are found in /proc, which is not here")
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        if request.param == "local":
            cluster.url = "local[1]"
        else:
            cluster.start(2)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def session(cluster: Cluster) -> Iterator[Any]:
    with connected(cluster, SETTINGS) as session:
        yield session


class German:
    """Twenty thousand loans, all different, an explainer of a model of them, and what the run folder says."""

    def __init__(self, folder: Path) -> None:
        data = load("german")
        text = data.X.select_dtypes(exclude="number").columns.tolist()
        numbers = [column for column in data.X if column not in text]
        encode = make_column_transformer((OneHotEncoder(), text), (StandardScaler(), numbers))
        model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(data.X, data.y)
        decision = fw.Decision(model, positive=model.classes_[1])
        self.explainer = fw.Explainer(decision, fw.references.single(decision, data.X, data.y), n_jobs=1)
        cases = pd.concat([data.X] * (ROWS // len(data.X)), ignore_index=True)
        cases["credit_amount"] += np.arange(ROWS) // len(data.X)
        self.files = folder / "cases"
        self.files.mkdir()
        numbered = cases.assign(number=np.arange(ROWS, dtype=np.int64))
        for k in range(FILES):
            numbered.iloc[k * ROWS // FILES : (k + 1) * ROWS // FILES].to_parquet(self.files / f"{k:02}.parquet")
        self.some = [str(self.files / f"{k:02}.parquet") for k in range(FILES // 4)]
        self.run = explain_files(self.explainer, self.files, folder / "run", n_jobs=1)
        from pyarrow import parquet

        self.parts = [self.run.path / part["table"]["name"] for part in self.run.manifest["parts"]]
        self.expected = pa.concat_tables([parquet.read_table(part) for part in self.parts]).drop_columns(["decimals"])


@pytest.fixture(scope="session")
def german(tmp_path_factory: pytest.TempPathFactory) -> German:
    return German(tmp_path_factory.mktemp("german"))


def check(answers: Any, expected: Any) -> None:
    """Every row once, and every cell as it was expected."""
    answers = answers.sort_by("row")
    assert answers["row"].to_pylist() == expected["row"].to_pylist(), "rows are lost or doubled"
    for name in expected.column_names:
        wanted = expected[name].cast(answers.schema.field(name).type)
        assert answers[name].combine_chunks().equals(wanted.combine_chunks()), f"{name} is not the same"


@contextmanager
def pandas_three() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


def slowed(df: Any, seconds: float) -> Any:
    """The same rows, with a pause at every batch."""

    def pause(batches: Any) -> Any:
        for batch in batches:
            time.sleep(seconds)
            yield batch

    with pandas_three():
        return df.mapInArrow(pause, df.schema)


@pytest.mark.slow
def test_answers_of_the_cluster_are_those_of_the_run_folder(session: Any, german: German) -> None:
    df = session.read.parquet(str(german.files))
    answers = explain(df, german.explainer, id="number", keep=["age", "number"])
    session.sparkContext.setJobGroup("undisturbed", "")
    table = answers.toArrow()
    session.sparkContext.setJobGroup("others", "")
    assert table.column_names == [*german.expected.column_names, "age", "number"]
    check(table, german.expected)
    assert table["number"].equals(table["row"])
    cases = df.select("number", "age").toArrow().sort_by("number")
    assert table.sort_by("row")["age"].combine_chunks().equals(cases["age"].combine_chunks())
    # Negative control of the tests that kill: failed tasks are what a kill leaves, not what is there anyhow.
    tracker = session.sparkContext.statusTracker()
    (job,) = tracker.getJobIdsForGroup("undisturbed")
    stages = [tracker.getStageInfo(number) for number in tracker.getJobInfo(job).stageIds]
    assert [(stage.numTasks, stage.numFailedTasks) for stage in stages] == [(FILES, 0)]


@pytest.mark.parametrize("broken", ["lost", "doubled", "swapped", "changed"])
def test_the_check_sees_rows_that_are_lost_doubled_or_changed(german: German, broken: str) -> None:
    """Negative control: the comparison that the tests with the cluster rest on."""
    order = list(range(ROWS))
    order[3:5] = {"lost": [3], "doubled": [3, 3, 4], "swapped": [4, 3], "changed": [3, 4]}[broken]
    other = german.expected.take(order)
    if broken == "swapped":
        other = other.set_column(0, "row", german.expected["row"])
    if broken == "changed":
        score = other["score"].to_numpy().copy()
        score[5] = np.nextafter(score[5], 1)
        other = other.set_column(other.column_names.index("score"), "score", pa.array(score))
    with pytest.raises(AssertionError, match=r"lost or doubled|not the same"):
        check(other, german.expected)
    check(german.expected, german.expected)


@pytest.mark.slow
def test_types_are_those_in_which_spark_reads_the_run_folder(session: Any, german: German) -> None:
    answers = explain(session.read.parquet(str(german.files)), german.explainer)
    read = session.read.parquet(*map(str, german.parts))
    assert answers.schema.simpleString() == read.drop("decimals").schema.simpleString()
    assert {row["row"] for row in answers.limit(5).collect()} == {None}


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["cluster"], indirect=True)
def test_an_executor_that_is_killed_costs_no_row_and_doubles_none(
    session: Any, cluster: Cluster, german: German
) -> None:
    df = slowed(session.read.parquet(str(german.files)), 0.15)
    answers = explain(df, german.explainer, id="number", chunk_rows=100)
    before = cluster.executors()
    assert len(before) == 2
    table, stage = killed_in_the_middle(session, answers.toArrow, before[0], FILES)
    assert stage.numFailedTasks >= 1
    check(table, german.expected)
    assert before[0] not in cluster.executors()


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["cluster"], indirect=True)
def test_a_worker_that_is_killed_while_files_are_written_costs_no_row_and_doubles_none(
    session: Any, cluster: Cluster, german: German, tmp_path: Path
) -> None:
    wait_for(lambda: len(cluster.executors()) == 2, 60, "the second executor")
    df = slowed(session.read.parquet(str(german.files)), 0.4)
    answers = explain(df, german.explainer, id="number")
    victim = cluster.workers.pop(0)
    _, stage = killed_in_the_middle(session, lambda: answers.write.parquet(str(tmp_path / "out")), victim.pid, FILES)
    cluster.add_worker()
    assert stage.numFailedTasks >= 1
    from pyarrow import parquet

    check(parquet.read_table(tmp_path / "out"), german.expected)


def noted(log: Path) -> Any:
    """A model that writes down the process in which it is unpickled; no module holds it, so it travels by value."""

    class Noted:
        def __init__(self) -> None:
            self.log = str(log)

        def __setstate__(self, state: dict[str, Any]) -> None:
            self.__dict__.update(state)
            with open(self.log, "a") as file:
                file.write(f"{os.getpid()}\n")

        def __call__(self, rows: pd.DataFrame) -> Any:
            return rows["credit_amount"].to_numpy() / 20_000 + rows["duration_months"].to_numpy() / 144

    return Noted()


@pytest.mark.slow
def test_the_explainer_is_unpacked_once_in_each_process(session: Any, german: German, tmp_path: Path) -> None:
    log = tmp_path / "log"
    decision = fw.Decision(noted(log), threshold=0.4)
    explainer = fw.Explainer(
        decision, fw.references.supplied(decision, {"credit_amount": [900], "duration_months": [6]})
    )
    answers = explain(session.read.parquet(*german.some), explainer, id="number", chunk_rows=50)
    for _ in range(2):
        assert len(answers.toArrow()) == ROWS // 4
    pids = log.read_text().split()
    assert len(set(pids)) == len(pids), "a process unpacked it again"
    assert 1 <= len(pids) <= 4, "an executor of one core has a Python process or two; 200 chunks were answered"


@pytest.mark.slow
def test_the_log_sees_a_function_that_unpickles_at_every_batch(session: Any, german: German, tmp_path: Path) -> None:
    """Negative control of the test above."""
    from pyspark import cloudpickle

    log = tmp_path / "log"
    content = cloudpickle.dumps(noted(log))

    def wasteful(batches: Any) -> Any:
        for batch in batches:
            cloudpickle.loads(content)
            yield batch

    df = session.read.parquet(*german.some)
    with pandas_three():
        assert df.mapInArrow(wasteful, df.schema).count() == ROWS // 4
    pids = log.read_text().split()
    assert len(pids) == FILES // 4 * 5 > len(set(pids))


@pytest.mark.slow
def test_a_row_that_does_not_fit_ends_the_job_and_is_named(session: Any, german: German) -> None:
    from pyspark.errors import PythonException
    from pyspark.sql import functions as f

    df = session.read.parquet(str(german.files / f"{FILES - 1}.parquet"))
    spoilt = df.withColumn("purpose", f.when(f.col("number") == 19_900, "a yacht").otherwise(f.col("purpose")))
    answers = explain(spoilt, german.explainer, head=load("german").X[:48])
    said = (
        r"DataError: rows 1000 to 1,249 of partition \d+: .*'a yacht' was never seen|DataError: .*'a yacht' was never"
    )
    with pytest.raises(PythonException, match=said):
        answers.toArrow()


@pytest.mark.slow
def test_dates_decimals_dots_and_names_that_differ_in_case_are_fine(session: Any) -> None:
    days = pd.Timestamp("2026-03-01 00:30") + pd.to_timedelta(np.arange(60), "D")
    X = pd.DataFrame({"a.b": np.arange(60.0), "day": days, "Size": np.arange(60) % 7})

    def score(rows: pd.DataFrame) -> Any:
        return rows["a.b"].to_numpy() / 100 + rows["day"].dt.day.to_numpy() / 31 + rows["Size"].to_numpy() / 100

    decision = fw.Decision(score, threshold=0.8)
    explainer = fw.Explainer(decision, fw.references.supplied(decision, X.iloc[[0]]), n_jobs=1)
    local = explainer.explain(X)
    wide = X.assign(day=X["day"].dt.tz_localize("Europe/Berlin"), size="kept", key=[f"k{k:02}" for k in range(60)])
    with pandas_three():
        session.conf.set("spark.sql.caseSensitive", "true")
        df = session.createDataFrame(pa.Table.from_pandas(wide))
        assert dict(df.dtypes)["day"] == "timestamp"
        df = df.withColumn("`a.b`".strip("`"), df["`a.b`"].cast("decimal(10,2)"))
    table = explain(df, explainer, id="key", keep=["size", "day"]).toArrow().sort_by("row")
    session.conf.unset("spark.sql.caseSensitive")
    assert table["row"].to_pylist() == wide["key"].tolist()
    assert table["status"].to_pylist() == local.to_frame()["status"].tolist()
    assert table["score"].to_pylist() == local.answers.score.tolist()
    assert set(table["size"].to_pylist()) == {"kept"}


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no id": ({"id": "name"}, UsageError, 'no column "name"'),
    "nothing to keep": ({"keep": "customer"}, UsageError, 'no column "customer"'),
    "a name that is taken": ({"keep": ["status"]}, UsageError, 'the answers have a column "status" of their own'),
    "no chunks": ({"chunk_rows": 0}, UsageError, "chunk_rows is 0"),
    "a head of other columns": ({"head": {"a": [1]}}, DataError, "lacks 20 of 20 columns"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_calls_that_make_no_sense_are_refused_before_a_job_is_begun(session: Any, german: German, name: str) -> None:
    more, kind, said = BAD[name]
    df = session.read.parquet(str(german.files))
    if "taken" in name:
        df = df.selectExpr("*", "1 AS status")
    with pytest.raises(kind, match=said):
        explain(df, german.explainer, **more)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["current_timestamp()", "age > 30", "current_date()"])
def test_times_and_truths_where_numbers_belong_are_refused(session: Any, german: German, wrong: str) -> None:
    df = session.read.parquet(str(german.files)).selectExpr("*", f"{wrong} AS other")
    df = df.drop("age").withColumnRenamed("other", "age")
    with pytest.raises(DataError, match='column "age"'):
        explain(df, german.explainer)


@pytest.mark.slow
def test_a_table_without_rows_or_columns_is_named(session: Any, german: German) -> None:
    df = session.read.parquet(str(german.files))
    with pytest.raises(DataError, match="the DataFrame has no rows"):
        explain(df.limit(0), german.explainer)
    with pytest.raises(DataError, match=r"the DataFrame: the table lacks 2 of 20 columns: .*age"):
        explain(df.drop("age", "purpose"), german.explainer)


def test_other_tables_and_sessions_are_refused_without_spark() -> None:
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    explainer = fw.Explainer(decision, fw.references.supplied(decision, {"debt": [20]}))
    with pytest.raises(UsageError, match="a Spark DataFrame is needed; this is a DataFrame"):
        explain(pd.DataFrame({"debt": [90]}), explainer)
    remote = type("DataFrame", (), {"mapInArrow": None, "__module__": "pyspark.sql.connect.dataframe"})
    with pytest.raises(UsageError, match="Spark Connect"):
        explain(remote(), explainer)
    stream = type("DataFrame", (), {"mapInArrow": None, "isStreaming": True, "__module__": "pyspark.sql.dataframe"})
    with pytest.raises(UsageError, match="a stream has no first rows"):
        explain(stream(), explainer)


@pytest.mark.slow
def test_a_model_that_cannot_be_pickled_is_refused(session: Any, german: German) -> None:
    import threading

    lock = threading.Lock()

    def score(rows: pd.DataFrame) -> Any:
        with lock:
            return rows["credit_amount"].to_numpy() / 20_000

    decision = fw.Decision(score, threshold=0.4)
    explainer = fw.Explainer(decision, fw.references.supplied(decision, {"credit_amount": [900]}))
    with pytest.raises(UsageError, match="cannot be sent to the executors"):
        explain(session.read.parquet(str(german.files)), explainer)


def test_a_process_keeps_the_last_few_tasks_and_unpacks_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting:
        reads = 0

        @property
        def value(self) -> Any:
            self.reads += 1
            return iter

    monkeypatch.setattr(spark_module, "_ready", {})
    tasks = [Counting() for _ in range(KEPT + 1)]
    for _ in range(3):
        spark_module._loaded("0", tasks[0])
    assert tasks[0].reads == 1
    for k, task in enumerate(tasks):
        spark_module._loaded(str(k), task)
    assert [task.reads for task in tasks] == [1] * (KEPT + 1)
    assert list(spark_module._ready) == [str(k) for k in range(1, KEPT + 1)]


def test_a_task_survives_its_journey_and_answers_with_ids_and_kept_columns(subject: Any) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    (expected,) = explain_batches(pa.Table.from_pandas(subject.cases).to_batches(), subject.explainer)
    names, schema = (*expected.schema.names, "kept"), expected.schema
    task = _Task(subject.explainer, subject.cases[:48], 0, 64, True, names, schema)
    arrived = pickle.loads(pickle.dumps(spark_module._Packed(cloudpickle.dumps(task))))
    cases = subject.cases[list(subject.explainer.schema.columns)]
    cases = cases.assign(key=np.arange(700)[::-1], more=np.arange(700) * 0.5)
    batches = pa.Table.from_pandas(cases, preserve_index=False).to_batches(max_chunksize=90)
    made = pa.Table.from_batches(list(arrived(iter(batches))))
    assert made["row"].to_pylist() == list(range(699, -1, -1))
    assert made["kept"].to_pylist() == cases["more"].tolist()
    assert made["score"].to_pylist() == expected["score"].to_pylist()
    assert made["to"].to_pylist() == expected["to"].to_pylist()


def wrong_lines(page: str) -> list[str]:
    """Lines of the sizing table whose core-hours do not follow from rows and rows per core-second."""
    wrong = []
    for line in re.findall(r"^\| [^|]+ \| [\d,]+ \| [\d,]+ \| [\d.,e+]+ \| [^|]+ (?:s|min|h) \|.*$", page, re.M):
        speed, rows, hours = (float(cell.replace(",", "")) for cell in line.split("|")[2:5])
        if f"{rows / speed / 3600:.3g}" != f"{hours:.3g}":
            wrong.append(line)
    return wrong


def test_the_sizing_table_follows_from_its_own_figures() -> None:
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    billion = re.findall(r"^\| [^|]+ \| ([\d,]+) \| 1,000,000,000 \| .*$", page, re.M)
    assert len(billion) == 3
    assert wrong_lines(page) == []
    assert len(wrong_lines(page.replace("| 1,000,000,000 |", "| 2,000,000,000 |"))) == 3, "negative control"
