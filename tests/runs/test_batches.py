"""Arrow batches in, Arrow batches out: the answers of the run folder, however the rows are cut."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.engine.model_reading import ModelReader, ModelReading
from fewest.errors import DataError, FewestWarning, MissingExtraError, ModelError, UsageError
from fewest.runs import explain_files
from fewest.runs.batches import Answering, chunks, explain_batches

pa = pytest.importorskip("pyarrow")


def cut(frame: pd.DataFrame, sizes: list[int]) -> list[Any]:
    """A table in batches of these sizes, over and over."""
    table = pa.Table.from_pandas(frame, preserve_index=False).combine_chunks()
    out, at, k = [], 0, 0
    while at < len(table):
        out += table.slice(at, sizes[k % len(sizes)]).to_batches()
        at, k = at + sizes[k % len(sizes)], k + 1
    return out


def explained(batches: Any, explainer: fw.Explainer, **more: Any) -> Any:
    return pa.Table.from_batches(explain_batches(batches, explainer, **more))


def folder_table(run: Any) -> Any:
    """The part files as one Arrow table."""
    from pyarrow import parquet

    parts = [parquet.read_table(run.path / part["table"]["name"]) for part in run.manifest["parts"]]
    return pa.concat_tables(parts).drop_columns(["decimals"])


def same(left: Any, right: Any) -> bool:
    """Whether two tables hold the same, dictionaries aside."""

    def plain(table: Any) -> Any:
        columns = {}
        for name in table.column_names:
            column = table[name].combine_chunks()
            kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
            columns[name] = column.cast(kind)
        return pa.table(columns)

    return bool(plain(left).equals(plain(right)))


@pytest.fixture(scope="module")
def whole(subject: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("batches") / "run"
    return folder_table(explain_files(subject.explainer, subject.parquet, folder, n_jobs=1, alternatives=2))


@pytest.mark.parametrize(
    ("sizes", "chunk_rows"), [([700], 55), ([1, 30, 222], 48), ([47, 2], 701), ([5], 20_000), ([9, 400], 350)]
)
def test_however_the_rows_are_cut_the_answers_are_those_of_the_run_folder(
    subject: Any, whole: Any, sizes: list[int], chunk_rows: int
) -> None:
    out = explained(cut(subject.cases, sizes), subject.explainer, chunk_rows=chunk_rows, alternatives=2)
    assert out["row"].to_pylist() == list(range(700))
    assert same(out, whole)


@pytest.mark.parametrize("broken", ["lost", "doubled", "swapped", "changed"])
def test_the_comparison_sees_a_table_that_is_not_the_same(whole: Any, broken: str) -> None:
    """Negative control of the test above."""
    order = list(range(700))
    order[3:5] = {"lost": [3], "doubled": [3, 3], "swapped": [4, 3], "changed": [3, 4]}[broken]
    other = whole.take(order)
    if broken == "changed":
        score = other["score"].to_numpy().copy()
        score[5] = np.nextafter(score[5], 1)
        other = other.set_column(other.column_names.index("score"), "score", pa.array(score))
    assert not same(other, whole)
    assert same(whole.take(list(range(700))), whole)


def test_features_of_all_kinds_and_missing_values_are_as_in_the_run_folder(everything: Any, tmp_path: Path) -> None:
    explainer, X = everything
    X.to_parquet(tmp_path / "cases.parquet")
    run = explain_files(explainer, tmp_path / "cases.parquet", tmp_path / "run", n_jobs=1)
    assert same(explained(cut(X, [11, 100]), explainer, chunk_rows=50), folder_table(run))


def test_rows_are_numbered_from_the_first(subject: Any) -> None:
    out = explained(cut(subject.cases[:7], [3]), subject.explainer, first=40, chunk_rows=2)
    assert out["row"].to_pylist() == list(range(40, 47))


def test_batches_are_read_only_as_they_are_needed(subject: Any) -> None:
    read = []

    def stream() -> Iterator[Any]:
        for number, batch in enumerate(cut(subject.cases, [50])):
            read.append(number)
            yield batch

    out = explain_batches(stream(), subject.explainer, chunk_rows=100)
    assert read == []
    assert len(next(out)) == 100
    assert read == [0, 1]


def test_the_inside_is_looked_at_once_and_on_the_same_rows_for_any_cut(
    subject: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[pd.DataFrame] = []
    look: Callable[..., Any] = ModelReader.look

    def watched(self: ModelReader, cases: pd.DataFrame) -> Any:
        if self.reading is None:
            seen.append(cases)
        return look(self, cases)

    monkeypatch.setattr(ModelReader, "look", watched)
    for sizes in ([700], [1, 5], [60]):
        explained(cut(subject.cases[:90], sizes), subject.explainer, chunk_rows=30)
    assert len(seen) == 3
    for head in seen:
        pd.testing.assert_frame_equal(head, seen[0])
    assert len(seen[0]) == 48


def test_a_head_that_is_given_is_used_and_a_stream_without_rows_is_then_empty(subject: Any) -> None:
    assert list(explain_batches([], subject.explainer, head=subject.cases[:48])) == []
    empty = pa.Table.from_pandas(subject.cases[:0], preserve_index=False).to_batches()
    for nothing in ([], empty):
        with pytest.raises(DataError, match="no rows"):
            list(explain_batches(nothing, subject.explainer))


BAD: dict[str, tuple[Callable[[pd.DataFrame], Any], str]] = {
    "missing columns": (lambda X: X.drop(columns=["debt", "age"]), r"batch 1: the table lacks 2 of 5 columns"),
    "unseen level": (lambda X: X.assign(code="Z99"), r"rows 60 to 69 of the data: .*index 60.*'Z99' was never seen"),
    "text in numbers": (lambda X: X.assign(debt="much"), r"rows 60 to 69 of the data: .*'much' is not a number"),
    "infinite": (lambda X: X.assign(rate=np.inf), r'row 60 of the data, column "rate": it is infinite'),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_named_by_their_number_in_the_stream(subject: Any, name: str) -> None:
    spoil, said = BAD[name]
    batches = cut(subject.cases[:60], [60]) + cut(spoil(subject.cases[60:80]), [10])
    with pytest.raises(DataError, match=said):
        list(explain_batches(batches, subject.explainer, chunk_rows=20))


def test_a_column_that_stands_twice_is_named(subject: Any) -> None:
    (batch,) = cut(subject.cases, [700])
    double = pa.RecordBatch.from_arrays([*batch.columns, batch["age"]], names=[*batch.schema.names, "age"])
    with pytest.raises(DataError, match='batch 0 has the column "age" more than once'):
        list(explain_batches([double], subject.explainer))


def test_further_columns_another_order_and_drifting_types_are_fine(subject: Any, whole: Any) -> None:
    batches = cut(subject.cases[:300], [300])
    other = subject.cases[300:].astype({"debt": float, "age": "int32"})[["home", "code", "rate", "age", "debt"]]
    batches += cut(other.assign(more="x"), [90])
    assert same(explained(batches, subject.explainer, alternatives=2), whole)


class Fails:
    """A model that raises, or loses its numbers, at one row."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __call__(self, rows: pd.DataFrame) -> Any:
        if (rows["debt"] == 77).any():
            if self.how == "raises":
                raise RuntimeError("no such customer")
            return np.full(len(rows), np.nan)
        return rows["debt"].to_numpy() / 1000


