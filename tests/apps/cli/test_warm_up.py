"""``fewest doctor --warm``, with which `make test` begins."""

from __future__ import annotations

import pytest

from fewest.apps.cli import main
from fewest.engine.search import _blocks, _kernels, _members, _program, _sorted_effects, additive
from fewest.engine.search.domains import _box_sets, _near_sets, _nearest_boxes, _nearest_sums, _profiles, _stairs
from fewest.engine.search.domains import _row_bounds as rows


def test_doctor_warms_every_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--warm"]) == 0
    assert "searches" in capsys.readouterr().out
    entries = (
        _blocks.tree_sizes, _blocks.tree_costs, _blocks.additive_sizes, _blocks.additive_costs, _blocks.greedy,
        _program.list_leaves, _sorted_effects.solve_block, _kernels.vertices, additive._changes, _near_sets.search,
        _box_sets.search, _profiles.score_cells, _nearest_boxes.search, _nearest_sums.search, rows.tree_rows,
        rows.sum_rows, _stairs.search, _members.terms_of, _members.sets_of_size,
    )  # fmt: skip
    assert all(entry.overloads for entry in entries)  # type: ignore[attr-defined]
