"""Pages that stay small, a server that starts quickly and stays small, whoever asks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='pip install "fewest[explore]"')
pytest.importorskip("uvicorn", reason='pip install "fewest[explore]"')
pytest.importorskip("pyarrow", reason='pip install "fewest[runs]"')

from explorer_runs import Subject, people
from explorer_serving import PATHS, load

from fewest.runs import explain_files

DECISION, POPULATION, READY, MEMORY = 60_000, 400_000, 1.5, 150.0
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def thousand(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 1,000 cases that were all decided against."""
    folder = tmp_path_factory.mktemp("thousand")
    cases, _ = people(8000, 5)
    refused = cases[subject.decision.score(cases) >= 0.5][:1000]
    assert len(refused) == 1000
    refused.to_csv(folder / "cases.csv", index=False)
    explain_files(subject.explainer, folder / "cases.csv", folder / "run", n_jobs=1, alternatives=5)
    return folder / "run"


def test_the_pages_of_a_small_run_are_small(ask: Ask, subject: Subject) -> None:
    browser = ask(subject.run)
    assert len(browser.get("/decision/2").body) <= DECISION
    assert len(browser.get("/population").body) <= POPULATION


@pytest.mark.slow
def test_the_pages_of_a_thousand_cases_are_small(ask: Ask, thousand: Path) -> None:
    browser = ask(thousand)
    sizes = {path: len(browser.get(path.format(3)).body) for path in PATHS}
    print(json.dumps({"pages": sizes}))
    assert sizes["/decision/{}"] <= DECISION
    assert sizes["/population"] <= POPULATION


@pytest.mark.slow
def test_fifty_users_with_twenty_requests_each(thousand: Path) -> None:
    figures = load(thousand, 50, 20)
    print(json.dumps(figures))
    assert figures["errors"] == 0
    assert figures["ready_cpu_s"] <= READY
    assert figures["peak_mb"] < MEMORY


def test_a_few_users_at_once_get_no_errors(subject: Subject) -> None:
    figures = load(subject.run, 4, 8)
    assert figures["errors"] == 0
    assert figures["ready_cpu_s"] <= 2 * READY  # other tests may be at work beside it
    assert figures["peak_mb"] < MEMORY
