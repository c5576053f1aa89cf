"""Illustrations made from data show what they say, and the table of floors counts what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fewest import references
from fewest.decision import Decision
from fewest.experiments.paper import OwnData, figures, find, floors, load_split
from fewest.experiments.paper.base import NotOfThisTableError
from fewest.models.trees import CARTClassifier

pytest.importorskip("matplotlib")


def drawn(name: str, data: Any = None) -> pd.DataFrame:
    dataset = "german" if data is None else data.name
    return figures.draw(figures.find(name, data, quick=True), [dataset], {}).numbers


def test_two_cases_go_from_the_query_to_the_reference_by_way_of_the_explanation() -> None:
    numbers = drawn("two_cases")
    assert numbers["case"].nunique() == 2
    for _, steps in numbers.groupby("case"):
        query, answer, reference = (steps[steps["type"] == kind] for kind in ("query", "explanation", "reference"))
        assert not query["accepted"].any()
        assert answer["accepted"].all()
        assert reference["accepted"].all()
        assert set(query["vertex"].iloc[0]) == {"1"}
        assert set(reference["vertex"].iloc[0]) == {"0"}
        kept = [digit == "1" for digit in answer["vertex"].iloc[0]]
        for source, own in ((query, kept), (reference, [not one for one in kept])):
            assert answer["value"].to_numpy()[own].tolist() == source["value"].to_numpy()[own].tolist()


def test_a_leaf_beside_the_path_makes_sev_t_one_and_taking_the_nearest_away_raises_it() -> None:
    leaves = drawn("theorems")
    assert leaves.loc[leaves["nearest"], "sev"].unique().tolist() == [leaves["sev"].min()]
    assert leaves.loc[~leaves["nearest"], "sev"].min() > leaves["sev"].min()
    rows = figures.find("theorems", quick=True)
    tree, own, found = rows._case("german")  # type: ignore[attr-defined]
    # Theorem 4.1, read off the tree: a child beside the path that is an accepted leaf makes it 1.
    path, sides = {own}, []
    for node in range(own, -1, -1):
        children = {int(tree.left[node]), int(tree.right[node])}
        if children & path:
            sides += list(children - path)
            path.add(node)
    beside = any(side in tree.leaves and not tree.positive[side] for side in sides)
    assert (found["sev"].min() == 1) or not beside


def test_soft_k_means_without_the_score_puts_centres_elsewhere() -> None:
    numbers = drawn("soft_kmeans")
    plain, by_score = (part for _, part in numbers.groupby("clustering", sort=False))
    assert plain["rows"].sum() == by_score["rows"].sum()
    assert not np.allclose(np.sort(plain["x"]), np.sort(by_score["x"]))


def test_a_tree_that_decides_all_alike_is_left_out() -> None:
    X = pd.DataFrame({"a": [0] * 40, "b": [1, 2] * 20})
    own = OwnData.read(X, [1] * 12 + [0] * 28, 1, n_clusters=1)
    with pytest.raises(NotOfThisTableError, match="decides every case alike"):
        drawn("theorems", own)


def test_credible_answers_need_no_fewer_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floors, "QUICK_KINDS", floors.KINDS)
    monkeypatch.setattr(floors, "QUICK_FLOORS", floors.FLOORS)
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(200, 3)), columns=["a", "b", "c"])
    own = OwnData.read(X, (X["a"] + X["b"] > 0.5).astype(int), 1, n_clusters=2)
    table = find("floors", own, quick=True)
    found = {record.method: record.figures for record in table.cells("own", 0, lambda line: None)}
    assert set(found) == set(table.methods)
    for figures_of in found.values():
        parts = ("explained", "not_credible", "unreachable", "stopped")
        assert sum(figures_of[part] for part in parts) == figures_of["decided"] > 0
        assert np.isnan(figures_of["sev"]) or figures_of["sev"] >= figures_of["same"]
    dense = [found[f"L2LR SEV1 floor {floor}"]["log_density"] for floor in ("0.00", "0.25")]
    assert dense[1] >= dense[0]


def test_every_accepted_leaf_of_the_drawing_has_its_count() -> None:
    """Splits that decide nothing are not in the references: the tree that is drawn must not have them either."""
    tree, own, found = figures.find("theorems", quick=True)._case("german")  # type: ignore[attr-defined]
    accepted = [f"leaf {number}" for number, node in enumerate(tree.leaves, start=1) if not tree.positive[node]]
    assert sorted(found["leaf"]) == sorted(accepted)
    assert tree.positive[own]
    rows = load_split("german", 0).first(400)
    grown = CARTClassifier(max_depth=3).fit(rows.X_train, rows.y_train).tree_
    assert len(grown.leaves) > len(tree.leaves), "negative control: the tree as it was grown has other leaves"


def test_leaves_are_numbered_as_the_references_are() -> None:
    """The drawing finds the count of a leaf by its name."""
    X = pd.DataFrame({"a": [1, 2, 3, 4] * 10, "b": [1, 2] * 20})
    y = ((X["a"] > 2) & (X["b"] > 1)).astype(int)
    model = CARTClassifier(max_depth=3).fit(X, y)
    refs = references.leaves(Decision(model, positive=1), X, y)
    negative = [number for number, node in enumerate(model.tree_.leaves, start=1) if not model.tree_.positive[node]]
    assert list(refs.names) == [f"leaf {number}" for number in negative]
