"""The trees of a fitted booster with re-learned leaf values, or with one weight per tree (the paper's way).

Splits stay as they are, so the leaves that a row falls into, as it is and with one feature aligned, never change while
training: they are looked up once. What is learned is again a sum of trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fewest.engine.structure.base import Ensemble, Opaque
from fewest.errors import ModelError, UsageError
from fewest.models.training._heads import Blocks, Floats, Ints
from fewest.models.training._settings import find_torch
from fewest.models.training._slots import find_slots, number_leaves, own_leaves, slot_leaves, tree_of_node, ways
from fewest.models.training.leaf_sum import Guarded

LEARN = ("leaves", "trees")
KEPT = 400_000_000  # bytes of aligned leaves that are kept; more are looked up batch by batch
BOOSTERS = "GradientBoostingClassifier, HistGradientBoostingClassifier, XGBClassifier or LGBMClassifier"


class LeavesHead:
    """Log-odds ``base + the sum over trees of the value of the leaf``, values learned from where the booster left them.

    What is learned are changes: of the leaf values, or of the weights of the trees, and of the base. Weight decay so
    pulls towards the booster, and nothing learned is exactly the booster.

    Parameters
    ----------
    ensemble : Ensemble
        Read off a booster of two classes, see `check_readable`.
    blocks : Blocks
        Features of the booster's input columns.
    device : str
    learn : str
        ``leaves`` or ``trees``.
    dtype : str
        Of everything that is learned.

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from fewest.engine.structure import read
    >>> Z, y = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 0.0]]), [0, 0, 1, 1]
    >>> model = GradientBoostingClassifier(n_estimators=3, max_depth=1, random_state=0).fit(Z, y)
    >>> head = LeavesHead(check_readable(model, read(model)), Blocks(np.array([0, 1]), 2), "cpu")
    >>> bool(np.allclose(head.logits(head.rows(Z)).tolist(), model.decision_function(Z)))
    True
    >>> targets = head.targets(Z, Z[:1], np.zeros((4, 1), dtype=np.int64))
    >>> aligned = head.aligned(head.rows(Z[[3]]), targets[[3]])[0, 0].tolist()
    >>> bool(np.allclose(aligned, model.decision_function([[0.0, 0.0], [3.0, 1.0]])))
    True
    """

    def __init__(
        self, ensemble: Ensemble, blocks: Blocks, device: str, learn: str = "leaves", dtype: str | None = None
    ) -> None:
        torch = find_torch()
        if learn not in LEARN:
            raise UsageError(f"learn {learn!r} is unknown", do=f"use one of {', '.join(LEARN)}")
        if ensemble.reading.source.max(initial=-1) >= len(blocks.feature_of):
            raise UsageError(
                f"the booster takes more columns than the {len(blocks.feature_of)} whose features are known",
                do="fit it on the encoded columns",
            )
        self.ensemble, self.blocks, self.device, self.learn = ensemble, blocks, device, learn
        self.nodes = number_leaves(ensemble)
        self.slots = find_slots(ensemble, blocks.feature_of)
        self.is_leaf = ensemble.column < 0
        self.tree_of_leaf = tree_of_node(ensemble)[self.is_leaf]
        settings = {"dtype": torch.get_default_dtype() if dtype is None else getattr(torch, dtype), "device": device}
        self._start = torch.as_tensor(ensemble.value[self.is_leaf], **settings)
        self._tree_of_leaf = torch.as_tensor(self.tree_of_leaf, device=device)
        self._of_slot, self._of_tree = (
            torch.as_tensor(table, **settings) for table in _memberships(self.slots, len(ensemble.root), blocks.count)
        )
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
        return find_torch().as_tensor(leaves, device=self.device)

    def targets(self, Z: Floats, references: Floats, candidates: Ints) -> LeafTargets:
        """Leaves of the rows with one feature aligned."""
        return LeafTargets(self, Z, references, candidates)

    def logits(self, rows: Any) -> Any:
        """Log-odds (n,)."""
        return self._base() + _pick(self._values(), rows).sum(dim=1)

    def aligned(self, rows: Any, targets: Any) -> Any:
        """Log-odds with one feature's slots in the leaves they have when it is aligned: (n, k, features)."""
        values = self._values()
        own = _pick(values, rows)
        # What the trees that test a feature add as they are is taken off, what they add when it is aligned put on.
        rest = (self._base() + own.sum(dim=1))[:, None] - own @ self._of_tree
        return rest[:, None, :] + _pick(values, targets) @ self._of_slot

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


