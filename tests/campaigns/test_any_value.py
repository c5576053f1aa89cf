"""The campaign over whole domains would notice a wrong answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import any_value
from fewest.engine.search.domains.any_values import TreeDomains


def test_a_slice_finds_nothing(capsys: Any) -> None:
    assert any_value.main(["--count", "2", "--kind", "trees"]) == 0
    assert "2 models of 2, four cases each, 0 with a wrong answer" in capsys.readouterr().out


def test_an_unfinished_campaign_says_so() -> None:
    assert any_value.main(["--count", "2", "--seconds", "-1"]) == any_value.OVER


@pytest.mark.slow
def test_a_search_that_finds_nothing_is_noticed(monkeypatch: Any) -> None:
    """Negative control."""
    solve = TreeDomains.solve

    def twin(self: Any, asked: Any, *rest: Any) -> Any:
        return solve(self, asked._replace(may=np.zeros_like(asked.may)), *rest)

    monkeypatch.setattr(TreeDomains, "solve", twin)
    assert any_value.main(["--count", "3", "--kind", "trees"]) == any_value.WRONG
