"""The same answers on a Spark DataFrame: Arrow batches in, the columns of a run folder out.

The explainer travels as a broadcast variable, once to each executor, and is unpacked once in each Python process.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from fewest.engine.model_reading import SAMPLE
from fewest.errors import DataError, FewestError, FewestWarning, UsageError
from fewest.explainer import Explainer
from fewest.runs.batches import CHUNK_ROWS, Answering, check_call, chunks
from fewest.runs.cases import check_columns
from fewest.runs.storage import digest

Mapped = Callable[[Iterator[Any]], Iterator[Any]]
KEPT = 4


def explain(
    df: Any,
    explainer: Explainer,
    *,
    keep: Sequence[str] = (),
    id: str | None = None,
    alternatives: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    head: Any = None,
) -> Any:
    """Explain the rows of a Spark DataFrame.

    The result has the columns of a run folder (without ``decimals``), with the types in which Spark reads its part
    files. Like every DataFrame it is lazy. An error in a row ends the Spark job; its text names the partition and the
    rows.

    The explainer is pickled and sent over Spark's own channel to the executors, which must have the same versions of
    ``fewest`` and of the model's library installed. Unpickling runs code: use a cluster whose members trust each
    other, as Spark itself demands for every Python function.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Cases in raw columns; further columns are left out. Timestamps are read in the session's time zone.
    explainer : Explainer
    keep : sequence of str
        Columns that are copied through, after those of the answers.
    id : str, optional
        The column whose values stand in ``row``. Without it ``row`` is null: the rows of a DataFrame have no order.
    alternatives : int
        As in `Explainer.explain`.
    chunk_rows : int
        Rows explained at once in a Python process: less memory, more time.
    head : table, optional
        Rows on which the model's inside is tried, in the driver and in every process. Default: 48 rows of ``df``,
        taken by a small Spark job at once.

    Returns
    -------
    pyspark.sql.DataFrame

    Examples
    --------
    >>> import fewest as fw
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> explainer = fw.Explainer(decision, fw.references.supplied(decision, {"debt": [20], "age": [50]}))
    >>> answers = explain(spark.read.parquet("cases"), explainer, id="customer")  # doctest: +SKIP
    >>> answers.write.parquet("answers")  # doctest: +SKIP

    Any other table is refused, with the name of what takes it:

    >>> explain({"debt": [90], "age": [40]}, explainer)
    Traceback (most recent call last):
    fewest.errors.UsageError: a Spark DataFrame is needed; this is a dict
      Try: use Explainer.explain for tables in memory, or explain_files; for Spark: pip install "fewest[spark]"
    """
    check_call(chunk_rows)
    _check_table(df, head)
    used = _Used.of(df, explainer, [keep] if isinstance(keep, str) else keep, id)
    plain = used.select(df, explainer)
    single = explainer.with_(n_jobs=1)  # a task has one core
    answering = Answering(single)
    head = _first_rows(plain, answering) if head is None else single.schema.conform(head, unseen=single.unseen)
    answering = Answering.ready(single, head, alternatives)
    schema = _answer_schema(answering, head)
    task = _Task(single, head, alternatives, chunk_rows, id is not None, (*schema.names, *used.keep), schema)
    with warnings.catch_warnings():
        # Spark warns of what its conversion from and to pandas 3 may lack; nothing here is converted by it.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        return plain.mapInArrow(_shipped(df.sparkSession.sparkContext, task), used.result(df, schema))


def _check_table(df: Any, head: Any) -> None:
    """Refuse what is not a DataFrame of a classic Spark session."""
    home = type(df).__module__
    if not (home.startswith("pyspark.") and hasattr(df, "mapInArrow")):
        raise UsageError(
            f"a Spark DataFrame is needed; this is a {type(df).__name__}",
            do='use Explainer.explain for tables in memory, or explain_files; for Spark: pip install "fewest[spark]"',
        )
    if ".connect." in home:
        raise UsageError(
            "a Spark Connect session cannot send an explainer to each executor once: it has no broadcast variables",
            do="use a classic session, or call fewest.runs.batches.explain_batches in a mapInArrow of your own",
        )
    if df.isStreaming and head is None:
        raise UsageError("a stream has no first rows to try the model's inside on", do="pass some rows as head=")


@dataclass(frozen=True)
class _Used:
    """Which columns of a DataFrame are used, by their places: names may hold dots or differ only in case."""

    features: list[int]
    id: int | None
    keep: dict[str, int]

    @classmethod
    def of(cls, df: Any, explainer: Explainer, keep: Sequence[str], id: str | None) -> _Used:
        names = list(df.columns)
        check_columns(Path("the DataFrame"), names, explainer.schema)
        for name in (*keep, *(() if id is None else (id,))):
            if name not in names:
                raise UsageError(f'the DataFrame has no column "{name}" to keep', do=f"choose from {', '.join(names)}")
        features = [names.index(column) for column in explainer.schema.columns]
        return cls(features, None if id is None else names.index(id), {name: names.index(name) for name in keep})

    def select(self, df: Any, explainer: Explainer) -> Any:
        """Features, id and kept columns under plain names, in this order."""
        plain = df.toDF(*(f"c{k}" for k in range(len(df.columns))))
        columns = []
        for place, name in zip(self.features, explainer.schema.columns, strict=True):
            column = plain[f"c{place}"]
            local = df.schema[place].dataType.typeName() == "timestamp"
            if local and getattr(explainer.schema.dtypes.get(name), "tz", None) is None:
                column = column.cast("timestamp_ntz")
            columns.append(column)
        others = [*([] if self.id is None else [self.id]), *self.keep.values()]
        columns += [plain[f"c{place}"] for place in others]
        return plain.select([column.alias(f"u{k}") for k, column in enumerate(columns)])

    def result(self, df: Any, schema: Any) -> Any:
        """The Spark schema of the answers with what is kept."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        taken = [name for name in self.keep if name in schema.names]
        if taken:
            raise UsageError(
                f'the answers have a column "{taken[0]}" of their own', do="rename the column that is to be kept"
            )
        fields = [StructField(field.name, from_arrow_type(field.type)) for field in schema]
        if self.id is not None:
            fields[schema.names.index("row")] = StructField("row", df.schema[self.id].dataType)
        return StructType([*fields, *(StructField(name, df.schema[k].dataType) for name, k in self.keep.items())])


