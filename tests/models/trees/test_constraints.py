"""Constraints hold at the leaves as they do in the engine: against enumeration that asks the constraints themselves."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from random_trees import random_rows, random_schema, random_tree, sev_by_enumeration, values_of
from slow_cases import few_or_all, mostly_slow

import fewest as fw
from fewest import datasets
from fewest.constraints import AtMost, Constraints, Forbidden, Immutable, Linked, OneOf, Only, Range
from fewest.models.trees import Reach, collapse

TREES = 63


def random_constraints(random, schema) -> list:
    out = []
    for feature in schema.features:
        kind = random.choice(["none", "none", "immutable", "only", "range", "one of"])
        if kind == "immutable":
            out.append(Immutable(feature.name))
        if kind == "only" and (feature.is_numeric or feature.ordered or feature.kind == "boolean"):
            out.append(Only(feature.name, str(random.choice(["up", "down"]))))
        if kind == "range" and feature.is_numeric:
            low = float(random.integers(0, 5))
            out.append(Range(feature.name, low, low + float(random.integers(1, 5))))
        if kind == "one of" and not feature.is_numeric:
            out.append(OneOf(feature.name, [level for level in feature.levels if random.random() < 0.6]))
    if len(schema) > 1 and random.random() < 0.5:
        out.append(Forbidden(*random.choice(schema.names, 2, replace=False).tolist()))
    return out


def frame_of(feature, value) -> pd.DataFrame:
    if feature.kind == "indicators":
        return pd.DataFrame({column: [float(column == value)] for column in feature.columns})
    dtype = "boolean" if feature.kind == "boolean" else None
    return pd.DataFrame({feature.columns[0]: pd.Series([value], dtype=dtype)})


def rules_of(tree, items):
    """The constraints as `may` and `ok` of the enumeration."""

    def may(j, old, new) -> bool:
        feature = tree.schema.features[j]
        for item in items:
            if not isinstance(item, Forbidden) and item.name == feature.name:
                mask = item.permits(tree.schema, frame_of(feature, old), frame_of(feature, new))
                if mask is not None and not mask[0]:
                    return False
        return True

    groups = [{tree.schema.index(name) for name in item.names} for item in items if isinstance(item, Forbidden)]
    return may, lambda moved: not any(group <= moved for group in groups)


@pytest.mark.parametrize("seed", mostly_slow(range(16), (0, 1)))
def test_sev_t_under_constraints_equals_brute_force(seed: int) -> None:
    random = np.random.default_rng(seed)
    compared = unreachable = 0
    while compared < TREES:
        schema = random_schema(random, int(random.integers(2, 5)))
        tree = collapse(random_tree(random, schema, 4))
        rows = random_rows(random, schema, 8)
        rows = rows[tree.decide(rows)].iloc[:2]
        if tree.n_nodes == 1 or len(rows) == 0:
            continue
        items = random_constraints(random, schema)
        weight = np.round(random.uniform(0.5, 3, len(schema)), 1) if seed % 2 else None
        may, ok = rules_of(tree, items)
        reach = Reach.build(tree, None, "nearest", Constraints(*items), weight)
        _leaf, cost = reach.search(tree.encode(rows))
        expected = [sev_by_enumeration(tree, row, may, weight, ok, finer) for _, row in rows.iterrows()]
        assert np.allclose(cost, expected), (tree.nested(), items)
        unreachable += int(np.isinf(cost).sum())
        compared += 1
    assert unreachable > 5


def finer(tree, j) -> list:
    """Values that also lie in ranges whose ends no threshold cuts."""
    feature = tree.schema.features[j]
    values = values_of(tree, j)
    if feature.kind == "integer":
        return sorted({*values, *(float(k) for k in range(-1, 11))})
    if feature.kind == "number":
        return sorted({*values, *(k / 4 for k in range(40)), *(k + 1e-7 for k in range(10))})
    return values


@pytest.mark.parametrize("count", few_or_all(100, 200))
def test_the_answer_keeps_the_constraints(count: int) -> None:
    random = np.random.default_rng(9)
    moved_in_all = 0
    for _ in range(count):
        schema = random_schema(random, 4)
        tree = collapse(random_tree(random, schema, 5))
        rows = random_rows(random, schema, 40)
        rows = rows[tree.decide(rows)]
        constraints = Constraints(*(i for i in random_constraints(random, schema) if not isinstance(i, Forbidden)))
        reach = Reach.build(tree, None, "nearest", constraints)
        codes = tree.encode(rows)
        leaf, _ = reach.search(codes)
        after, moved, _ = reach.turn(codes, leaf)
        turned = reach.turned(rows, after, moved)
        if len(constraints) and len(rows):
            assert (constraints.permitted(schema, rows, turned) | ~moved).all()
            moved_in_all += int(moved.sum())
    assert moved_in_all > 1.5 * count


@cache
def german_leaves():
    """A tree of German Credit as a decision, its leaves, and the table."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    german = datasets.load("german")
    text = [c for c in german.X if not pd.api.types.is_numeric_dtype(german.X[c].dtype)]
    encoder = make_column_transformer((OneHotEncoder(), text), remainder="passthrough")
    model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=5, random_state=0)).fit(german.X, german.y)
    decision = fw.Decision(model)
    return decision, fw.references.leaves(decision, german.X, german.y), german.X


def german_explainer(**options):
    decision, leaves, X = german_leaves()
    return fw.Explainer(decision, leaves, **options), X


def test_at_most_is_unreachable_beyond_and_says_how_many_it_takes() -> None:
    plain, X = german_explainer()
    weights = dict.fromkeys(plain.schema.names, 2.0)
    capped, _ = german_explainer(constraints=Constraints(AtMost(1)), weights=weights)
    out = capped.explain(X)
    assert out.counts()["EXPLAINED"] == 0
    assert out.counts()["UNREACHABLE"] == plain.explain(X).counts()["EXPLAINED"]
    first = next(answer for answer in out if answer.status == fw.Status.UNREACHABLE)
    assert first.proof.lower_bound == 2.0
    assert "at least 2" in str(first)


def test_immutable_features_never_move_and_what_is_left_may_be_impossible() -> None:
    _, X = german_explainer()
    held = [fw.Immutable(name) for name in X.columns]
    out = german_explainer(constraints=Constraints(*held))[0].explain(X)
    assert out.counts()["UNREACHABLE"] > 0
    assert out.counts()["EXPLAINED"] == 0
    assert out.answers.proved[out.answers.status == 2].all()
    checking = german_explainer(constraints=Constraints(fw.Immutable("checking_status")))[0].explain(X)
    assert not checking.answers.moved[:, X.columns.get_loc("checking_status")].any()
    assert checking.counts()["EXPLAINED"] > 0


def test_linked_features_are_refused_with_a_reason() -> None:
    with pytest.raises(fw.FewestError, match="Linked cannot be kept with the leaves"):
        german_explainer(constraints=Constraints(Linked("age", "duration_months")))