class LeafTargets:
    """Leaves of rows with one feature aligned, by slot: kept where they fit, else looked up for some rows at a time.

    Parameters
    ----------
    head : LeavesHead
    Z : (n, columns)
        Encoded rows.
    references : (m, columns)
        Encoded references.
    candidates : (n, k)
        Numbers of the references that each row is compared with.
    most : int
        Bytes that may be kept.
    """

    def __init__(self, head: LeavesHead, Z: Floats, references: Floats, candidates: Ints, most: int = KEPT) -> None:
        prepare, slots, nodes = head.ensemble.reading.prepare, head.slots, head.nodes
        self.head = head
        self.references = head.rows(references)
        self.candidates = find_torch().as_tensor(candidates, device=head.device)
        self._goals = ways(prepare(references), nodes)
        self._first = find_torch().as_tensor(nodes.first[slots.tree], device=head.device)
        small = np.diff(nodes.first).max(initial=0) <= 256
        self._dtype = np.dtype(np.uint8 if small else np.int32)
        self._rows = (prepare(Z), np.ascontiguousarray(candidates))
        self._kept = None
        if candidates.size * len(slots.tree) * self._dtype.itemsize <= most:
            self._kept = self._look_up(*self._rows)
            del self._rows

    def __getitem__(self, numbers: Any) -> Any:
        """Numbers of the leaves (n, k, slots) of some rows, given by their places in the table."""
        if self._kept is not None:
            leaves = self._kept[numbers]
        else:
            places = find_torch().as_tensor(numbers).cpu().numpy()
            leaves = self._look_up(*(table[places] for table in self._rows))
        return leaves.int() + self._first

    def _look_up(self, Z: Floats, candidates: Ints) -> Any:
        """Leaves of some rows, numbered within their trees."""
        out = np.empty((*candidates.shape, len(self.head.slots.tree)), dtype=self._dtype)
        slot_leaves(Z, candidates, self._goals, self.head.nodes, self.head.slots, out)
        return find_torch().as_tensor(out, device=self.head.device)


def check_readable(booster: Any, structure: Any) -> Ensemble:
    """The trees of a fitted booster in log-odds, or an error that says which booster to use.

    The trees refuse infinite values, and missing ones where the booster does not take them.

    Parameters
    ----------
    booster : fitted classifier
    structure : Structure or Opaque
        What `fewest.engine.structure.read` reported.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from fewest.engine.structure import read
    >>> forest = RandomForestClassifier(2, random_state=0).fit([[0.0], [1.0]], [0, 1])
    >>> check_readable(forest, read(forest))
    Traceback (most recent call last):
    fewest.errors.ModelError: RandomForestClassifier adds up probabilities, not log-odds: its leaves cannot be ...
    """
    from sklearn.utils import get_tags

    from fewest.engine.structure.question import Question
    from fewest.engine.structure.read import find

    name, classes = type(booster).__name__, getattr(booster, "classes_", ())
    if len(classes) > 2:
        raise ModelError(f"{name} has {len(classes)} classes", do="fit it on two: the one to explain and the rest")
    if isinstance(structure, Opaque):
        raise ModelError(f"the trees of {name} cannot be read: {structure.reason}", do=f"use {BOOSTERS}")
    found = find(booster, Question())
    if not isinstance(structure, Ensemble) or isinstance(found, Opaque):
        raise ModelError(f"{name} is not a sum of trees", do=f"use {BOOSTERS}")
    if found.link.plain:
        raise ModelError(
            f"{name} adds up probabilities, not log-odds: its leaves cannot be learned here", do=f"use {BOOSTERS}"
        )
    scale = 4.0 * found.link.slope  # a logistic curve rises by a quarter of its scale
    reading, missing = structure.reading, bool(get_tags(booster).input_tags.allow_nan)
    reading = replace(reading, prepare=Guarded(reading.prepare, reading.source, missing))
    return replace(structure, reading=reading, value=scale * structure.value, base=scale * structure.base)


def _memberships(slots: Any, trees: int, features: int) -> tuple[Floats, Floats]:
    """Which feature a slot belongs to (slots, features), and which ones a tree tests (trees, features), as 0 and 1."""
    of_slot = np.zeros((len(slots.feature), features))
    of_slot[np.arange(len(slots.feature)), slots.feature] = 1.0
    of_tree = np.zeros((trees, features))
    of_tree[slots.tree, slots.feature] = 1.0
    return of_slot, of_tree


def _pick(values: Any, numbers: Any) -> Any:
    # Twice as fast backwards as indexing.
    return values.index_select(0, numbers.flatten()).view(numbers.shape)
