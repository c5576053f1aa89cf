"""SEV-T of a whole set equals what trying all values of all features gives, tree by tree and row by row."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from slow_cases import mostly_slow

from fewest.datasets import load
from fewest.errors import DataError
from fewest.models.rashomon import RashomonSet, rashomon_set, score_set, topt
from fewest.models.trees import BinaryColumns, guess_thresholds
from fewest.models.trees.reach import Reach
from fewest.tables.schema import Schema

AGES = [10, 25, 35, 45, 60]
RATES = [0.1, 0.4, 0.8]
JOBS = ["clerk", "cook", "none"]
OWNER = [False, True]
MISSING = {"age": np.nan, "rate": np.nan, "job": None}


def grid(missing):
    """All cells of all features; with missing ones where asked."""
    ages, rates, jobs = ([*values, MISSING[name]] if missing else values
                         for name, values in (("age", AGES), ("rate", RATES), ("job", JOBS)))  # fmt: skip
    rows = list(itertools.product(ages, rates, jobs, OWNER))
    frame = pd.DataFrame(rows, columns=["age", "rate", "job", "owner"])
    return frame.astype({"age": float, "rate": float, "owner": bool})


def columns():
    # The test of 41.5 and 41.9 leaves no age in between; all jobs have a test, so that "no job" is no job to move to.
    tests = [
        ("age", 20.5), ("age", 30.5), ("age", 41.5), ("age", 41.9), ("rate", 0.3), ("rate", 0.6), ("job", "clerk"),
        ("job", "cook"), ("job", "none"), ("owner", True),
    ]  # fmt: skip
    schema = Schema.infer(grid(False))
    numbers = [test if isinstance(test, float) else np.nan for _, test in tests]
    levels = tuple(None if isinstance(test, float) else test for _, test in tests)
    feature = np.array([schema.index(name) for name, _ in tests], dtype=np.int32)
    return BinaryColumns(schema, feature, np.array(numbers), levels)


def random_runs(rng, n_columns, depth, above=()):
    """Leaves of a random tree as (needs, forbids, positive), left to right; paths may contradict themselves."""
    taken = {column for column, _ in above}
    if depth == 0 or (above and rng.random() < 0.25):
        needs, forbids = (sum(1 << c for c, goes in above if goes == side) for side in (True, False))
        return [(needs, forbids, bool(rng.random() < 0.55))]
    column = int(rng.choice([c for c in range(n_columns) if c not in taken]))
    return [leaf for goes in (True, False) for leaf in random_runs(rng, n_columns, depth - 1, (*above, (column, goes)))]


def random_set(seed, trees=60):
    rng = np.random.default_rng(seed)
    tests = columns()
    runs = [random_runs(rng, len(tests), int(rng.integers(0, 5))) for _ in range(trees)]
    table = sorted({leaf for run in runs for leaf in run})
    start = np.cumsum([0, *map(len, runs)])
    leaf = np.array([table.index(place) for run in runs for place in run], dtype=np.int32)
    needs, forbids = (np.array([place[k] for place in table], dtype=np.uint64) for k in (0, 1))
    positive = np.array([place[2] for place in table])
    return RashomonSet(tests, start, leaf, needs, forbids, positive, np.ones((len(table), 2), dtype=int), 0.01, 2)


def brute(tree, frame, labels):
    """Accuracy, mean SEV-T, share of ones and rows decided positive, by trying every combination of values."""
    every = grid(True)
    is_typed = {name: every[name].notna().to_numpy() for name in every}
    negative = ~tree.decide(every)
    decided = tree.decide(frame)
    fewest = []
    for _, row in frame[decided].iterrows():
        changes, allowed = np.zeros(len(every), dtype=int), np.ones(len(every), dtype=bool)
        for name in every:
            kept = every[name].isna().to_numpy() if pd.isna(row[name]) else (every[name] == row[name]).to_numpy()
            changes += ~kept
            allowed &= kept | is_typed[name]
        reach = changes[negative & allowed]
        fewest.append(reach.min() if len(reach) else np.nan)
    fewest = np.array(fewest)
    if len(fewest) == 0 or np.isnan(fewest).any():
        return np.mean(decided == labels), np.nan, np.nan, decided.sum()
    return np.mean(decided == labels), fewest.mean(), np.mean(fewest == 1), decided.sum()


def cases(seed, n=60):
    rng = np.random.default_rng(seed)
    frame = grid(True).sample(n, replace=True, random_state=seed, ignore_index=True)
    return frame, rng.random(n) < 0.5


def slow(trees, frame, labels):
    table = [brute(member.tree, frame, labels) for member in trees]
    return pd.DataFrame(table, columns=["accuracy", "mean_sev_t", "share_sev_1", "decided"])


@pytest.mark.parametrize("seed", mostly_slow(range(4), (0,)))
def test_scores_equal_trying_every_value_of_every_feature(seed):
    trees, (frame, labels) = random_set(seed), cases(seed)
    scores = score_set(trees, frame, labels)
    expected = slow(trees, frame, labels)
    for name in expected:
        np.testing.assert_allclose(scores[name].astype(float), expected[name].astype(float), atol=1e-12, err_msg=name)
    assert scores["leaves"].tolist() == [len(member.tree.leaves) for member in trees]


@pytest.mark.parametrize("broken", ["columns instead of features", "empty boxes offered"])
def test_trying_every_value_catches_what_counts_wrongly(broken, monkeypatch):
    honest = topt.cells_of

    def twin(tests):
        cells = honest(tests)
        if broken == "empty boxes offered":
            every = np.arange(1 << len(tests), dtype=np.uint64)
            return cells._replace(cells=np.tile(every, len(cells.mask_of)),
                                  cells_from=np.arange(len(cells.mask_of) + 1) * len(every))  # fmt: skip
        alone = np.uint64(1) << np.arange(len(tests), dtype=np.uint64)
        both = np.column_stack([np.zeros_like(alone), alone]).ravel()
        return topt.TableCells(np.arange(len(tests)), alone, both, 2 * np.arange(len(tests) + 1))

    trees, (frame, labels) = random_set(0), cases(0)
    expected = slow(trees, frame, labels)["mean_sev_t"].to_numpy()
    monkeypatch.setattr(topt, "cells_of", twin)
    found = score_set(trees, frame, labels)["mean_sev_t"].to_numpy()
    assert not np.allclose(found, expected, equal_nan=True)


@pytest.mark.slow
def test_scores_equal_the_sev_t_of_single_trees_on_german():
    german = load("german")
    schema = Schema.infer(german.X)
    frame, y = schema.conform(german.X), german.y == 1
    trees = rashomon_set(guess_thresholds(schema, frame, y), frame, y, regularization=0.01, bound=0.05, max_depth=4)
    scores = score_set(trees, frame, y)
    for member in [*trees][:: len(trees) // 40]:
        codes = member.tree.encode(frame[member.tree.decide(frame)])
        _, cost = Reach.build(member.tree).search(codes)
        expected = cost.mean() if np.isfinite(cost).all() and len(cost) else np.nan
        assert scores["mean_sev_t"][member.index] == pytest.approx(expected, nan_ok=True)
        assert scores["decided"][member.index] == len(cost)


def test_threads_do_not_change_the_scores():
    trees, (frame, labels) = random_set(5, trees=300), cases(5)
    assert score_set(trees, frame, labels, n_jobs=2).equals(score_set(trees, frame, labels))


def test_scores_do_not_depend_on_the_order_of_trees():
    trees, (frame, labels) = random_set(6), cases(6)
    order = np.random.default_rng(0).permutation(len(trees))
    runs = [trees.leaf[trees.start[t] : trees.start[t + 1]] for t in order]
    mixed = replace(trees, start=np.cumsum([0, *map(len, runs)]), leaf=np.concatenate(runs))
    expected = score_set(trees, frame, labels).iloc[order].reset_index(drop=True)
    assert score_set(mixed, frame, labels).equals(expected)


def test_labels_must_fit_the_rows():
    trees, (frame, labels) = random_set(0, trees=2), cases(0)
    with pytest.raises(DataError, match="one label per row"):
        score_set(trees, frame, labels[1:])
