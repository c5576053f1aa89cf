"""An explainer as an MLflow model: the same answers, from a folder without a pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.errors import MissingExtraError, ModelError
from fewest.persistence import mlflow_model

X = pd.DataFrame({"debt": [80, 20, 90, 10], "age": [30, 50, 40, 60]})


def explainer() -> fw.Explainer:
    model = LogisticRegression().fit(X, ["bad", "good", "bad", "good"])
    decision = fw.Decision(model, positive="bad", names={"bad": "refused", "good": "approved"})
    return fw.Explainer(decision, fw.references.supplied(decision, X.iloc[[3]], X=X), n_jobs=1)


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/runs.db")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    found = pytest.importorskip("mlflow", reason="MLflow is not installed (extra mlflow)")
    found.set_tracking_uri((tmp_path / "mlruns").as_uri())
    return found


@pytest.mark.filterwarnings("ignore")
def test_a_saved_folder_predicts_and_explains_as_the_explainer_does(mlflow: Any, tmp_path: Path) -> None:
    explainer().save(tmp_path / "credit.fewest")
    mlflow_model.save_mlflow(tmp_path / "credit.fewest", tmp_path / "model")
    assert not [*(tmp_path / "model").rglob("*.pkl")]
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    plain = loaded.predict(X)
    assert plain["prediction"].tolist() == ["refused", "approved", "refused", "approved"]
    full, out = loaded.predict(X, params={"explain": True}), explainer().explain(X)
    assert full["sentence"].tolist() == out.sentences.tolist()
    assert [json.loads(cell) for cell in full["features"]] == out.to_frame()["features"].tolist()
    assert full["sev"].tolist() == out.to_frame()["sev"].tolist()


@pytest.mark.filterwarnings("ignore")
def test_a_run_holds_the_model_and_the_report(mlflow: Any, tmp_path: Path) -> None:
    with mlflow.start_run() as run:
        info = mlflow_model.log_mlflow(explainer(), cases=X)
    assert mlflow.pyfunc.load_model(info.model_uri).predict(X)["prediction"].tolist()[0] == "refused"
    page = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/report.html")
    assert "refused" in page
    assert mlflow.get_run(run.info.run_id).data.metrics["EXPLAINED"] == 2


def test_what_is_not_an_explainer_is_refused(mlflow: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"is not a \.fewest file"):
        mlflow_model.save_mlflow(tmp_path / "model.skops", tmp_path / "model")


def test_without_mlflow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mlflow_model, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="fewest\\[mlflow\\]"):
        mlflow_model.save_mlflow(explainer(), tmp_path / "model")
