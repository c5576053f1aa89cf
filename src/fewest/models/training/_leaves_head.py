"""The trees of a fitted booster with re-learned leaf values, or with one weight per tree (the paper's way).

Splits stay as they are, so the leaves that a row falls into, as it is and with one feature aligned, never change while
training: they are looked up once, compiled. What is learned is again a sum of trees. A *slot* is a tree together with a
feature it tests; aligning a feature can move a row in the trees of its slots only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.utils import get_tags

from fewest.engine.numba_cache import entry, inner
from fewest.engine.structure.base import Ensemble, Opaque
from fewest.engine.structure.question import Question
from fewest.engine.structure.read import find
from fewest.engine.structure.walk import goes_left
from fewest.errors import ModelError, UsageError, check_word
from fewest.models.training._heads import Blocks, Head, Targets
from fewest.models.training.leaf_sum import Guarded
from fewest.tables.arrays import Floats, Ints

LEARN = ("leaves", "trees")
MAX_KEPT = 400_000_000  # bytes of aligned leaves that are kept; more are looked up batch by batch
BOOSTERS = "GradientBoostingClassifier, HistGradientBoostingClassifier, XGBClassifier or LGBMClassifier"
NO_SLOT = -2  # what no node has


class SlotNodes(NamedTuple):
    """What of an `Ensemble` the walks need, and the numbers given to its leaves.

    Leaves are numbered from 0 in each tree, so that a byte holds most of them; `first` makes them numbers over all.
    """

    column: Any  # (nodes,) int32, as are left, right and category
    threshold: Any  # (nodes,) float64
    left: Any
    right: Any
    missing_left: Any  # (nodes,) bool
    category: Any
    left_levels: Any  # (n_sets, n_levels) bool
    root: Any  # (trees,) int32
    leaf: Any  # (nodes,) int32: number of the leaf within its tree; -1 for a split
    first: Any  # (trees + 1,) int32: how many leaves the trees before have


class TrainingSlots(NamedTuple):
    """Trees with the features they test, numbered tree by tree."""

    of_node: Any  # (nodes,) int32: slot of a split; -1 for leaves, and for splits on columns of no feature
    begin: Any  # (trees + 1,) int32: first slot of each tree, and how many there are
    tree: Any  # (slots,) int64, as is feature
    feature: Any


def tree_of_node(ensemble: Ensemble) -> Ints:
    """Tree of each node: trees lie one after the other."""
    return np.searchsorted(ensemble.root, np.arange(len(ensemble.column)), side="right").astype(np.int64) - 1


def number_leaves(ensemble: Ensemble) -> SlotNodes:
    """An ensemble's nodes, leaves numbered."""
    is_leaf = ensemble.column < 0
    before = np.concatenate([[0], np.cumsum(is_leaf)])
    first = before[np.append(ensemble.root, len(is_leaf))]
    leaf = np.where(is_leaf, before[:-1] - first[tree_of_node(ensemble)], -1)
    return SlotNodes(
        ensemble.column, ensemble.threshold, ensemble.left, ensemble.right, ensemble.missing_left, ensemble.category,
        ensemble.left_levels, ensemble.root, leaf.astype(np.int32), first.astype(np.int32),
    )  # fmt: skip


def find_slots(ensemble: Ensemble, feature_of: Ints) -> TrainingSlots:
    """The features that each tree tests."""
    of_node = np.full(len(ensemble.column), -1, dtype=np.int32)
    tested = np.flatnonzero(ensemble.column >= 0)
    feature = feature_of[ensemble.reading.source[ensemble.column[tested]]]
    tested, feature = tested[feature >= 0], feature[feature >= 0]
    pairs = np.column_stack([tree_of_node(ensemble)[tested], feature])
    slots, which = np.unique(pairs, axis=0, return_inverse=True)
    of_node[tested] = which
    begin = np.searchsorted(slots[:, 0], np.arange(len(ensemble.root) + 1)).astype(np.int32)
    return TrainingSlots(of_node, begin, slots[:, 0].copy(), slots[:, 1].copy())


@inner
def _ways(z, nodes, out):  # type: ignore[no-untyped-def]
    """Whether each split sends a row left."""
    for node in range(len(nodes.column)):
        if nodes.column[node] >= 0:
            out[node] = goes_left(
                z[nodes.column[node]], nodes.threshold[node], nodes.missing_left[node], nodes.category[node],
                nodes.left_levels,
            )  # fmt: skip


@entry
def ways(Z, nodes):  # type: ignore[no-untyped-def]
    """Whether each split sends each row left: (n, nodes)."""
    out = np.zeros((Z.shape[0], len(nodes.column)), dtype=np.bool_)
    for i in range(Z.shape[0]):
        _ways(Z[i], nodes, out[i])
    return out


@inner
def _walk(node, slot, way, goal, nodes, slot_of):  # type: ignore[no-untyped-def]
    """Leaf below a node when the splits of one slot are answered by the goal, all others by the row."""
    while nodes.column[node] >= 0:
        left = goal[node] if slot_of[node] == slot else way[node]
        node = nodes.left[node] if left else nodes.right[node]
    return nodes.leaf[node]


