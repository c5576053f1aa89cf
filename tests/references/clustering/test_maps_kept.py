"""A PaCMAP of the same rows and settings is made once, and never given for others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fewest.references.clustering import embedding
from fewest.references.clustering.embedding import MAPS_KEPT, pacmap

Z = np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The rows that PaCMAP was run on; its places are the first two columns."""
    calls: list[Any] = []

    def run(rows: Any, settings: pacmap) -> Any:
        calls.append(rows)
        return np.asarray(rows[:, :2], dtype=np.float64) + settings.random_state

    monkeypatch.setattr(embedding, "_maps", {})
    monkeypatch.setattr(embedding, "_run_pacmap", run)
    return calls


def test_the_same_rows_and_settings_are_mapped_once(made: list[Any]) -> None:
    first, second = pacmap().fit(Z), pacmap().fit(Z.copy())
    assert len(made) == 1
    assert np.array_equal(first.coordinates, second.coordinates)


def test_other_rows_or_settings_are_mapped_anew(made: list[Any]) -> None:
    moved = Z.copy()
    moved[7, 1] += 0.01
    for rows, settings in ((Z, pacmap()), (moved, pacmap()), (Z, pacmap(random_state=1)), (Z, pacmap(middle_near=1.0))):
        settings.fit(rows)
    assert len(made) == 4


def test_a_map_that_is_changed_by_its_user_stays_as_it_was(made: list[Any]) -> None:
    first: Any = pacmap().fit(Z)
    first.places[:] = 0.0
    again: Any = pacmap().fit(Z)
    assert np.array_equal(again.places, made[0][:, :2])


def test_few_are_kept(made: list[Any]) -> None:
    for seed in range(MAPS_KEPT + 3):
        replace(pacmap(), random_state=seed).fit(Z)
    assert len(embedding._maps) == MAPS_KEPT
    pacmap(random_state=MAPS_KEPT + 2).fit(Z)
    assert len(made) == MAPS_KEPT + 3
    pacmap(random_state=0).fit(Z)
    assert len(made) == MAPS_KEPT + 4
