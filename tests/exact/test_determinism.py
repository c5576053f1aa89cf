"""Same bytes for any number of threads, any batch, any order of rows and columns; for every structure."""

from __future__ import annotations

import pytest
from slow_cases import mostly_slow

from fewest import checks
from fewest.experiments.benchmarking import subjects

KINDS = ("l2lr", "gbdt", "mlp", "histgb", "xgboost", "lightgbm", "forest", "kernel", "bayes")


@pytest.mark.parametrize("kind", mostly_slow(KINDS, ("l2lr", "gbdt", "mlp", "xgboost", "kernel")))
def test_an_answer_depends_on_its_case_alone(kind: str) -> None:
    if kind in ("xgboost", "lightgbm"):
        pytest.importorskip(kind)
    subject = subjects.subject("german", kind)
    explainer = subject.explainer(unseen="allow")
    one = explainer.explain(subject.cases, alternatives=3).to_json()
    two = explainer.with_(n_jobs=2).explain(subject.cases, alternatives=3).to_json()
    assert one == two
    checks.check_batches(explainer, subject.cases.iloc[:24])
