"""The light core works where no optional library is installed, and says what to install where one is needed."""

from __future__ import annotations

import subprocess
import sys

BLOCK = """
import sys
class Blocker:
    names = {"lightgbm", "xgboost", "catboost", "torch", "interpret", "polars", "pyarrow", "skops", "matplotlib",
             "pacmap", "fastapi", "uvicorn", "onnx", "onnxruntime", "pyspark", "highspy"}
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            raise ImportError(f"No module named {name!r}")
sys.meta_path.insert(0, Blocker())
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCK + script], capture_output=True, text=True, check=False)


def test_the_blocker_blocks() -> None:
    assert "No module named 'torch'" in run("import torch").stderr


def test_the_core_explains_without_any_extra() -> None:
    done = run("""
import fewest as fw
from fewest import checks
from fewest.datasets import load
from sklearn.ensemble import GradientBoostingClassifier
data = load("german")
X = data.X.select_dtypes("number")
decision = fw.Decision(GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, data.y))
refs = fw.references.single(decision, X, data.y)
out = fw.Explainer(decision, refs).explain(X)
print(checks.check_turns(out) > 0, len(out.to_json()) > 1000)
""")
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_a_missing_library_is_named_with_its_install_line(tmp_path) -> None:  # type: ignore[no-untyped-def]
    model = tmp_path / "model.skops"
    model.write_bytes(b"not read")
    table = tmp_path / "cases.csv"
    table.write_text("a,y\n1,0\n2,1\n")
    script = f"""
from fewest.apps.cli import main
sys.argv = ["fewest", "explain", {str(table)!r}, "--model", {str(model)!r}, "--train", {str(table)!r}, "--target", "y"]
sys.exit(main())
"""
    done = run(script)
    assert done.returncode != 0
    assert "skops" in done.stderr
    assert "pip install" in done.stderr


def test_importing_fewest_does_not_import_scikit_learn_or_torch() -> None:
    done = run("import fewest; print([m for m in ('sklearn', 'torch', 'matplotlib') if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr
