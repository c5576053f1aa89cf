"""Theorems 4.1, 4.2 and 4.3 of the paper, on random trees with one-hot groups; 4.1 in the form that holds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from random_trees import random_rows, random_schema, random_tree, sev_by_enumeration, values_of
from slow_cases import few_or_all, mostly_slow

import fewest as fw
from fewest.models.trees import Leaf, Reach, Split, Tree, boxes, collapse
from fewest.models.trees.leaf_boxes import Interval, nearest_inside
from fewest.tables.schema import Schema

TREES = 1500


def some_trees(seed: int, count: int = TREES):
    random = np.random.default_rng(seed)
    given = 0
    while given < count:
        tree = collapse(random_tree(random, random_schema(random, int(random.integers(1, 5))), 5))
        rows = random_rows(random, tree.schema, 10)
        rows = rows[tree.decide(rows)]
        if tree.n_nodes > 1 and len(rows):
            given += 1
            yield tree, rows


def enterable(tree: Tree, leaf: int, feature: int) -> bool:
    """Whether the leaf's box holds a typed value of the feature."""
    side = dict(boxes(tree))[leaf][feature]
    if isinstance(side, Interval):
        return bool(np.isfinite(nearest_inside(tree.schema.features[feature], side, side.low)))
    return bool(side.inside[: len(tree.schema.features[feature].levels)].any())


def leaf_children_beside(tree: Tree, leaf: int) -> list[tuple[int, int]]:
    """Negative leaves hanging off the path to a leaf (its sibling among them), with the feature that leads there."""
    path = next(path for node, path in tree.paths() if node == leaf)
    beside = [(int(tree.right[node] if left else tree.left[node]), int(tree.feature[node])) for node, left in path]
    return [(node, j) for node, j in beside if tree.feature[node] < 0 and not tree.positive[node]]


