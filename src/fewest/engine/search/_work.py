"""Buffers of the compiled searches: allocated once per thread, so that a cube costs no allocation.

The large ones come from ``np.zeros``: pages that are never touched cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fewest.tables.arrays import Bools, Floats, Ints, Ints32

T = TypeVar("T")

MAX_LEAVES = 300_000
MAX_TERMS = 300_000
MAX_MEMBERS = 2_400_000
TABLE = 1 << 20
MAX_STACK = 2_000_000
MAX_STACK_MEMBERS = 8_000_000
MAX_DEPTH = 1024
EXPANSION = 1 << 16
MOST_BITS = 62  # units that are bits of one word, its sign left alone

# Rows of Work.ids (by unit): path of the walk, numbering, hash codes (by unit, by local id), marks of the search, and
# the units by distance per cost.
STATE, FLIPPED_PATH, KEPT_PATH, TRAIL, SEEN, LOCAL, UNIT, CODE, BIT, MARKED, ALIVE, PICKS, NEAR = range(13)
# Rows of Work.per: what a flip alone adds (by unit), distance and cost (by local id); sums over the most helpful units.
SLOPE, DISTANCE, COST, FIRST_GAINS, FIRST_COSTS = range(5)
# Rows of Work.at and Work.sum (by depth).
N_FREE, PLACE, BEGIN, END, CHOSEN = range(5)
CONSTANT, SPENT, FAR = range(3)
# Rows of Work.rank: distance and score of the kept sets; the cost of all of them.
KEPT_FAR, KEPT_SCORE, BEST_COST = range(3)
# Positions in Work.tally: nodes spent, sets kept, acceptable sets met, stamps of the hash table and of the marks, how
# many implications, forbidden and other banned sets concern this cube, the largest degree of a monomial, terms of the
# polynomial; how many nodes may be spent, zero when the time is up (another thread writes it).
NODES, KEPT, MET, STAMP, MARK, N_IMPLIES, N_FORBIDDEN, N_BANNED, DEGREE, N_TERMS, NODE_CAP = range(11)


class Trees(NamedTuple):
    """The arrays of an Ensemble.

    ``link`` holds column, unit tested (-1 for none), left and right child of each node side by side, as a walk needs
    them, and behind these the bytes of its threshold, or of the value of a leaf, which ``number`` shows; ``plain`` says
    that there are neither categories nor missing values, so that comparing with the threshold is all.
    """

    link: Ints32
    number: Floats
    missing_left: Bools
    category: Ints32
    left_levels: Bools
    root: Ints32
    plain: bool
    base: float


class WorkCubes(NamedTuple):
    """The arrays of a Problem. ``cost`` has no rows where units are counted.

    The first ``n_forbidden`` rows of ``banned`` are forbidden in all cubes (with all supersets); the rows from
    ``banned_from[i]`` to ``banned_from[i + 1]`` are the sets rejected in cube i. ``binds`` has no rows where every rule
    binds in every cube, else a column for each implication and each forbidden set.
    """

    start: Floats
    goal: Floats
    goal_of: Ints32
    movable: Bools
    distance: Floats
    cost: Floats
    limit: Floats
    sign: float
    cut: float
    tolerance: float
    implies: Ints32
    binds: Bools
    banned: Bools
    banned_from: Ints
    n_forbidden: int
    all_sets: int
    node_cap: int
    small_trees: bool


class WorkAnswers(NamedTuple):
    """Where the kernels write, one entry per cube. ``todo``: more than one flip; ``retry``: given up as too large.

    ``sets`` has room for the listed sets of one block.
    """

    outcome: npt.NDArray[np.int8]
    moved: Bools
    known: Bools
    cost: Floats
    lower: Floats
    nodes: Ints
    complete: Bools
    todo: Bools
    retry: Bools
    sets: Bools
    n_sets: Ints


class WorkLeaves(NamedTuple):
    """Scratch space of one thread for reducing trees: their leaves, the walk, and subsets while they are expanded.

    ``units`` holds for each leaf the flipped units, then the kept ones; ``span`` where they begin and how many are
    flipped. Where units are few they are the bits of ``bits`` instead, and ``waiting`` takes the place of ``pending``.
    """

    value: Floats
    span: Ints32
    units: Ints32
    pending: Ints32
    grow: Ints
    bits: Ints
    waiting: Ints


class Work(NamedTuple):
    """Scratch space of one thread for the search; few arrays, because compiled calls pass each of them.

    Monomials lie in ``weight``, ``begin`` (compressed rows of ``units``) and ``key``: first those of the cube, then
    the residual ones of each depth. Where units are few, ``two`` has what pairs of them add.
    """

    ids: Ints
    per: Floats
    at: Ints
    sum: Floats
    lin: Floats
    gain: Floats
    order: Ints
    charge: Floats
    pair: Floats
    two: Floats
    weight: Floats
    begin: Ints
    units: Ints32
    key: Ints
    table: Ints
    implies: Ints
    banned: Bools
    kept: Bools
    rank: Floats
    tally: Ints


def by_unit(unit_of: Ints32, n_units: int) -> tuple[Ints, Ints]:
    """The columns, unit by unit and those of no unit last, and where each unit's begin (u + 1,)."""
    columns = np.argsort(np.where(unit_of < 0, n_units, unit_of), kind="stable")
    span = np.searchsorted(unit_of[columns[: int((unit_of >= 0).sum())]], np.arange(n_units + 1))
    return columns.astype(np.int64), span.astype(np.int64)