@inner
def _own(way, nodes, out):  # type: ignore[no-untyped-def]
    """Leaf of a row in each tree."""
    for tree in range(len(nodes.root)):
        out[tree] = _walk(nodes.root[tree], NO_SLOT, way, way, nodes, nodes.column)


@inner
def _turned(way, goal, own, nodes, slots, out):  # type: ignore[no-untyped-def]
    """Leaf of a row in each slot, its feature taken from a goal.

    A slot's row leaves its own path at the first of the slot's splits that the goal answers otherwise; only from
    there on it is walked again.
    """
    for tree in range(len(nodes.root)):
        here = own[tree]
        for slot in range(slots.begin[tree], slots.begin[tree + 1]):
            out[slot] = here
        node = nodes.root[tree]
        while nodes.column[node] >= 0:
            slot = slots.of_node[node]
            # A row that is elsewhere than in its own leaf has turned off before, and does not come back.
            if slot >= 0 and goal[node] != way[node] and out[slot] == here:
                out[slot] = _walk(node, slot, way, goal, nodes, slots.of_node)
            node = nodes.left[node] if way[node] else nodes.right[node]


@entry
def own_leaves(Z, nodes):  # type: ignore[no-untyped-def]
    """Leaf of each row in each tree: (n, trees)."""
    way = np.zeros(len(nodes.column), dtype=np.bool_)
    out = np.empty((Z.shape[0], len(nodes.root)), dtype=np.int32)
    for i in range(Z.shape[0]):
        _ways(Z[i], nodes, way)
        _own(way, nodes, out[i])
    return out


@entry
def slot_leaves(Z, candidates, goals, nodes, slots, out):  # type: ignore[no-untyped-def]
    """Leaf of each row in each slot's tree, the slot's feature taken from a reference, into out (n, k, slots).

    Splits are asked once per row and once per reference: goals (m, nodes) are the latter's `ways`.
    """
    way = np.zeros(len(nodes.column), dtype=np.bool_)
    own = np.empty(len(nodes.root), dtype=np.int32)
    for i in range(Z.shape[0]):
        _ways(Z[i], nodes, way)
        _own(way, nodes, own)
        for c in range(candidates.shape[1]):
            _turned(way, goals[candidates[i, c]], own, nodes, slots, out[i, c])


class LeavesHead(Head):
    """Log-odds ``base + the sum over trees of the value of the leaf``, values learned from where the booster left them.

    What is learned are changes: of the leaf values, or of the weights of the trees, and of the base. Weight decay so
    pulls towards the booster, and nothing learned is exactly the booster.
    """

    def __init__(
        self, ensemble: Ensemble, blocks: Blocks, device: str, learn: str = "leaves", dtype: str | None = None
    ) -> None:
        check_word("learn", learn, LEARN)
        if ensemble.reading.source.max(initial=-1) >= len(blocks.feature_of):
            raise UsageError(
                f"the booster takes more columns than the {len(blocks.feature_of)} whose features are known",
                do="fit it on the encoded columns",
            )
        super().__init__(blocks, device)
        self.ensemble, self.learn = ensemble, learn
        self.nodes = number_leaves(ensemble)
        self.slots = find_slots(ensemble, blocks.feature_of)
        self.is_leaf = ensemble.column < 0
        self.tree_of_leaf = tree_of_node(ensemble)[self.is_leaf]
        settings = {"dtype": torch.get_default_dtype() if dtype is None else getattr(torch, dtype), "device": device}
        self._start = torch.as_tensor(ensemble.value[self.is_leaf], **settings)
        self._tree_of_leaf = torch.as_tensor(self.tree_of_leaf, device=device)
        # Which feature a slot belongs to (slots, features), and which ones a tree tests (trees, features), as 0 and 1.
        self._of_slot = torch.as_tensor(np.eye(blocks.count)[self.slots.feature], **settings)
        self._of_tree = torch.zeros((len(ensemble.root), blocks.count), **settings)
        self._of_tree[self.slots.tree, self.slots.feature] = 1.0
        self._slot_of = torch.full((blocks.count, len(ensemble.root)), -1, dtype=torch.int64, device=device)
        self._slot_of[self.slots.feature, self.slots.tree] = torch.arange(len(self.slots.tree), device=device)
        learned = len(ensemble.root) if learn == "trees" else len(self._start)
        self.change = torch.zeros(learned, requires_grad=True, **settings)
        self.shift = torch.zeros((), requires_grad=True, **settings)

    @property
    def parameters(self) -> Sequence[Any]:
        """Changes of leaf values (or of the trees' weights) and of the base."""
        return [self.change, self.shift]

    def rows(self, Z: Floats) -> Any:
        """Number of the leaf each row falls into in each tree (n, trees)."""
        leaves = own_leaves(self.ensemble.reading.prepare(Z), self.nodes)
        leaves += self.nodes.first[:-1]
        return torch.as_tensor(leaves, device=self.device)

    def targets(self, Z: Floats, references: Floats, candidates: Ints) -> LeafTargets:
        return LeafTargets(self, Z, references, candidates)

    def logits(self, rows: Any) -> Any:
        return self._base() + _pick(self._values(), rows).sum(dim=1)

    def aligned(self, rows: Any, targets: Any) -> Any:
        """Log-odds with one feature's slots in the leaves they have when it is aligned: (n, k, features)."""
        values = self._values()
        own = _pick(values, rows)
        # What the trees that test a feature add as they are is taken off, what they add when it is aligned put on.
        rest = (self._base() + own.sum(dim=1))[:, None] - own @ self._of_tree
        return rest[:, None, :] + _pick(values, targets) @ self._of_slot

    def taking(self, rows: Any, targets: Any, feature: Any) -> Any:
        """Leaves of rows, those of the trees that test a feature (n,) as the target's slots (n, slots) have them."""
        slot = self._slot_of[feature]
        return torch.where(slot >= 0, targets.gather(1, slot.clamp(min=0)), rows)

    def penalty(self) -> Any:
        """Squared changes: how far it is from the booster."""
        return (self.change**2).sum()

    def values(self) -> tuple[Floats, float]:
        """What was learned, in double precision: a value per node (those of splits are not used), and the base."""
        change = self.change.detach().cpu().numpy().astype(np.float64)
        value = self.ensemble.value.copy()
        if self.learn == "trees":
            value[self.is_leaf] *= 1.0 + change[self.tree_of_leaf]
        else:
            value[self.is_leaf] += change
        return value, self.ensemble.base + float(self.shift.detach())

    def _values(self) -> Any:
        """Values of the leaves, as they are now."""
        if self.learn == "trees":
            return self._start * (1.0 + self.change.index_select(0, self._tree_of_leaf))
        return self._start + self.change

    def _base(self) -> Any:
        return self.ensemble.base + self.shift