def _first_rows(plain: Any, answering: Answering) -> pd.DataFrame:
    """Rows to try the model's inside on, typed."""
    names = list(answering.explainer.schema.columns)
    table = plain.select(plain.columns[: len(names)]).limit(SAMPLE).toArrow().rename_columns(names)
    if len(table) == 0:
        raise DataError("the DataFrame has no rows", do="pass at least one row")
    return answering.typed(table.to_batches(), 0)


def _answer_schema(answering: Answering, head: pd.DataFrame) -> Any:
    """Columns of the answers, in Arrow types that Spark knows; one row is answered to see them."""
    import pyarrow as pa

    def known(kind: Any) -> Any:
        if pa.types.is_dictionary(kind):
            return known(kind.value_type)
        return pa.decimal128(20) if pa.types.is_uint64(kind) else kind

    row = pa.RecordBatch.from_pandas(head.iloc[:1], preserve_index=False)
    return pa.schema([(field.name, known(field.type)) for field in answering.table([row], 0).schema])


@dataclass(frozen=True)
class _Task:
    """What a Python process on an executor needs; all of them try the model's inside on the same few rows."""

    explainer: Explainer
    head: pd.DataFrame
    alternatives: int
    chunk_rows: int
    identified: bool  # whether the first column after the features is the one whose values stand in ``row``
    names: tuple[str, ...]  # columns of the result: the answers, then what is kept
    schema: Any  # the answers, in Arrow types that Spark knows

    def ready(self) -> Mapped:
        """What turns the batches of a partition into answers; warnings were given in the driver."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewestWarning)
            answering = Answering.ready(self.explainer, self.head, self.alternatives)

        def partition(batches: Iterator[Any]) -> Iterator[Any]:
            first = 0
            with _placed():
                for pieces in chunks(batches, self.chunk_rows):
                    yield from self._answers(answering, pieces, first)
                    first += sum(map(len, pieces))

        return partition

    def _answers(self, answering: Answering, pieces: list[Any], first: int) -> list[Any]:
        import pyarrow as pa

        columns = list(self.explainer.schema.columns)
        p = len(columns)
        cases = [pa.RecordBatch.from_arrays(piece.columns[:p], names=columns) for piece in pieces]
        table = answering.table(cases, first)
        others = pa.Table.from_batches(pieces).columns[p:]
        answers = {field.name: table[field.name].cast(field.type) for field in self.schema}
        answers["row"] = others.pop(0) if self.identified else pa.nulls(len(table), answers["row"].type)
        whole = pa.Table.from_arrays([*answers.values(), *others], names=list(self.names))
        return list(whole.combine_chunks().to_batches())


@contextmanager
def _placed() -> Iterator[None]:
    """Say in which partition something went wrong: its rows are counted from its own first one."""
    try:
        yield
    except FewestError as error:
        from pyspark import TaskContext

        context = TaskContext.get()
        place = "partition" if context is None else f"partition {context.partitionId()}"
        message = error.message.replace("of the data", f"of {place}", 1)
        raise type(error)(message if place in message else f"{place}: {message}", error.do) from error


@dataclass(frozen=True)
class _Packed:
    """A pickled task that unpickles as what it does, so that the bytes do not stay in memory."""

    content: bytes

    def __reduce__(self) -> tuple[Callable[[bytes], Mapped], tuple[bytes]]:
        return _unpack, (self.content,)


def _unpack(content: bytes) -> Mapped:
    task: _Task = _pickler().loads(content)
    return task.ready()


def _pickler() -> Any:
    """Spark's own: it takes functions and classes that no module holds."""
    return import_module("pyspark.cloudpickle")


_ready: dict[str, Mapped] = {}


def _shipped(context: Any, task: _Task) -> Mapped:
    """The function that runs on the executors; the task goes there as a broadcast variable."""
    try:
        content = _pickler().dumps(task)
    except Exception as error:
        raise UsageError(
            f"the model cannot be sent to the executors ({type(error).__name__}: {error})",
            do="use a model that can be pickled",
        ) from error
    key, packed = digest(content), context.broadcast(_Packed(content))

    def answers(batches: Iterator[Any]) -> Iterator[Any]:
        return _loaded(key, packed)(batches)

    return answers


def _loaded(key: str, packed: Any) -> Mapped:
    """The task of this key, unpacked at its first use in this process.

    Spark forgets a broadcast variable in a process that did something else in between; this does not.
    """
    if key not in _ready:
        while len(_ready) >= KEPT:
            del _ready[next(iter(_ready))]
        _ready[key] = packed.value
    return _ready[key]
