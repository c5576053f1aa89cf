"""Random settings that keep their training rows: a density needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import random_models as rm

import fewest as fw


@dataclass
class Case:
    setting: rm.Setting
    X: pd.DataFrame
    y: np.ndarray

    @property
    def schema(self) -> fw.Schema:
        return self.setting.references.schema

    def explainer(self, credibility: fw.credibility.Credibility | None, **options: Any) -> fw.Explainer:
        setting = self.setting
        return fw.Explainer(setting.decision, setting.references, credibility=credibility, n_jobs=1, **options)


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Iterator[tuple[np.random.Generator, Case]]]:
    """Random models of a kind, each with the rows it was fitted on."""
    kept: dict[str, Any] = {}
    table, labels = rm.table, rm.labels

    def keep_table(random: np.random.Generator, n: int, p: int) -> pd.DataFrame:
        kept["X"] = table(random, n, p)
        return kept["X"]

    def keep_labels(random: np.random.Generator, X: pd.DataFrame) -> np.ndarray:
        kept["y"] = labels(random, X)
        return kept["y"]

    monkeypatch.setattr(rm, "table", keep_table)
    monkeypatch.setattr(rm, "labels", keep_labels)

    def make(kind: str, count: int, salt: int = 0, first: int = 0) -> Iterator[tuple[np.random.Generator, Case]]:
        for seed in (*range(first, count), *range(first)):
            random = np.random.default_rng([seed, salt, len(kind)])
            setting = getattr(rm, kind)(random)
            yield random, Case(setting, kept["X"], kept["y"])

    return make


def _crowd(frame: pd.DataFrame) -> np.ndarray:
    """A density of no shape at all: it looks at the first and the last column."""
    first, last = (frame.iloc[:, j].map(lambda cell: sum(str(cell).encode())).to_numpy() for j in (0, -1))
    return np.asarray(-np.abs(first % 7 - 2.0) + 0.5 * (last % 3))


@pytest.fixture
def random_credibility() -> Callable[[np.random.Generator, Case], fw.credibility.Credibility]:
    """A density of any kind with a floor anywhere."""

    def make(random: np.random.Generator, case: Case) -> fw.credibility.Credibility:
        rows: tuple[Any, ...] = (case.setting.decision, case.X, case.y)
        floor = float(random.choice([0.05, 0.2, 0.5, 0.8, 1.0]))
        kind = random.integers(6)
        if kind == 4:
            return fw.credibility.neighbours(*rows, k=3, quantile=floor, schema=case.schema)
        if kind == 5:
            return fw.credibility.supplied(*rows, _crowd, quantile=floor, schema=case.schema)
        return fw.credibility.mixture(
            *rows, quantile=floor, n_components=int(random.integers(1, 4)), paper=bool(random.random() < 0.3),
            schema=case.schema,
        )  # fmt: skip

    return make


@pytest.fixture
def random_options() -> Callable[[np.random.Generator, Case], dict[str, Any]]:
    """Constraints and weights, or none."""

    def make(random: np.random.Generator, case: Case) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if random.random() < 0.5:
            options["constraints"] = rm.random_constraints(random, case.schema)
        if random.random() < 0.3:
            options["weights"] = {name: float(random.integers(1, 5)) for name in case.schema.names}
        return options

    return make
