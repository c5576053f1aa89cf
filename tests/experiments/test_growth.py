"""Fitted exponents, and the page that shows them."""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from fewest.experiments.benchmarking.growth_ladders import Ladder, fitted, ladders

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("exponent", [-0.5, 0.0, 1.0, 2.5])
def test_the_exponent_of_a_power_law_is_recovered(exponent: float) -> None:
    points = [(value, 3e-6 * value**exponent) for value in (2, 5, 9, 40)]
    assert fitted(points) == (pytest.approx(exponent, abs=1e-4), 1.0)


def test_what_is_not_a_power_law_shows_a_miss() -> None:
    assert fitted([(value, 2.0**value) for value in (1, 2, 4, 8)])[1] > 1.5


def test_a_ladder_fails_when_the_cost_grows_faster_than_it_may() -> None:
    def row(limit: float) -> bool | None:
        return Ladder("trees", "GBDT", (1, 2, 4), lambda count: 1e-6 * count**1.5, limit, "1").row().met

    assert row(1.6) is True
    assert row(1.4) is False


def test_each_ladder_has_rungs_in_ascending_order() -> None:
    assert {ladder.varied for ladder in ladders()} == {"features", "trees", "depth", "references", "rows"}
    for ladder in ladders():
        assert len(ladder.values) >= 4
        assert list(ladder.values) == sorted(set(ladder.values))


def test_the_page_has_exponents_a_picture_and_the_cost_of_a_billion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    climbed = Ladder("trees", "GBDT", (1, 2, 4), lambda count: 1e-6 * count, 1.2, "1").row()
    (tmp_path / "speed.jsonl").write_text(json.dumps(asdict(climbed)) + "\n", "utf-8")
    sized = {"title": "LR", "rows": 36_000, "spark": {"cpu": 1.0}}
    (tmp_path / "sizing.jsonl").write_text(json.dumps(sized) + "\n", "utf-8")
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    script = runpy.run_path(str(BENCHMARKS / "speed_page.py"))
    script["main"].__globals__["PAGE"] = tmp_path / "speed.md"
    was = "on 2026-11-15\n| growth with trees, GBDT | 1.1 exponent | <= 1.2 | yes | - |\n"
    (tmp_path / "speed.md").write_text(was, "utf-8")
    script["main"](str(tmp_path / "speed.jsonl"), str(tmp_path / "sizing.jsonl"))
    page = (tmp_path / "speed.md").read_text("utf-8")
    assert "| growth with trees, GBDT | 1 exponent | 1.1 exponent | <= 1.2 | yes |" in page
    assert "*Before* is what this page said on 2026-11-15." in page
    assert "| LR | 36,000 | 7.72 | 4.63 min | 27.8 s |" in page
    assert (tmp_path / "growth.svg").read_text("utf-8").startswith("<?xml")