class LeafTargets(Targets):
    """Leaves of rows with one feature aligned, by slot: kept where they fit, else looked up for some rows at a time."""

    def __init__(
        self, head: LeavesHead, Z: Floats, references: Floats, candidates: Ints, max_kept: int = MAX_KEPT
    ) -> None:
        prepare, slots, nodes = head.ensemble.reading.prepare, head.slots, head.nodes
        super().__init__(head.rows(references), torch.as_tensor(candidates, device=head.device))
        self.head = head
        self._goals = ways(prepare(references), nodes)
        self._first = torch.as_tensor(nodes.first[slots.tree], device=head.device)
        small = np.diff(nodes.first).max(initial=0) <= 256
        self._dtype = np.dtype(np.uint8 if small else np.int32)
        self._rows = (prepare(Z), np.ascontiguousarray(candidates))
        self._kept = None
        if candidates.size * len(slots.tree) * self._dtype.itemsize <= max_kept:
            self._kept = self._look_up(*self._rows)
            del self._rows

    def __getitem__(self, numbers: Any) -> Any:
        """Numbers of the leaves (n, k, slots) of some rows, given by their places in the table."""
        if self._kept is not None:
            leaves = self._kept[numbers]
        else:
            places = torch.as_tensor(numbers).cpu().numpy()
            leaves = self._look_up(*(table[places] for table in self._rows))
        return leaves.int() + self._first

    def _look_up(self, Z: Floats, candidates: Ints) -> Any:
        """Leaves of some rows, numbered within their trees."""
        out = np.empty((*candidates.shape, len(self.head.slots.tree)), dtype=self._dtype)
        slot_leaves(Z, candidates, self._goals, self.head.nodes, self.head.slots, out)
        return torch.as_tensor(out, device=self.head.device)


def check_readable(booster: Any, structure: Any) -> Ensemble:
    """The trees of a fitted booster in log-odds, or an error that says which booster to use.

    The trees refuse infinite values, and missing ones where the booster does not take them.
    """
    name, classes = type(booster).__name__, getattr(booster, "classes_", ())
    if len(classes) > 2:
        raise ModelError(f"{name} has {len(classes)} classes", do="fit it on two: the one to explain and the rest")
    if isinstance(structure, Opaque):
        raise ModelError(f"the trees of {name} cannot be read: {structure.reason}", do=f"use {BOOSTERS}")
    found = find(booster, Question())
    if not isinstance(structure, Ensemble) or isinstance(found, Opaque) or structure.reading.several:
        raise ModelError(f"{name} is not a sum of trees", do=f"use {BOOSTERS}")
    if found.link.plain:
        raise ModelError(
            f"{name} adds up probabilities, not log-odds: its leaves cannot be learned here", do=f"use {BOOSTERS}"
        )
    scale = 4.0 * found.link.slope  # a logistic curve rises by a quarter of its scale
    reading, missing = structure.reading, bool(get_tags(booster).input_tags.allow_nan)
    reading = replace(reading, prepare=Guarded(reading.prepare, reading.source, missing))
    return replace(structure, reading=reading, value=scale * structure.value, base=scale * structure.base)


def _pick(values: Any, numbers: Any) -> Any:
    # Twice as fast backwards as indexing.
    return values.index_select(0, numbers.flatten()).view(numbers.shape)