@pytest.mark.parametrize("count", few_or_all(TREES // 3, TREES))
def test_theorem_4_1_a_negative_leaf_beside_the_path_makes_sev_t_one(count: int) -> None:
    """Where that leaf's box holds a value of the tested feature. Contradictory paths are gone after collapsing."""
    applies = 0
    for tree, rows in some_trees(1, count):
        codes = tree.encode(rows)
        _, cost = Reach.build(tree).search(codes)
        for k, leaf in enumerate(tree.apply(codes).tolist()):
            if any(enterable(tree, node, j) for node, j in leaf_children_beside(tree, leaf)):
                applies += 1
                assert cost[k] == 1
    assert applies > 1.3 * count


def test_theorem_4_1_fails_where_the_sibling_holds_no_typed_value() -> None:
    """An integer between 2.4 and 2.6 does not exist: the sibling leaf is there, but nobody can move into it."""
    schema = Schema.infer(pd.DataFrame({"age": [1, 5], "job": ["a", "b"]}))
    root = Split(
        "job", frozenset("a"), Leaf(False),
        Split("age", 2.4, Leaf(True), Split("age", 2.6, Leaf(False), Leaf(True))),
    )  # fmt: skip
    tree = Tree.build(schema, root)
    case = pd.DataFrame({"age": [5], "job": ["b"]})
    leaf, cost = Reach.build(tree).search(tree.encode(case))
    assert cost.tolist() == [1.0]
    assert tree.schema.names[int(np.flatnonzero(Reach.build(tree).turn(tree.encode(case), leaf)[1][0])[0])] == "job"
    held = fw.Constraints(fw.Immutable("job"))
    assert np.isinf(Reach.build(tree, constraints=held).search(tree.encode(case))[1]).all()


def test_theorem_4_1_as_printed_fails_for_one_hot_columns_taken_for_features() -> None:
    """`job is a` and `job is b` on one path is no leaf: merged per feature it is gone, column by column it is not."""
    schema = Schema.infer(pd.DataFrame({"job": ["a", "b", "c"]}))
    inner = Split("job", frozenset("b"), Leaf(False), Leaf(True))
    whole = Tree.build(schema, Split("job", frozenset("a"), inner, Leaf(True)))
    assert [whole.positive[node] for node, _ in boxes(whole)] == [True, True]
    assert collapse(whole).n_nodes == 1


@pytest.mark.parametrize("count", few_or_all(120, 300))
def test_theorem_4_2_sev_t_is_the_edit_distance_to_the_negative_side(count: int) -> None:
    """The least number of features that changes anything: no point at all with fewer changes is negative."""
    for tree, rows in some_trees(2, count):
        if tree.n_nodes <= 60:
            _, cost = Reach.build(tree).search(tree.encode(rows.iloc[:2]))
            assert cost.tolist() == [sev_by_enumeration(tree, row) for _, row in rows.iloc[:2].iterrows()]


class Neutral:
    """A classifier that decides as a neutral tree does."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self.classes_ = tree, np.array([0, 1])
        self.feature_names_in_ = np.array(tree.schema.columns, dtype=object)

    def predict_proba(self, X) -> np.ndarray:
        positive = self.tree.decide(X).astype(float)
        return np.column_stack([1 - positive, positive])


@pytest.mark.parametrize("seed", mostly_slow(range(3), (0,)))
def test_theorem_4_2_the_sparsest_of_all_leaves_as_references_gives_the_same_sev(seed: int) -> None:
    """The engine, led to one point of every negative leaf and told to take the sparsest, finds SEV-T."""
    compared = 0
    for tree, rows in some_trees(10 + seed, 40):
        reach = Reach.build(tree)
        inner = [leaf for leaf in range(len(reach.leaf)) if all(typed(tree, int(reach.leaf[leaf])))]
        if len(inner) < len(reach.leaf):
            continue
        goals = pd.concat([point_in(tree, int(node), rows.iloc[[0]]) for node in reach.leaf], ignore_index=True)
        decision = fw.Decision(Neutral(tree), positive=1)
        refs = fw.references.supplied(decision, goals, schema=tree.schema, assignment="sparsest")
        out = fw.Explainer(decision, refs, structure="opaque", n_jobs=1).explain(rows)
        _, cost = reach.search(tree.encode(rows))
        assert out.sev.dropna().tolist() == cost.tolist()
        compared += len(rows)
    assert compared > 80


def typed(tree: Tree, leaf: int) -> list[bool]:
    return [enterable(tree, leaf, j) for j in dict(boxes(tree))[leaf]]


def point_in(tree: Tree, leaf: int, base: pd.DataFrame) -> pd.DataFrame:
    """A typed row inside a leaf."""
    reach = Reach.build(tree)
    number = np.array([np.flatnonzero(reach.leaf == leaf)[0]], dtype=np.int32)
    codes = tree.encode(base)
    after, moved, _ = reach.turn(codes, number)
    return reach.turned(base, after, moved)


def test_theorem_4_3_at_least_that_share_of_the_negatives_is_where_the_answer_lies() -> None:
    from sklearn.tree import DecisionTreeClassifier

    random = np.random.default_rng(0)
    X = pd.DataFrame(random.integers(0, 30, (2000, 4)), columns=list("abcd"))
    y = ((X["a"] + X["b"] * (X["c"] > 12) + random.normal(0, 8, 2000)) > 25).astype(int).to_numpy()
    model = DecisionTreeClassifier(max_depth=5, min_samples_leaf=20, random_state=0).fit(X, y)
    decision = fw.Decision(model)
    out = fw.Explainer(decision, fw.references.leaves(decision, X, y)).explain(X)
    least = out.references.support.min() / (y == 0).sum()
    leaf_of = model.apply(X)
    for answer in out:
        if answer.status == fw.Status.EXPLAINED:
            turned = X.iloc[[answer.row]].copy()
            for change in answer.changes:
                turned[change.feature] = change.after
            there = (leaf_of == model.apply(turned)[0]) & (y == 0)
            assert answer.credibility >= there.sum() / (y == 0).sum()
            assert answer.credibility >= least > 0
            assert answer.support == round(answer.credibility * (y == 0).sum())


def test_the_values_of_the_enumeration_meet_every_cell() -> None:
    """The oracle itself: two thresholds cut three cells, and each has a value."""
    schema = Schema.infer(pd.DataFrame({"rate": [0.5, 2.5]}))
    tree = Tree.build(
        schema, Split("rate", 2.0, Split("rate", 1.0, Leaf(True), Leaf(False)),
                               Leaf(True)),
    )  # fmt: skip
    assert values_of(tree, 0) == [0.0, 1.5, 3.0]
