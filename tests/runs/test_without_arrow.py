"""Where pyarrow is not installed, one line says what to install; folders of JSON lines are still read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib

from fewest.runs import Run

OLD = Path(__file__).parents[1] / "reporting" / "views" / "run-format-1"
BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pyarrow":
            raise ImportError(f"No module named {name!r}")
sys.meta_path.insert(0, Blocker())
"""
EXPLAIN = """
import joblib
import fewest as fw
from fewest.errors import FewestError
from fewest.runs import explain_files
decision = fw.Decision(joblib.load(sys.argv[1]), positive="bad")
explainer = fw.Explainer(decision, fw.references.load(sys.argv[2], decision))
try:
    explain_files(explainer, sys.argv[3], sys.argv[4], n_jobs=1)
except FewestError as error:
    print(type(error).__name__, "|", error.message, "|", error.do)
"""
READ = """
from fewest.runs import Run
print(Run.open(sys.argv[1]).explanation(1))
"""


def without_arrow(script: str, *arguments: Any) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + script, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_explaining_files_without_pyarrow_says_what_to_install(subject: Any, tmp_path: Path) -> None:
    model, references = tmp_path / "model.joblib", tmp_path / "references.json"
    joblib.dump(subject.decision.model, model)
    subject.explainer.references.save(references)
    said = without_arrow(EXPLAIN, model, references, subject.csv, tmp_path / "run")
    assert said == 'MissingExtraError | writing a run folder needs pyarrow | pip install "fewest[runs]"'
    assert not (tmp_path / "run").exists()


def test_a_folder_of_json_lines_is_read_without_pyarrow() -> None:
    assert without_arrow(READ, OLD) == str(Run.open(OLD).explanation(1))