class WorkPool(Generic[T]):
    """Buffers given back, for the next search: fresh pages cost more than an easy search does."""

    def __init__(self, make: Callable[..., T], most: int = 4) -> None:
        self._make, self._most, self._lock = make, most, Lock()
        self._idle: list[tuple[tuple[int, ...], T]] = []

    @contextmanager
    def borrow(self, *shape: int) -> Iterator[T]:
        """Buffers of this shape; contents are whatever the last search left, in a consistent state."""
        with self._lock:
            places = [place for place, entry in enumerate(self._idle) if entry[0] == shape]
            held = self._idle.pop(places[-1])[1] if places else None
        if held is None:
            held = self._make(*shape)
        yield held
        # Not after an exception: the state is then unknown.
        with self._lock:
            self._idle = [*self._idle[1 - self._most :], (shape, held)]


def make_work(n_units: int, n_implies: int, n_banned: int, keep: int) -> Work:
    """Allocate the search buffers of one thread. The last rows of ``kept``: the candidate, and a set put by."""
    u = n_units + 1
    depth = min(n_units, MAX_DEPTH) + 2
    return Work(
        ids=np.zeros((13, u), dtype=np.int64),
        per=np.zeros((5, u)),
        at=np.zeros((5, depth), dtype=np.int64),
        sum=np.zeros((3, depth)),
        lin=np.zeros((depth, u)),
        gain=np.zeros((depth, u)),
        order=np.zeros((depth, u), dtype=np.int64),
        charge=np.zeros((2, u, depth)),
        pair=np.zeros((u, u)),
        two=np.zeros((u, u) if n_units <= MOST_BITS else (1, 1)),
        weight=np.zeros(MAX_STACK),
        begin=np.zeros(MAX_STACK + 1, dtype=np.int64),
        units=np.zeros(MAX_STACK_MEMBERS, dtype=np.int32),
        key=np.zeros(MAX_STACK, dtype=np.int64),
        table=np.zeros((2, TABLE), dtype=np.int64),
        implies=np.zeros((n_implies + 1, 2), dtype=np.int64),
        banned=np.zeros((n_banned + 1, u), dtype=bool),
        kept=np.zeros((keep + 2, u), dtype=bool),
        rank=np.zeros((3, keep)),
        tally=np.zeros(11, dtype=np.int64),
    )


def make_leaves(deepest: int) -> WorkLeaves:
    """Allocate the reduction buffers of one thread, for trees with at most ``deepest`` splits on a path."""
    return WorkLeaves(
        value=np.zeros(MAX_LEAVES),
        span=np.zeros((2, MAX_LEAVES + 1), dtype=np.int32),
        units=np.zeros(MAX_MEMBERS, dtype=np.int32),
        pending=np.zeros((deepest + 2, 5), dtype=np.int32),
        grow=np.zeros((3, EXPANSION), dtype=np.int64),
        bits=np.zeros((2, MAX_LEAVES), dtype=np.int64),
        waiting=np.zeros((deepest + 2, 3), dtype=np.int64),
    )


works = WorkPool(make_work)
leaf_lists = WorkPool(make_leaves)
