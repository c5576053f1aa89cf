"""Where pyarrow is not installed, CSV goes in and JSON lines come out, with the same answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

from fewest.runs import Run, explain_files, verify

SCRIPT = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pyarrow":
            raise ImportError(f"No module named {name!r}")
sys.meta_path.insert(0, Blocker())
import joblib
import fewest as fw
from fewest.runs import explain_files, verify
decision = fw.Decision(joblib.load(sys.argv[1]), positive="bad")
explainer = fw.Explainer(decision, fw.references.load(sys.argv[2], decision))
run = explain_files(explainer, sys.argv[3], sys.argv[4], n_jobs=1, part_rows=300, alternatives=2)
report = verify(run.path, sys.argv[3], decision)
print(report.ok, run.manifest["settings"]["parts"])
"""


def test_answers_are_the_same_without_pyarrow(subject: Any, tmp_path: Path) -> None:
    model, references = tmp_path / "model.joblib", tmp_path / "references.json"
    joblib.dump(subject.decision.model, model)
    subject.explainer.references.save(references)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, (model, references, subject.csv, tmp_path / "plain"))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "jsonl"], done.stderr
    assert sorted(file.name for file in (tmp_path / "plain").glob("part-00000*")) == [
        "part-00000.cases.jsonl", "part-00000.certificates.jsonl", "part-00000.jsonl"]  # fmt: skip
    arrow = explain_files(subject.explainer, subject.csv, tmp_path / "arrow", n_jobs=1, part_rows=300, alternatives=2)
    for name in ("part-00000.certificates.jsonl", "part-00002.certificates.jsonl"):
        assert (arrow.path / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    pd.testing.assert_frame_equal(Run.open(tmp_path / "plain").table(), arrow.table(), check_dtype=False)
    assert verify(tmp_path / "plain", subject.csv, subject.decision).ok
    plain = Run.open(tmp_path / "plain")
    for row in (0, 299, 300, 699):
        assert plain.explanation(row) == arrow.explanation(row)
