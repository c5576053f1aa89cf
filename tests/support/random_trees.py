"""Random neutral trees on mixed features, and SEV-T by plain enumeration: slow, independent, right."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pandas as pd

from fewest.models.trees import Leaf, Split, Tree
from fewest.tables.schema import Feature, Schema

WHOLE = range(8)


def random_schema(random: np.random.Generator, p: int) -> Schema:
    """Integers, numbers, categories, ordered categories, booleans and one-hot groups."""
    features, dtypes = [], {}
    for j in range(p):
        kind = random.choice(["integer", "number", "category", "boolean", "indicators", "ordered"])
        name = f"{kind}{j}"
        if kind == "integer":
            features.append(Feature(name, "integer", (name,), scale=2.0, minimum=0, maximum=7))
            dtypes[name] = np.dtype("int64")
        elif kind == "number":
            features.append(Feature(name, "number", (name,), decimals=1, scale=2.0, minimum=0, maximum=7))
            dtypes[name] = np.dtype("float64")
        elif kind == "boolean":
            features.append(Feature(name, "boolean", (name,), levels=(False, True)))
            dtypes[name] = np.dtype("bool")
        elif kind == "indicators":
            columns = tuple(f"{name}_{k}" for k in range(3))
            features.append(Feature(name, "indicators", columns, levels=columns))
            dtypes.update(dict.fromkeys(columns, np.dtype("float64")))
        else:
            levels = tuple("abcd"[: random.integers(2, 5)])
            features.append(Feature(name, "category", (name,), levels=levels, ordered=kind == "ordered"))
            dtypes[name] = np.dtype("object")
    return Schema(tuple(features), dtypes)


def random_tree(random: np.random.Generator, schema: Schema, depth: int) -> Tree:
    """A tree of at most this depth; the same feature comes up again and again, and paths may contradict themselves."""

    def grow(left: int) -> Split | Leaf:
        if left == 0 or random.random() < 0.12:
            return Leaf(bool(random.random() < 0.72), None, int(random.integers(0, 9)), int(random.integers(0, 9)))
        feature = schema.features[random.integers(len(schema))]
        if feature.kind == "integer":
            test: float | frozenset = float(random.choice([random.integers(0, 8), random.integers(0, 8) + 0.5]))
        elif feature.kind == "number":
            test = round(float(random.uniform(0, 7)), int(random.integers(1, 4)))
        else:
            chosen = [level for level in feature.levels if random.random() < 0.5] or [feature.levels[0]]
            test = frozenset(chosen if len(chosen) < len(feature.levels) else chosen[1:])
        flags = bool(random.random() < 0.5), bool(random.random() < 0.5)
        return Split(feature.name, test, grow(left - 1), grow(left - 1), *flags)

    return Tree.build(schema, Split(*_root(random, schema), grow(depth - 1), grow(depth - 1)))


def _root(random: np.random.Generator, schema: Schema) -> tuple[str, float | frozenset]:
    feature = schema.features[random.integers(len(schema))]
    return feature.name, 3.5 if feature.is_numeric else frozenset([feature.levels[0]])


def random_rows(random: np.random.Generator, schema: Schema, n: int, missing: float = 0.0) -> pd.DataFrame:
    """Rows of such a schema, some cells missing where the feature allows it."""
    out: dict[str, object] = {}
    for feature in schema.features:
        if feature.kind == "indicators":
            codes = random.integers(0, 3, n)
            out.update({column: (codes == k).astype(float) for k, column in enumerate(feature.columns)})
        elif feature.kind == "boolean":
            out[feature.name] = random.random(n) < 0.5
        elif feature.is_numeric:
            whole = feature.kind == "integer"
            cells = random.integers(0, 8, n) if whole else np.round(random.uniform(0, 7, n), 1)
            gone = random.random(n) < missing
            out[feature.name] = np.where(gone, np.nan, cells) if gone.any() else cells
        else:
            cells = np.array([feature.levels[k] for k in random.integers(0, len(feature.levels), n)], dtype=object)
            cells[random.random(n) < missing] = None
            out[feature.name] = cells
    return pd.DataFrame(out)


def values_of(tree: Tree, j: int) -> list[object]:
    """Typed values of a feature that together meet every cell its tests cut out, where a typed value exists."""
    feature = tree.schema.features[j]
    if not feature.is_numeric:
        return list(feature.levels)
    cuts = sorted({float(t) for t, f in zip(tree.threshold, tree.feature, strict=True) if f == j})
    if feature.kind == "integer":
        return [float(k) for k in range(int(np.floor(cuts[0])) - 1, int(np.ceil(cuts[-1])) + 2)]
    between = [(a + b) / 2 for a, b in pairwise(cuts)]
    return [cuts[0] - 1, *between, cuts[-1] + 1]


def decide(tree: Tree, point: dict[int, object], node: int = 0) -> bool:
    """Walk one point down by the tests as they are written; independent of the compiled walk."""
    while tree.feature[node] >= 0:
        j = int(tree.feature[node])
        feature, value = tree.schema.features[j], point[j]
        if value is None or value != value:
            left = bool(tree.missing_left[node])
        elif tree.level_set[node] >= 0:
            left = bool(tree.levels_left[tree.level_set[node]][list(feature.levels).index(value)])
        else:
            left = bool(value <= tree.threshold[node])
        node = int(tree.left[node] if left else tree.right[node])
    return bool(tree.positive[node])


def point_of(tree: Tree, row: pd.Series) -> dict[int, object]:
    """A row's values of the tested features."""
    out: dict[int, object] = {}
    for j in tree.used.tolist():
        feature = tree.schema.features[j]
        if feature.kind == "indicators":
            out[j] = next(column for column in feature.columns if row[column] == 1)
        else:
            out[j] = row[feature.columns[0]]
    return out


def sev_by_enumeration(tree: Tree, row: pd.Series, may=None, cost=None, ok=None, values=values_of) -> float:
    """Least cost of changes to typed values that make the tree decide negative; inf where none do.

    ``may(j, old, new)`` says which changes are allowed, ``cost`` (features,) what they cost, ``ok(set)`` which sets may
    change together, ``values(tree, j)`` what a feature may be set to.
    """
    own = point_of(tree, row)
    choices = []
    for j in tree.used.tolist():
        others = [value for value in values(tree, j) if value != own[j]]
        choices.append([own[j]] + [value for value in others if may is None or may(j, own[j], value)])
    best = np.inf
    for point in product(*choices):
        moved = [j for j, value, old in zip(tree.used.tolist(), point, (c[0] for c in choices), strict=True)
                 if value is not old]  # fmt: skip
        price = float(len(moved)) if cost is None else float(sum(cost[j] for j in moved))
        if price >= best or (ok is not None and not ok(frozenset(moved))):
            continue
        if not decide(tree, dict(zip(tree.used.tolist(), point, strict=True))):
            best = price
    return best
