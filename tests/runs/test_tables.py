"""What the run folder holds is what `Explanations` says, cell by cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fewest.runs import Run, explain_files
from fewest.runs.parts import as_arrow, as_parquet, certificates, read_answers, row_hashes
from fewest.tables.json_cells import moved_cells, numbers


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


def test_certificates_say_in_one_line_what_is_claimed(everything: Any) -> None:
    explainer, X = everything
    out = explainer.explain(X)
    lines = [
        json.loads(line)
        for line in certificates(out.answered(1000, row_hashes(out.schema, out.frame))).decode().splitlines()
    ]
    assert [line["row"] for line in lines] == list(range(1000, 1240))
    for line, answer in zip(lines, out, strict=True):
        assert line["set"] == [change.feature for change in answer.changes]
        assert [line["status"], line["sev"], line["by"]] == [answer.status.value, answer.sev, answer.proof.strategy]
        assert line["score"] == answer.score
        assert line["score_after"] == answer.score_after


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
    sizes = pd.Series(out.sev()).value_counts().sort_index()
    assert run.manifest["sev"] == {str(size): int(count) for size, count in sizes.items()}
    assert sorted(fingerprint(run.path)) == sorted(
        ["manifest.json", "references.json"]
        + [f"part-0000{k}.{ending}" for k in range(4) for ending in ("parquet", "cases.parquet", "certificates.jsonl")]
    )
