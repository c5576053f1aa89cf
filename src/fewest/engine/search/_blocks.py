"""Entries of the compiled searches: each answers a block of cubes. Costs have their own, compiled only when needed.

``floor`` is a `CompiledFloor`, or None: then the code for it is not compiled at all.
"""

from __future__ import annotations

import math

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.search import _work as w
from fewest.engine.search._branch import load_root
from fewest.engine.search._cube import (
    ALL,
    begin_cube,
    best_single,
    cheap_degree,
    expanded,
    gather,
    localise,
    pairs,
    polynomial,
    search_costs,
    search_sizes,
    small_dense_sets,
    small_sets,
)
from fewest.engine.search._reduce import score_of, singles

_FREE = 2
_EASY, _HARD = 1 << 16, 1 << 22  # this many monomials before merging are expanded without truncation, first and last


@entry
def tree_changes(first, last, trees, cubes, work, changes, constants, bends):  # type: ignore[no-untyped-def]
    """Signed score of each start, and what each unit adds to it when flipped alone."""
    for u in range(cubes.movable.shape[1]):
        work.ids[w.STATE, u] = _FREE
    for i in range(first, last):
        if work.tally[w.NODE_CAP] == 0:
            break
        x, r = cubes.start[i], cubes.goal[cubes.goal_of[i]]
        if trees.plain:
            raw = singles(trees, x, r, cubes.movable[i], cubes.sign, work, changes[i], bends[i], None)
        else:
            raw = singles(trees, x, r, cubes.movable[i], cubes.sign, work, changes[i], bends[i], trees.left_levels)
        constants[i] = cubes.sign * (raw - cubes.cut)


@entry
def small_block(first, last, changes, constants, cubes, work, out):  # type: ignore[no-untyped-def]
    """Answer those of cubes first..last - 1 that need at most one flip; ``out.todo`` marks the others."""
    plain = not (cubes.implies.shape[0] or cubes.banned.shape[0] or cubes.cost.shape[0] or cubes.all_sets)
    for i in range(first, last):
        if work.tally[w.NODE_CAP] == 0:
            break
        if plain and constants[i] >= cubes.tolerance and cubes.limit[i] >= 2.0:
            out.todo[i] = not best_single(i, constants[i], changes[i], cubes, out)
        else:
            loose = begin_cube(i, changes, cubes, work, None)
            out.todo[i] = not small_sets(i, first, constants[i], loose, cubes, work, out)


@entry
def tree_sizes(  # type: ignore[no-untyped-def]
    first, last, changes, constants, bends, trees, cubes, leaves, work, out, floor
):
    """Least number of flips, from two on: take in more of the polynomial until the cube is answered."""
    for i in range(first, last):
        if not out.todo[i]:
            continue
        if work.tally[w.NODE_CAP] == 0:
            out.lower[i] = 2 if floor is None else 1
            continue
        loose = begin_cube(i, changes, cubes, work, floor)
        most_wanted = math.floor(min(cubes.limit[i] + 1e-9, 1e9))
        k, answered = np.int64(2), False
        if floor is not None:
            answered = small_dense_sets(i, first, constants[i], loose, cubes, work, out, floor)
        held, n_leaves, cut = 0, np.int64(-1), True
        if floor is None and cubes.movable.shape[1] <= w.MOST_BITS:
            held = ALL if cubes.small_trees else 3
            n_leaves, cut = gather(i, trees, cubes, held, bends[i], leaves, work)
            if n_leaves >= 0:
                answered, k = pairs(i, first, constants[i], loose, cubes, work, out), np.int64(3)
        for stage in range(0 if cubes.small_trees else 1, 4):
            degree = ALL
            if stage == 1 or stage == 2:
                degree = 3 if stage == 1 else 6
            if answered or degree < k:
                continue
            cap = _EASY if stage == 0 else _HARD
            if degree != held:
                n_leaves, cut = gather(i, trees, cubes, degree, bends[i], leaves, work)
            m, complete = expanded(i, n_leaves, cut, cubes, degree, cap, constants[i], loose, leaves, work)
            if m >= 0:
                last_size = min(most_wanted, degree)
                answered, k = search_sizes(i, first, m, k, last_size, complete, cubes, work, out, floor)
        if not answered:
            out.lower[i] = k
            out.retry[i] = True
        out.nodes[i] = work.tally[w.NODES]


