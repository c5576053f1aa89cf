from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from payloads import STORABLE

import fewest as fw
from fewest.runs import explain_files
from fewest.runs.views import PopulationView, open_run

pytest.importorskip("pyarrow")


def table(n: int, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "debt": random.integers(0, 100, n),
            "rate": np.round(random.normal(size=n), 2),
            "age": np.where(random.random(n) < 0.1, np.nan, random.integers(18, 80, n)),
            "home": random.choice(["own", "rent", "free"], n),
            "sex": random.choice(["f", "m"], n),
        }
    )


def score(rows: pd.DataFrame) -> np.ndarray:
    """A function, so that nothing has to be compiled."""
    parts = rows["debt"] / 100 + rows["rate"] / 8 + 0.2 * (rows["home"] != "own") + 0.15 * (rows["sex"] == "m")
    return np.asarray(parts, dtype=float)


@dataclass(frozen=True)
class Told:
    """A run and what it was made of."""

    view: PopulationView
    explainer: fw.Explainer
    cases: pd.DataFrame


Make = Callable[..., Told]


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Explains a table into a run folder and opens it."""

    def run(
        n: int = 300, part_rows: int = 90, seed: int = 0, choices: dict[str, Any] | None = None, **more: Any
    ) -> Told:
        folder, cases = tmp_path_factory.mktemp("views"), table(n)
        cases.to_parquet(folder / "cases.parquet")
        decision = fw.Decision(score, positive="refused", threshold=0.6)
        schema = fw.Schema.infer(cases).with_("sex", protected=True)
        schema = schema.with_("debt", label="Debt, in thousands", unit="DM")
        typical = {"debt": [30], "rate": [-0.1], "age": [40.0], "home": ["own"], "sex": ["f"]}
        refs = fw.references.supplied(decision, typical, schema=schema)
        explainer = fw.Explainer(decision, refs, n_jobs=1, **(choices or {}))
        done = explain_files(explainer, folder / "cases.parquet", folder / "run", n_jobs=1, part_rows=part_rows, **more)
        return Told(open_run(done.path, seed), explainer, cases)

    return run


@pytest.fixture(scope="session")
def told(make: Make) -> Told:
    return make(alternatives=3, title="Debts")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose names, levels, titles and notes all try to get out."""
    folder = tmp_path_factory.mktemp("hostile")
    random = np.random.default_rng(0)
    cases = pd.DataFrame({name: random.choice([name, f"{name}!"], 60) for name in STORABLE})
    cases.to_parquet(folder / "cases.parquet")
    first, second = STORABLE[0], STORABLE[1]

    def both(rows: pd.DataFrame) -> np.ndarray:
        return 0.4 * (rows[first] == first).to_numpy() + 0.4 * (rows[second] == second).to_numpy()

    decision = fw.Decision(both, positive=STORABLE[2], threshold=0.3)
    schema = fw.Schema.infer(cases)
    for name in STORABLE:
        schema = schema.with_(name, protected=True, label=f"{name} ", unit=name)
    goal = pd.DataFrame({name: [f"{name}!"] for name in STORABLE})
    refs = fw.references.supplied(decision, goal, schema=schema, names=[STORABLE[3]])
    refs = refs.sign_off(STORABLE[4], note=STORABLE[5])
    explainer = fw.Explainer(decision, refs, n_jobs=1, weights={first: 2})
    return explain_files(
        explainer, folder / "cases.parquet", folder / "run", n_jobs=1, alternatives=2, title="".join(STORABLE),
        model_name=STORABLE[6],
    ).path  # fmt: skip