@pytest.mark.parametrize("how", ["raises", "nan"])
def test_a_model_that_fails_in_the_middle_is_an_error_with_a_place(how: str) -> None:
    decision = fw.Decision(Fails(how), threshold=0.05)
    explainer = fw.Explainer(decision, fw.references.supplied(decision, {"debt": [3]}))
    out = explain_batches(cut(pd.DataFrame({"debt": range(100)}), [13]), explainer, chunk_rows=25)
    assert [len(next(out)) for _ in range(3)] == [25, 25, 25]
    with pytest.raises(ModelError, match="rows 75 to 99 of the data"):
        next(out)


def test_warnings_are_given_once_for_the_head(subject: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read = ModelReading.read

    def doubtful(*given: Any) -> Any:
        from dataclasses import replace

        return replace(read(*given), doubt="it was looked at and not believed")

    monkeypatch.setattr(ModelReading, "read", doubtful)
    with pytest.warns(FewestWarning, match="not believed") as given:
        explained(cut(subject.cases[:100], [10]), subject.explainer, chunk_rows=10)
    assert len(given) == 1


def test_calls_that_make_no_sense_are_refused_before_anything_is_read(
    subject: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never() -> Iterator[Any]:
        raise AssertionError("it was read")
        yield

    with pytest.raises(UsageError, match="chunk_rows is 0"):
        explain_batches(never(), subject.explainer, chunk_rows=0)
    with pytest.raises(UsageError, match="batch 0 is a DataFrame"):
        list(explain_batches([subject.cases], subject.explainer))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"fewest\[runs\]"):
        explain_batches(never(), subject.explainer)


def test_answers_towards_the_leaves_of_a_tree_are_those_of_the_run_folder(subject: Any, tmp_path: Path) -> None:
    from sklearn.tree import DecisionTreeClassifier

    numbers = subject.cases[["debt", "age", "rate"]]
    labels = (numbers["debt"] + 5 * numbers["rate"] > 60).astype(int)
    decision = fw.Decision(DecisionTreeClassifier(max_depth=4, random_state=0).fit(numbers, labels))
    explainer = fw.Explainer(decision, fw.references.leaves(decision, numbers, labels), n_jobs=1)
    run = explain_files(explainer, subject.parquet, tmp_path / "run", n_jobs=1, alternatives=2)
    out = explained(cut(numbers, [31]), explainer, chunk_rows=100, alternatives=2)
    assert same(out, folder_table(run))


def test_chunks_hold_every_row_once_and_in_order() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        sizes = random.integers(0, 7, 12).tolist()
        ends = np.cumsum(sizes).tolist()
        batches = [pa.record_batch({"a": np.arange(end - size, end)}) for size, end in zip(sizes, ends, strict=True)]
        rows = int(random.integers(1, 9))
        made = [[row for piece in pieces for row in piece["a"].to_pylist()] for pieces in chunks(batches, rows)]
        assert [row for one in made for row in one] == list(range(ends[-1]))
        assert all(len(one) == rows for one in made[:-1])


def test_an_answering_explainer_is_another_than_the_one_it_was_made_of(subject: Any) -> None:
    answering = Answering.ready(subject.explainer, subject.cases[:48])
    assert answering.explainer is not subject.explainer
    assert answering.explainer.reader.reading is not None
