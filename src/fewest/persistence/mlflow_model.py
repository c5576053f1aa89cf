"""Explainers as MLflow models: `predict` gives outcomes and scores, and with ``explain`` what would have changed them.

What is saved is the .fewest file, and a line of code that opens it; nothing is pickled.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest import __version__
from fewest.errors import MissingExtraError, ModelError
from fewest.explainer import Explainer
from fewest.persistence.explainers import load
from fewest.reporting import html
from fewest.results.explanations import Explanations

ARTIFACT = "explainer"
CODE = (
    "from mlflow.models import set_model\n\nfrom fewest.persistence.mlflow_model import python_model\n\n"
    "set_model(python_model())\n"
)
PARAMS = (("explain", "boolean", False), ("alternatives", "long", 0))
SHOWN = ("status", "sev", "features", "from", "to", "score_after", "proved")


def save_mlflow(explainer: Explainer | str | Path, path: str | Path) -> None:
    """Write an explainer as a folder that MLflow loads as a pyfunc model.

    Parameters
    ----------
    explainer : Explainer or path
        An explainer, or the .fewest file of one.
    path : path
        The folder to write.
    """
    mlflow = _mlflow()
    with tempfile.TemporaryDirectory() as folder:
        mlflow.pyfunc.save_model(path=str(path), **_options(_file(explainer, Path(folder)), Path(folder)))


def log_mlflow(explainer: Explainer | str | Path, name: str = "explainer", *, cases: Any = None) -> Any:
    """Log an explainer to the active MLflow run; with ``cases`` also the report of their answers, ``report.html``.

    Parameters
    ----------
    explainer : Explainer or path
        An explainer, or the .fewest file of one.
    name : str
        What the model is called in the run.
    cases : table, optional
        Cases to explain for the report.

    Returns
    -------
    mlflow.models.model.ModelInfo
    """
    mlflow = _mlflow()
    with tempfile.TemporaryDirectory() as folder:
        file = _file(explainer, Path(folder))
        info = mlflow.pyfunc.log_model(name=name, **_options(file, Path(folder)))
        if cases is not None:
            out = load(file).explain(cases)
            mlflow.log_text(html(out), "report.html")
            mlflow.log_metrics({name: float(count) for name, count in out.counts().items()})
    return info


def python_model() -> Any:
    """The model as MLflow calls it."""
    mlflow = _mlflow()

    class FewestModel(mlflow.pyfunc.PythonModel):  # type: ignore[misc, name-defined]
        """Opens the .fewest file and answers."""

        def load_context(self, context: Any) -> None:
            self.explainer = load(context.artifacts[ARTIFACT])

        def predict(
            self, context: Any, model_input: pd.DataFrame, params: Mapping[str, Any] | None = None
        ) -> pd.DataFrame:
            return answer(self.explainer, model_input, **(params or {}))

    return FewestModel()


def answer(explainer: Explainer, cases: Any, explain: bool = False, alternatives: int = 0) -> pd.DataFrame:
    """Outcome and score of each case; with ``explain`` what would have changed it, lists as JSON text.

    Examples
    --------
    >>> import fewest as fw
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> explainer = fw.Explainer(decision, fw.references.supplied(decision, {"debt": [20]}))
    >>> answer(explainer, {"debt": [90, 10]})
      prediction  score
    0    refused    0.9
    1   accepted    0.1
    >>> answer(explainer, {"debt": [90, 10]}, explain=True)[["sev", "features", "to"]].values.tolist()
    [[1, '["debt"]', '[20]'], [<NA>, '[]', '[]']]
    """
    if not explain:
        frame = explainer.schema.conform(cases, unseen=explainer.unseen)
        verdicts = explainer.decision.verdicts(frame)
        return _outcomes(explainer, verdicts.positive, verdicts.score, frame.index)
    out: Explanations = explainer.explain(cases, alternatives=alternatives)
    table = out.to_frame(sentences=True)
    refused = (table["status"] != "ALREADY_NEGATIVE").to_numpy()
    said = _outcomes(explainer, refused, table["score"].to_numpy(), table.index)
    for name in (*SHOWN, "sentence"):
        is_list = name in ("features", "from", "to")
        said[name] = [json.dumps(cell, default=str) for cell in table[name]] if is_list else table[name].to_numpy()
    said["sev"], said["status"] = table["sev"], table["status"].astype(str)
    return said


def _outcomes(explainer: Explainer, positive: Any, score: Any, index: Any) -> pd.DataFrame:
    names = np.array([explainer.decision.negative_name, explainer.decision.positive_name], dtype=object)
    return pd.DataFrame({"prediction": names[np.asarray(positive, dtype=int)], "score": score}, index=index)


def _options(file: Path, folder: Path) -> dict[str, Any]:
    """What MLflow is handed."""
    from mlflow.models import ModelSignature
    from mlflow.types.schema import ParamSchema, ParamSpec

    code = folder / "model.py"
    code.write_text(CODE, encoding="utf-8")
    params = ParamSchema([ParamSpec(name, kind, default) for name, kind, default in PARAMS])
    return {
        "python_model": str(code), "artifacts": {ARTIFACT: str(file)}, "signature": ModelSignature(params=params),
        "pip_requirements": [f"fewest[models]=={__version__}"],
    }  # fmt: skip


def _file(explainer: Explainer | str | Path, folder: Path) -> Path:
    """The .fewest file; one is written where an explainer is given."""
    if isinstance(explainer, str | Path):
        path = Path(explainer)
        if path.suffix.lower() != ".fewest" or not path.is_file():
            raise ModelError(f"{path} is not a .fewest file", do="write one: explainer.save(path) or `fewest build`")
        return path
    explainer.save(folder / "explainer.fewest")
    return folder / "explainer.fewest"


def _mlflow() -> Any:
    if find_spec("mlflow") is None:
        raise MissingExtraError("this needs MLflow", do='pip install "fewest[mlflow]"')
    import mlflow.pyfunc

    return mlflow
