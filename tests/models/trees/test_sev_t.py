"""SEV-T against plain enumeration, on thousands of random trees; and twins that the enumeration must catch."""

from __future__ import annotations

import numpy as np
import pytest
from random_trees import decide, point_of, random_rows, random_schema, random_tree, sev_by_enumeration
from slow_cases import few_or_all, mostly_slow

from fewest.models.trees import Reach, Tree, boxes, collapse

PER_SEED = 260
SEEDS = range(20)


def trees(seed: int, count: int, depth: int = 6, p: int = 4):
    """Trees that decide somebody positive and somebody negative, with the generator they came from."""
    random = np.random.default_rng(seed)
    given = 0
    while given < count:
        schema = random_schema(random, int(random.integers(1, p + 1)))
        tree = collapse(random_tree(random, schema, int(random.integers(1, depth + 1))))
        if tree.n_nodes > 1:
            given += 1
            yield random, tree


def positive_rows(random, tree: Tree, n: int, missing: float = 0.0):
    rows = random_rows(random, tree.schema, n, missing)
    return rows[tree.decide(rows)]


@pytest.mark.parametrize("seed", mostly_slow(SEEDS, (0,)))
def test_sev_t_equals_brute_force(seed: int) -> None:
    compared = 0
    for random, tree in trees(seed, 2 * PER_SEED):
        rows = positive_rows(random, tree, 12, missing=0.1 if seed % 2 else 0.0).iloc[:2]
        if len(rows) == 0 or tree.n_nodes > 90:
            continue
        _, cost = Reach.build(tree).search(tree.encode(rows))
        expected = [sev_by_enumeration(tree, row) for _, row in rows.iterrows()]
        assert cost.tolist() == expected, tree.nested()
        compared += 1
        if compared == PER_SEED:
            break
    assert compared == PER_SEED


def test_the_random_trees_need_several_features() -> None:
    sizes = np.zeros(8, dtype=int)
    for random, tree in trees(0, 2 * PER_SEED):
        rows = positive_rows(random, tree, 6)
        _, cost = Reach.build(tree).search(tree.encode(rows))
        for value in cost[np.isfinite(cost)]:
            sizes[int(value)] += 1
    assert sizes[0] == 0
    assert (sizes[1:4] > 20).all()


def conditions_counted(tree: Tree, row) -> float:
    """The broken twin of the authors' code: every violated condition counts, even two of one feature."""
    own, best = point_of(tree, row), np.inf
    for leaf, path in tree.paths():
        if not tree.positive[leaf]:
            wrong = 0
            for node, left in path:
                stump = Tree.build(tree.schema, _stump(tree, node))
                wrong += decide(stump, own) != left
            best = min(best, wrong)
    return best


def _stump(tree: Tree, node: int):
    from dataclasses import replace

    from fewest.models.trees import Leaf

    return replace(tree.nested(node), left=Leaf(True), right=Leaf(False))


def empty_boxes_offered(tree: Tree, row) -> float:
    """Another broken twin: distinct features are counted, but contradictory paths are taken for leaves."""
    own, best = point_of(tree, row), np.inf
    for leaf, path in tree.paths():
        if not tree.positive[leaf]:
            missed = set()
            for node, left in path:
                if decide(Tree.build(tree.schema, _stump(tree, node)), own) != left:
                    missed.add(int(tree.feature[node]))
            best = min(best, len(missed))
    return best


@pytest.mark.parametrize("twin", [conditions_counted, empty_boxes_offered])
def test_brute_force_catches_a_broken_count(twin) -> None:
    caught = 0
    random = np.random.default_rng(5)
    for _ in range(150):
        schema = random_schema(random, 3)
        whole = random_tree(random, schema, 5)
        rows = random_rows(random, schema, 4)
        rows = rows[whole.decide(rows)]
        caught += any(twin(whole, row) != sev_by_enumeration(whole, row) for _, row in rows.iloc[:2].iterrows())
    assert caught > 5


@pytest.mark.parametrize("count", few_or_all(150, 300))
def test_collapsing_changes_no_decision_and_leaves_nothing_trivial(count: int) -> None:
    random = np.random.default_rng(1)
    for _ in range(count):
        schema = random_schema(random, 3)
        whole = random_tree(random, schema, 6)
        tree = collapse(whole)
        rows = random_rows(random, schema, 50, missing=0.1)
        assert (tree.decide(rows) == whole.decide(rows)).all()
        assert len(list(boxes(tree))) == len(tree.leaves)
        for node in np.flatnonzero(tree.feature >= 0):
            children = [tree.left[node], tree.right[node]]
            if all(tree.feature[child] < 0 for child in children):
                assert tree.positive[children[0]] != tree.positive[children[1]]