@entry
def tree_costs(  # type: ignore[no-untyped-def]
    first, last, changes, constants, bends, ceiling, trees, cubes, leaves, work, out, floor
):
    """Least cost, by a polynomial that reaches as far as any set that costs at most ``ceiling`` (n,)."""
    for i in range(first, last):
        if not out.todo[i] or work.tally[w.NODE_CAP] == 0:
            continue
        loose = begin_cube(i, changes, cubes, work, floor)
        if floor is not None:
            small_dense_sets(i, first, constants[i], loose, cubes, work, out, floor)
        degree = cheap_degree(i, cubes, ceiling[i])
        m, complete = polynomial(i, trees, cubes, degree, _HARD, constants[i], loose, bends[i], leaves, work)
        if m >= 0:
            search_costs(i, first, m, ceiling[i], complete, loose, cubes, work, out, floor)
        else:
            out.retry[i] = True
        out.nodes[i] = work.tally[w.NODES]


@entry
def additive_sizes(first, last, changes, constants, terms, cubes, work, out, floor):  # type: ignore[no-untyped-def]
    """Least number of flips, from two on, of a polynomial of degree one and, unless None, the ``terms`` above it."""
    for i in range(first, last):
        if out.todo[i] and work.tally[w.NODE_CAP] > 0:
            loose, answered = begin_cube(i, changes, cubes, work, floor), False
            if terms is not None:
                see_terms(i, terms, work)
            if floor is not None:
                answered = small_dense_sets(i, first, constants[i], loose, cubes, work, out, floor)
            if not answered:
                m = localise(i, cubes, loose, work)
                if terms is not None:
                    take_terms(i, terms, work)
                load_root(work, m, constants[i], loose)
                most_wanted = math.floor(min(cubes.limit[i] + 1e-9, 1e9))
                search_sizes(i, first, m, np.int64(2), most_wanted, np.bool_(True), cubes, work, out, floor)
            out.nodes[i] = work.tally[w.NODES]


@entry
def additive_costs(first, last, changes, constants, terms, cubes, work, out, floor):  # type: ignore[no-untyped-def]
    """Least cost of such a polynomial."""
    for i in range(first, last):
        if out.todo[i] and work.tally[w.NODE_CAP] > 0:
            loose = begin_cube(i, changes, cubes, work, floor)
            if terms is not None:
                see_terms(i, terms, work)
            if floor is not None:
                small_dense_sets(i, first, constants[i], loose, cubes, work, out, floor)
            m = localise(i, cubes, loose, work)
            if terms is not None:
                take_terms(i, terms, work)
            load_root(work, m, constants[i], loose)
            search_costs(i, first, m, cubes.limit[i], np.bool_(True), loose, cubes, work, out, floor)
            out.nodes[i] = work.tally[w.NODES]


@inner()
def see_terms(i, terms, work):  # type: ignore[no-untyped-def]
    """Mark the units of the monomials that cube i has: `localise` numbers no others."""
    for t in range(terms.weight.shape[1]):
        if terms.weight[i, t] != 0.0:
            for j in range(terms.begin[t], terms.begin[t + 1]):
                work.ids[w.SEEN, terms.units[j]] = 1


@inner()
def take_terms(i, terms, work):  # type: ignore[no-untyped-def]
    """Load the monomials of cube i; those of units that are not movable there have no weight."""
    n, top = 0, 0
    work.begin[0] = 0
    for t in range(terms.weight.shape[1]):
        if terms.weight[i, t] == 0.0:
            continue
        key = 0
        for j in range(terms.begin[t], terms.begin[t + 1]):
            work.units[top] = work.ids[w.LOCAL, terms.units[j]]
            key ^= work.ids[w.CODE, terms.units[j]]
            top += 1
        work.weight[n], work.key[n] = terms.weight[i, t], key
        n += 1
        work.begin[n] = top
    work.tally[w.N_TERMS] = n


@entry
def greedy(x, r, movable, sign, cut, tolerance, trees, flipped):  # type: ignore[no-untyped-def]
    """Some turned set, by steepest descent and then leaving out what is not needed. Returns whether there is one."""
    score = sign * (score_of(trees, x, r, flipped) - cut)
    while score >= tolerance:
        best, best_score = -1, score
        for u in range(movable.shape[0]):
            if movable[u] and not flipped[u]:
                flipped[u] = True
                trial = sign * (score_of(trees, x, r, flipped) - cut)
                flipped[u] = False
                if trial < best_score:
                    best, best_score = u, trial
        if best < 0:
            return False
        flipped[best] = True
        score = best_score
    for u in range(movable.shape[0]):
        if flipped[u]:
            flipped[u] = False
            if sign * (score_of(trees, x, r, flipped) - cut) >= tolerance:
                flipped[u] = True
    return True
