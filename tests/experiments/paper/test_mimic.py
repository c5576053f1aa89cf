"""MIMIC-III for whoever holds it: every table takes it, and the public demo of it runs through every table."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewest.experiments import paper
from fewest.experiments.paper import Store, figures, run_table, summarise

SHARED = Path(__file__).parents[4] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the data folder ../shared/data is not here")


@pytest.mark.parametrize("name", paper.names())
def test_every_table_takes_mimic_and_its_demo(name: str) -> None:
    table = paper.find(name)
    assert {"mimic", "mimic_demo"} <= set(table.datasets)
    assert table.settings("mimic") == table.settings("mimic_demo")


def test_the_printed_lines_of_mimic_stand_beside_it() -> None:
    for name in ("sev1", "sevc", "sevcf", "trees", "allopt1", "alloptc", "expo", "sizes"):
        assert any(dataset == "mimic" for dataset, _ in paper.find(name).published), name


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize("name", paper.names())
def test_the_demo_runs_through_every_table(name: str) -> None:
    table = paper.find(name, SHARED, quick=True)
    lines = summarise(table, run_table(table, ["mimic_demo"], 1, Store()))
    assert lines
    assert all(line.dataset == "mimic_demo" for line in lines)


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize("name", ["cluster_maps", "regions", "hypercube", "two_cases", "soft_kmeans", "theorems"])
def test_the_demo_is_drawn(name: str) -> None:
    pytest.importorskip("matplotlib")
    assert len(figures.draw(figures.find(name, SHARED, quick=True), ["mimic_demo"], {}).numbers)