@pytest.mark.parametrize("count", few_or_all(150, 400))
@pytest.mark.parametrize("value", ["nearest", "median", "mean"])
def test_the_leaf_is_entered_with_typed_values_inside_its_box(value: str, count: int) -> None:
    entered = 0
    for random, tree in trees(11, count):
        rows = positive_rows(random, tree, 8, missing=0.1)
        typical = np.where(np.random.default_rng(0).random((tree.n_nodes, len(tree.schema))) < 0.8, 3.3, np.nan)
        for j, feature in enumerate(tree.schema.features):
            if not feature.is_numeric:
                typical[:, j] = 0
        reach = Reach.build(tree, typical, value)
        codes = tree.encode(rows)
        leaf, _ = reach.search(codes)
        after, moved, _ = reach.turn(codes, leaf)
        turned = reach.turned(rows, after, moved)
        assert not tree.decide(turned)[leaf >= 0].any()
        assert (tree.apply(tree.encode(turned))[leaf >= 0] == reach.leaf[leaf[leaf >= 0]]).all()
        for feature in tree.schema.features:
            if feature.kind == "integer":
                cells = turned[feature.name].to_numpy(dtype=float)
                assert np.all(np.isnan(cells) | (cells % 1 == 0))
            if feature.kind == "indicators":
                assert (turned[list(feature.columns)].sum(axis=1) == 1).all()
        entered += int((leaf >= 0).sum())
    assert entered > 1.2 * count


@pytest.mark.parametrize("count", few_or_all(120, 300))
def test_all_leaves_at_once_equals_leaf_by_leaf(count: int) -> None:
    """The two compiled searches agree on the cost, and on the leaf down to the last tie; also beyond 64 leaves."""
    large = 0
    for random, tree in [*trees(21, count, depth=9, p=6), *trees(22, 30, depth=14, p=16)]:
        reach = Reach.build(tree)
        if len(reach.leaf) == 0:
            continue
        rows = positive_rows(random, tree, 60, missing=0.05 if random.random() < 0.3 else 0.0)
        if len(rows) == 0:
            continue
        codes = np.asfortranarray(tree.encode(rows))
        fast, fast_cost = reach.search(codes)
        slow, slow_cost = leaf_by_leaf(reach, codes)
        assert fast_cost.tolist() == slow_cost.tolist()
        assert fast.tolist() == slow.tolist()
        large += len(reach.leaf) > 64
    assert large > 3


def leaf_by_leaf(reach: Reach, codes):
    from fewest.models.trees import _kernels

    leaf, cost = np.empty(len(codes), dtype=np.int32), np.empty(len(codes))
    settings = (*reach._scales, reach.weight, *reach._sets)
    _kernels.search_leaf_by_leaf(codes, reach.slots, *settings, 0, len(codes), leaf, cost)
    return leaf, cost


def test_a_row_alone_equals_the_row_in_a_batch_on_any_number_of_threads() -> None:
    for random, tree in trees(31, 40):
        rows = positive_rows(random, tree, 9000)
        reach = Reach.build(tree)
        codes = tree.encode(rows)
        leaf, cost = reach.search(codes, n_jobs=1)
        twice = reach.search(codes, n_jobs=2)
        assert (leaf == twice[0]).all()
        assert (cost == twice[1]).all()
        for k in range(min(5, len(rows))):
            alone = reach.search(codes[k : k + 1])
            assert (alone[0][0], alone[1][0]) == (leaf[k], cost[k])


def test_every_cost_is_that_of_its_leaf() -> None:
    for random, tree in trees(41, 200):
        rows = positive_rows(random, tree, 20)
        reach = Reach.build(tree)
        codes = tree.encode(rows)
        if len(rows) and len(reach.leaf):
            leaf, cost = reach.search(codes)
            table = reach.costs(codes)
            assert (table.min(axis=1) == cost).all()
            found = leaf >= 0
            assert (table[np.flatnonzero(found), leaf[found]] == cost[found]).all()
