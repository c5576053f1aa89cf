"""Maps of one case, of regions and of clusters: what they table is what the model and the search say."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.errors import UsageError
from fewest.reporting.plots import ClusterMapDisplay, HypercubeDisplay, RegionDisplay

Train = tuple[pd.DataFrame, np.ndarray]


def first_of_size(out: fw.Explanations, size: int) -> int:
    """The first case with an answer of that size that has no value in common with its reference."""
    apart = (out.frame != out.references.frame.iloc[0]).all(axis=1).to_numpy()
    return int(np.flatnonzero((out.answers.moved.sum(axis=1) == size) & apart)[0])


def check_cube(table: pd.DataFrame, row: int, out: fw.Explanations) -> None:
    """Every vertex has the model's own score, and the marked one is the smallest that is accepted."""
    case, reference = out.frame.iloc[row], out.references.frame.iloc[0]
    decision = out.references.decision
    for vertex in table.itertuples():
        taken = [name for name in str(vertex.aligned).split(", ") if name]
        mixed = pd.DataFrame([case.where(~case.index.isin(taken), reference)])
        assert vertex.score == pytest.approx(decision.score(mixed)[0])
        assert vertex.accepted == (vertex.score < decision.cut)
    marked = table[table["answer"]]
    assert len(marked) == 1
    assert marked["accepted"].all()
    assert marked["level"].iloc[0] == table.loc[table["accepted"], "level"].min()


@pytest.mark.parametrize("size", [1, 2])
def test_the_cube_has_every_vertex_scored_and_marks_the_smallest_that_turns(out: fw.Explanations, size: int) -> None:
    row = first_of_size(out, size)
    table = HypercubeDisplay.from_explanations(out, row).table
    assert len(table) == 16
    assert sorted(table["aligned"]) == sorted(", ".join(c) for k in range(5) for c in combinations("abcd", k))
    check_cube(table, row, out)


def test_a_cube_with_another_vertex_marked_is_noticed(out: fw.Explanations) -> None:
    """Negative control of the test above."""
    row = first_of_size(out, 1)
    table = HypercubeDisplay.from_explanations(out, row).table
    broken = table.assign(answer=table["level"] == 4)
    with pytest.raises(AssertionError):
        check_cube(broken, row, out)


def test_the_cube_is_drawn_with_all_edges_and_a_way_to_the_answer(out: fw.Explanations) -> None:
    row = first_of_size(out, 2)
    ax = HypercubeDisplay.from_explanations(out, row).plot().ax_
    assert len(ax.lines) == 4 * 2**3
    assert sum(line.get_linewidth() > 2 for line in ax.lines) == 2
    ring = ax.collections[-1].get_offsets()
    assert ring.tolist()[0][0] == 2.0
    assert "digits: a, b, c, d" in ax.get_xlabel()


def test_a_part_of_the_cube_can_be_chosen_but_not_without_the_answer(out: fw.Explanations) -> None:
    row = first_of_size(out, 1)
    moved = [name for name, took in zip("abcd", out.answers.moved[row], strict=True) if took]
    other = next(name for name in "abcd" if name not in moved)
    assert len(HypercubeDisplay.from_explanations(out, row, [*moved, other]).table) == 4
    with pytest.raises(UsageError, match="also changes"):
        HypercubeDisplay.from_explanations(out, row, [other])


