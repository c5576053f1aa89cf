"""What the run folder holds is what `Explanations` says, cell by cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fewest.runs import Run, explain_files
from fewest.runs.parts import as_arrow, as_parquet, certificates, read_answers, read_certificates, row_hashes
from fewest.tables.arrays import true_cells
from fewest.tables.json_cells import arrow_texts, moved_cells, numbers, texts
from fewest.tables.schema import Feature


@pytest.mark.parametrize("direction", ["minus", "plus"])
def test_every_cell_is_the_one_that_explanations_show(everything: Any, direction: Any, tmp_path: Path) -> None:
    explainer, X = everything
    out = explainer.with_(direction=direction).explain(X, alternatives=4)
    assert out.counts()["EXPLAINED"] > 20
    answered = out.answered(0, row_hashes(out.schema, out.frame))
    records = json.loads(out.to_json())["answers"]
    (tmp_path / "a.parquet").write_bytes(as_parquet(as_arrow(answered)))
    (in_memory,) = out.tables()
    for shown in (read_answers(tmp_path / "a.parquet"), in_memory):
        for record, row in zip(records, shown.to_dict("records"), strict=True):
            assert [row["row"], row["status"], row["reference"]] == [
                record["row"],
                record["status"],
                record["reference"],
            ]
            assert (None if row["sev"] is pd.NA else row["sev"]) == record["sev"]
            told = [
                {"feature": f, "from": a, "to": b}
                for f, a, b in zip(row["features"], row["from"], row["to"], strict=True)
            ]
            assert told == record["changes"]
            assert row["alternatives"] == record["alternatives"]
            for figure in ("score", "score_after", "margin", "l_inf", "cost", "log_density"):
                value = row[figure]
                assert (None if np.isnan(value) else value) == record[figure], figure
            bound = row["lower_bound"]
            assert (None if np.isinf(bound) else bound) == record["lower_bound"]
            assert [row["proved"], row["strategy"], row["nodes"]] == [
                record["proved"], record["strategy"], record["nodes"]]  # fmt: skip


def test_certificates_say_what_is_claimed(everything: Any, tmp_path: Path) -> None:
    explainer, X = everything
    out = explainer.explain(X)
    table = as_arrow(out.answered(1000, row_hashes(out.schema, out.frame)))
    (tmp_path / "a.parquet").write_bytes(as_parquet(certificates(table)))
    said = read_certificates(tmp_path / "a.parquet")
    assert said["row"].tolist() == list(range(1000, 1240))
    for line, answer in zip(said.to_dict("records"), out, strict=True):
        assert list(line["set"]) == [change.feature for change in answer.changes]
        assert [line["status"], line["by"]] == [answer.status.value, answer.proof.strategy]
        assert (None if np.isnan(line["sev"]) else line["sev"]) == answer.sev
        assert line["score"] == answer.score
        assert (None if np.isnan(line["score_after"]) else line["score_after"]) == answer.score_after


def test_texts_in_a_list_and_in_a_column_hold_the_same_values(everything: Any) -> None:
    explainer, X = everything
    frame = explainer.schema.conform(X)
    moved = np.random.default_rng(0).random((len(frame), len(explainer.schema))) < 0.5
    expected = [json.loads(text) for text in moved_cells(explainer.schema, frame, moved)]
    found = [json.loads(text) for text in moved_cells(explainer.schema, frame, moved, arrow_texts).to_pylist()]
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))
    rows, owner = np.nonzero(moved)
    assert [a.tolist() for a in true_cells(moved)] == [rows.tolist(), owner.tolist()]


@pytest.mark.parametrize("kind", ["number", "integer"])
def test_numbers_of_any_size_are_read_back_as_they_were(kind: Any) -> None:
    values = [0.0, -0.0, 1.0, -3.0, 0.1, 1e-5, 1e16, 1e22, 123456789012.5, 5e-324, 1.7976931348623157e308, np.nan]
    values += [] if kind == "number" else [float(2**53)]
    feature, frame = Feature("x", kind, ("x",)), pd.DataFrame({"x": values})
    written = [arrow_texts(feature, rows).to_pylist() for rows in (frame, frame.iloc[:4])]
    expected = [texts(feature, rows) for rows in (frame, frame.iloc[:4])]
    for some, other in zip(written, expected, strict=True):
        assert list(map(json.loads, some)) == list(map(json.loads, other))
        assert [type(json.loads(text)) for text in some[:4]] == [type(json.loads(text)) for text in other[:4]]


def test_a_wrong_cell_would_be_noticed(everything: Any) -> None:
    """Negative control: the text of another row is another text."""
    explainer, X = everything
    frame = explainer.schema.conform(X)
    moved = np.ones((len(frame), len(explainer.schema)), dtype=bool)
    texts = moved_cells(explainer.schema, frame, moved)
    assert texts != moved_cells(explainer.schema, frame.iloc[::-1], moved)
    assert len(texts) == moved.sum()


def test_hashes_hang_on_values_and_not_on_how_they_are_stored(everything: Any) -> None:
    explainer, X = everything
    schema = explainer.schema
    frame = schema.conform(X)
    hashes = row_hashes(schema, frame)
    assert len(np.unique(hashes)) == len(frame)
    as_float = frame.assign(own=frame["own"].astype(float), text=frame["text"].astype(object))
    assert (row_hashes(schema, as_float) == hashes).all()
    assert (row_hashes(schema, frame.iloc[10:30]) == hashes[10:30]).all()
    alone = [row_hashes(schema, frame.iloc[[k]])[0] for k in range(len(frame))]
    assert (np.array(alone) == hashes).all()
    other = frame.assign(number=frame["number"] + 1e-12)
    assert (row_hashes(schema, other) != hashes)[frame["number"].notna()].all()
    swapped = frame.assign(left=frame["right"], right=frame["left"])
    assert (row_hashes(schema, swapped) != hashes).all()


def test_numbers_that_are_not_finite_are_null() -> None:
    assert numbers(np.array([1.5, np.nan, np.inf, -np.inf])) == ["1.5", "null", "null", "null"]
    assert numbers(np.array([])) == []


def test_the_folder_holds_what_explain_gives(subject: Any, fingerprint: Any, tmp_path: Path) -> None:
    run = explain_files(subject.explainer, subject.parquet, tmp_path / "run", n_jobs=1, part_rows=200)
    out = subject.explainer.explain(subject.cases)
    assert run.counts == out.counts()
    assert len(run.manifest["parts"]) == 4
    whole = Run.open(tmp_path / "run").table()
    expected = out.to_frame().reset_index(drop=True)
    assert whole["status"].tolist() == expected["status"].tolist()
    assert whole["features"].tolist() == expected["features"].tolist()
    assert whole["to"].tolist() == expected["to"].tolist()
    assert whole["score"].tolist() == expected["score"].tolist()
    sizes = out.sev.dropna().value_counts().sort_index()
    assert run.manifest["sev"] == {str(size): int(count) for size, count in sizes.items()}
    assert sorted(fingerprint(run.path)) == sorted(
        ["manifest.json", "references.json"]
        + [
            f"part-0000{k}.{ending}"
            for k in range(4)
            for ending in ("parquet", "cases.parquet", "certificates.parquet")
        ]
    )
