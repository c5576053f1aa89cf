"""Pipelines that people publish are read, and their answers are those of brute force; a wrong answer is counted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pipelines = pytest.importorskip("pipelines")

HEAVY = (
    "sklearn: splines and their products", "sklearn: target means and a net", "sklearn: PCA and a forest",
    "category_encoders: binary digits", "competitions: crossed levels", "sklearn: kernel map",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else []) for name in pipelines.PIPELINES],
)
def test_published_pipelines_are_read_and_exact(name: str) -> None:
    needs = pipelines.PIPELINES[name][1]
    if needs:
        pytest.importorskip(needs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pipelines.compare(name, 40, 1)
    assert found["read"], found["reason"]
    assert found["cases"] > 5
    assert found["proved"] == found["cases"]
    assert found["wrong"] == 0


def test_a_wrong_answer_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pipelines.smallest

    def one_more(*args: Any) -> np.ndarray:
        return np.asarray(honest(*args)) + 1

    monkeypatch.setattr(pipelines, "smallest", one_more)
    found = pipelines.compare("sklearn: products", 30, 0)
    assert found["wrong"] == found["cases"] > 0