def test_cubes_that_cannot_be_drawn_are_refused(decision: fw.Decision, out: fw.Explanations) -> None:
    accepted = int(np.flatnonzero(~out.answers.moved.any(axis=1))[0])
    with pytest.raises(UsageError, match="no answer"):
        HypercubeDisplay.from_explanations(out, accepted)
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 7)).round(2), columns=list("abcdefg"))
    many = fw.Decision(lambda frame: frame.sum(axis=1).to_numpy(), threshold=0.0, positive=True)
    refs = fw.references.single(many, wide, wide.sum(axis=1).to_numpy() > 0, on_positive="allow")
    explained = fw.Explainer(many, refs, n_jobs=1).explain(wide)
    row = int(np.flatnonzero(explained.answers.moved.any(axis=1))[0])
    moved = [name for name, took in zip("abcdefg", explained.answers.moved[row], strict=True) if took]
    with pytest.raises(UsageError, match=rf'at most 5, those of the answer among them: features=\["{moved[0]}"'):
        HypercubeDisplay.from_explanations(explained, row, list("abcdefg"))
    display = HypercubeDisplay.from_explanations(explained, row)
    assert display.features == tuple(moved)
    assert len(display.table) == 2 ** len(moved)
    held = fw.Decision(lambda frame: (frame != 0).any(axis=1).to_numpy(dtype=float), positive=True)
    ones = pd.DataFrame(np.ones((1, 6)), columns=list("abcdef"))
    all_six = fw.Explainer(held, fw.references.supplied(held, ones * 0), n_jobs=1).explain(ones)
    with pytest.raises(UsageError, match="choose a case whose answer changes at most 5 features"):
        HypercubeDisplay.from_explanations(all_six, 0)
    plus = fw.Explainer(decision, out.references, direction="plus", n_jobs=1).explain(out.frame)
    with pytest.raises(UsageError, match="SEV-"):
        HypercubeDisplay.from_explanations(plus, 0)


def test_regions_are_what_the_explainer_says_of_each_point(model_explainer: fw.Explainer, train: Train) -> None:
    plain = model_explainer.with_(credibility=None)
    display = RegionDisplay.from_explainer(plain, train[0], features=("b", "d"), steps=9)
    table = display.table
    assert list(table)[:2] == ["b", "d"]
    points = pd.concat([plain.references.frame] * len(table), ignore_index=True).assign(b=table["b"], d=table["d"])
    again = plain.explain(points)
    for region, answer in zip(table["region"], again, strict=True):
        assert region == ("accepted" if answer.status == fw.Status.ALREADY_NEGATIVE else f"SEV {answer.sev}")
    assert set(table["region"]) == {"accepted", "SEV 1", "SEV 2"}
    ax = display.plot().ax_
    assert {text.get_text() for text in ax.texts} == set(table["region"])
    assert ax.lines[0].get_xdata().tolist() == plain.references.frame["b"].tolist()


def test_regions_need_two_numbers_that_vary() -> None:
    X = pd.DataFrame({"a": [1, 2, 3, 4], "job": ["x", "y", "x", "y"], "same": [7, 7, 7, 7]})
    decision = fw.Decision(lambda frame: frame["a"].to_numpy() / 4, positive=True, threshold=0.7)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, X["a"] > 2), n_jobs=1)
    with pytest.raises(UsageError, match="two numeric"):
        RegionDisplay.from_explainer(explainer, X, features=("a", "job"))
    with pytest.raises(UsageError, match="one value only"):
        RegionDisplay.from_explainer(explainer, X, features=("a", "same"))


def test_a_cluster_map_counts_all_rows_and_draws_some(decision: fw.Decision, train: Train) -> None:
    refs = fw.references.clusters(decision, *train, n_clusters=3, embedding="pca")
    display = ClusterMapDisplay.from_references(refs, train[0], most=50)
    assert display.table["rows"].sum() == len(train[0])
    assert display.table["accepted"].sum() == int((~decision.verdicts(train[0]).positive).sum())
    assert len(display.points) == 50
    ax = display.plot().ax_
    stars = ax.collections[-1].get_offsets().tolist()
    assert stars == display.table[["x", "y"]].to_numpy().tolist()
    assert {text.get_text() for text in ax.texts} == set(refs.names)
    again = ClusterMapDisplay.from_references(refs, train[0], most=50)
    assert again.points.equals(display.points)


@pytest.mark.parametrize("embedding", ["identity", "pca"])
def test_maps_of_many_dimensions_are_flattened(decision: fw.Decision, train: Train, embedding: str) -> None:
    refs = fw.references.clusters(decision, *train, n_clusters=2, embedding=embedding)
    display = ClusterMapDisplay.from_references(refs, train[0])
    assert display.points[["x", "y"]].shape == (len(train[0]), 2)


def test_references_that_are_no_clusters_have_no_map(decision: fw.Decision, train: Train) -> None:
    with pytest.raises(UsageError, match=r"references\.clusters"):
        ClusterMapDisplay.from_references(fw.references.single(decision, *train), train[0])
