"""One hypercube from the walk through the trees to the proved answer; compiled, called in blocks.

Degrees are taken in stages: what single flips do answers most cubes, and only those left pay for more of the
polynomial. A truncated polynomial answers for sets up to its degree and no further.
"""

from __future__ import annotations

import math

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search import _work as w
from fewest.engine.search._bits import size_of
from fewest.engine.search._branch import CAPPED, DONE, by_size, floor_of, load_root
from fewest.engine.search._branch_costs import by_cost, step_of
from fewest.engine.search._gaussians import dense, hopeless, lay_out, sort_pairs
from fewest.engine.search._ranks import offer, order_of, too_far
from fewest.engine.search._reduce import collect, expand
from fewest.engine.search._reduce_bits import collect_bits, expand_bits, rank_pairs, sum_pairs

FOUND, NONE = 0, 1
ALL = 1 << 30  # degree of an untruncated polynomial
_FREE = 2


@inner()
def scatter(v):  # type: ignore[no-untyped-def]
    """A fixed pseudo-random 64-bit code (splitmix64)."""
    z = (v + 1) * -7046029254386353131
    z = (z ^ ((z >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    z = (z ^ ((z >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return z ^ ((z >> 31) & 0x1FFFFFFFF)


@inner()
def localise(i, cubes, loose, work):  # type: ignore[no-untyped-def]
    """Number the units that matter (all movable ones when ``loose``), in unit order, and translate the rules.

    Rules that cannot bind here are dropped. Returns the number of units.
    """
    m = 0
    movable = cubes.movable[i]
    for u in range(movable.shape[0]):
        work.ids[w.LOCAL, u] = -1
        if movable[u] and (loose or work.ids[w.SEEN, u]):
            work.ids[w.LOCAL, u] = m
            work.ids[w.UNIT, m] = u
            work.per[w.DISTANCE, m] = cubes.distance[i, u]
            work.per[w.COST, m] = cubes.cost[i, u] if cubes.cost.shape[0] else 1.0
            work.lin[0, m] = work.per[w.SLOPE, u]
            m += 1
    for v in range(m):
        work.ids[w.BIT, v] = (1 << v) if m <= 64 else scatter(v)
        work.ids[w.CODE, work.ids[w.UNIT, v]] = work.ids[w.BIT, v]
    work.ids[w.BIT, movable.shape[0]] = 1 if m <= 64 else 0
    n, n_implies, everywhere = 0, cubes.implies.shape[0], cubes.binds.shape[0] == 0
    for k in range(n_implies):
        a, b = work.ids[w.LOCAL, cubes.implies[k, 0]], work.ids[w.LOCAL, cubes.implies[k, 1]]
        if a >= 0 and b >= 0 and (everywhere or cubes.binds[i, k]):
            work.implies[n, 0], work.implies[n, 1] = a, b
            n += 1
    work.tally[w.N_IMPLIES] = n
    n = 0
    for k in range(cubes.banned.shape[0]):
        if k >= cubes.n_forbidden and not cubes.banned_from[i] <= k < cubes.banned_from[i + 1]:
            continue
        fits = k >= cubes.n_forbidden or everywhere or cubes.binds[i, n_implies + k]
        for v in range(m):
            work.banned[n, v] = False
        for u in range(movable.shape[0]):
            if cubes.banned[k, u]:
                if work.ids[w.LOCAL, u] >= 0:
                    work.banned[n, work.ids[w.LOCAL, u]] = True
                else:
                    fits = False
        if fits:
            n += 1
        if k < cubes.n_forbidden:
            work.tally[w.N_FORBIDDEN] = n
    work.tally[w.N_BANNED] = n
    return m


@inner()
def write_found(i, first, m, cubes, work, out):  # type: ignore[no-untyped-def]
    """Write the best kept set, and the list of sets where one is wanted and they are proved cheapest."""
    out.known[i] = True
    out.cost[i] = work.rank[w.BEST_COST, 0]
    for u in range(out.moved.shape[1]):
        out.moved[i, u] = False
    for v in range(m):
        out.moved[i, work.ids[w.UNIT, v]] = work.kept[0, v]
    if cubes.all_sets == 0 or out.outcome[i] != FOUND:
        return
    n = min(work.tally[w.KEPT], cubes.all_sets)
    for s in range(n):
        row = out.sets[(i - first) * cubes.all_sets + s]
        for u in range(row.shape[0]):
            row[u] = False
        for v in range(m):
            row[work.ids[w.UNIT, v]] = work.kept[s, v]
    out.n_sets[i] = n


@inner()
def settle(i, first, m, seen_all, cubes, work, out):  # type: ignore[no-untyped-def]
    """The least cost is proved: whatever of its sets the search did not see is only a matter of ranking."""
    out.outcome[i] = FOUND
    out.lower[i] = work.rank[w.BEST_COST, 0]
    out.complete[i] = seen_all and work.tally[w.MET] <= max(cubes.all_sets, 1)
    write_found(i, first, m, cubes, work, out)


@inner()
def nothing(i, lower, out):  # type: ignore[no-untyped-def]
    """Proved: no acceptable set within the limit."""
    out.outcome[i] = NONE
    out.lower[i] = lower
    out.complete[i] = True


@inner()
def best_single(i, constant, changes, cubes, out):  # type: ignore[no-untyped-def]
    """The best-ranked single flip that turns the cube; nothing here but comparisons. Returns whether there is one."""
    best, best_far, best_score = -1, 0.0, 0.0
    for u in range(cubes.movable.shape[1]):
        score = constant + changes[u]
        if score < cubes.tolerance and cubes.movable[i, u]:
            far = cubes.distance[i, u]
            order = -1
            if best >= 0:
                order = order_of(far, best_far)
                if order == 0:
                    order = order_of(score, best_score)
            if order < 0:
                best, best_far, best_score = u, far, score
    if best < 0:
        return False
    out.outcome[i], out.lower[i], out.cost[i] = FOUND, 1.0, 1.0
    out.known[i], out.moved[i, best], out.complete[i] = True, True, True
    return True


@inner()
def gather(i, trees, cubes, most, bends, leaves, work):  # type: ignore[no-untyped-def]
    """List the leaves that ``most`` flips reach; with few units, sum up pairs. As `collect` returns."""
    x, r, movable = cubes.start[i], cubes.goal[cubes.goal_of[i]], cubes.movable[i]
    if movable.shape[0] > w.MOST_BITS:
        return collect(trees, x, r, movable, most, bends, leaves, work)
    if trees.plain:
        n_leaves, cut = collect_bits(trees, x, r, movable, most, bends, leaves, work, None)
    else:
        n_leaves, cut = collect_bits(trees, x, r, movable, most, bends, leaves, work, trees.left_levels)
    if n_leaves >= 0:
        sum_pairs(n_leaves, movable.shape[0], cubes.sign, leaves, work)
    return n_leaves, cut


@inner()
def expanded(i, n_leaves, cut, cubes, most, cap, constant, loose, leaves, work):  # type: ignore[no-untyped-def]
    """Expand leaves to degree ``most`` and load the root. Returns (units, or -1 for too large; whether complete)."""
    few = cubes.movable.shape[1] <= w.MOST_BITS
    if n_leaves < 0:
        return np.int64(-1), False
    if most == ALL:
        total = 0
        for leaf in range(n_leaves):
            n_kept = leaves.span[0, leaf + 1] - leaves.span[0, leaf] - leaves.span[1, leaf]
            total += 1 << min(40, size_of(leaves.bits[1, leaf]) if few else n_kept)
        if total > cap:
            return np.int64(-1), False
    m = localise(i, cubes, loose, work)
    if few:
        n_terms, less = expand_bits(n_leaves, m, most, cubes.sign, leaves, work)
    else:
        n_terms, less = expand(n_leaves, m, most, cubes.sign, leaves, work)
    if n_terms < 0:
        return np.int64(-1), False
    load_root(work, m, constant, loose)
    return m, not (cut or less)


@inner()
def polynomial(i, trees, cubes, most, cap, constant, loose, bends, leaves, work):  # type: ignore[no-untyped-def]
    """Reduce, expand to degree ``most`` and load the root; as `expanded` returns."""
    n_leaves, cut = gather(i, trees, cubes, most, bends, leaves, work)
    return expanded(i, n_leaves, cut, cubes, most, cap, constant, loose, leaves, work)


@inner()
def pairs(i, first, constant, loose, cubes, work, out):  # type: ignore[no-untyped-def]
    """Sets of two units, where these are few and the leaves gathered. Returns whether the cube is answered."""
    m = localise(i, cubes, loose, work)
    work.tally[w.NODES] = 1
    rank_pairs(work, m, constant, cubes.tolerance)
    if work.tally[w.KEPT] > 0:
        settle(i, first, m, np.bool_(True), cubes, work, out)
        return True
    if cubes.limit[i] + 1e-9 < 3:
        nothing(i, 3.0, out)
        return True
    return False


@inner()
def cheap_degree(i, cubes, top):  # type: ignore[no-untyped-def]
    """No set that costs at most ``top`` has more units than this."""
    least = np.inf
    for u in range(cubes.movable.shape[1]):
        if cubes.movable[i, u]:
            least = min(least, cubes.cost[i, u])
    return min(math.floor(top / least * (1 + 1e-9)), ALL) if math.isfinite(top) else ALL


@inner()
def search_sizes(i, first, m, k, last, complete, cubes, work, out, floor):  # type: ignore[no-untyped-def]
    """Search sizes k..last of the loaded root. Returns (answered, next size)."""
    n = work.at[w.N_FREE, 0]
    last = min(last, n) if complete else last
    state, begun = DONE, k
    while True:
        # That no set will do is asked first, but triples, after pairs, take no longer than the answer.
        if complete and k == (4 if begun == 3 else begun):
            none = floor_of(work, n) >= cubes.tolerance
            if floor is not None:
                none = none or n == 0 or hopeless(work, np.int64(0), n, False, floor.body, floor.room)
            if none:
                if begun <= 3:  # the bound alone would have settled it
                    work.tally[w.NODES] = 0
                nothing(i, np.inf, out)
                return True, k
        if k > last:
            break
        state = CAPPED
        if k + 2 <= work.lin.shape[0]:
            state = by_size(work, m, k, cubes.tolerance, floor)
        if state == CAPPED or work.tally[w.KEPT] > 0:
            break
        k += 1
    if work.tally[w.KEPT] > 0:
        settle(i, first, m, state == DONE, cubes, work, out)
    elif state == CAPPED:
        out.lower[i] = k
        out.retry[i] = True
    elif complete and k > work.at[w.N_FREE, 0]:
        nothing(i, np.inf, out)
    elif k > cubes.limit[i] + 1e-9:
        nothing(i, float(k), out)
    else:
        return False, k
    return True, k


@inner()
def search_costs(i, first, m, top, complete, loose, cubes, work, out, floor):  # type: ignore[no-untyped-def]
    """Search the loaded root by cost, up to ``top``: the limit, or what a known set costs.

    First for the least cost alone, then for the sets that cost as much: ties do not hold up the proof.
    """
    none = complete and floor_of(work, work.at[w.N_FREE, 0]) >= cubes.tolerance
    if floor is not None:
        none = none or work.at[w.N_FREE, 0] == 0
    if none:
        nothing(i, np.inf, out)
        return
    step = step_of(work, m)
    state = by_cost(work, m, cubes.tolerance, top, loose, step, np.bool_(True), floor)
    if state == CAPPED:
        out.retry[i] = True
        if work.tally[w.KEPT] > 0:
            write_found(i, first, m, cubes, work, out)
    elif work.tally[w.KEPT] > 0:
        least, spent, put_by = work.rank[w.BEST_COST, 0], work.tally[w.NODES], work.rank.shape[1] + 1
        for v in range(m):
            work.kept[put_by, v] = work.kept[0, v]
        work.tally[w.NODES], work.tally[w.KEPT], work.tally[w.MET] = 0, 0, 0
        state = by_cost(work, m, cubes.tolerance, least, loose, step, np.bool_(False), floor)
        work.tally[w.NODES] += spent
        if work.tally[w.KEPT] == 0:
            work.tally[w.KEPT], work.rank[w.BEST_COST, 0] = 1, least
            for v in range(m):
                work.kept[0, v] = work.kept[put_by, v]
        settle(i, first, m, state == DONE, cubes, work, out)
    else:
        nothing(i, cubes.limit[i], out)


@inner()
def begin_cube(i, changes, cubes, work, floor):  # type: ignore[no-untyped-def]
    """Clear what the cube before left behind. Returns whether subsets of acceptable sets may not be acceptable."""
    for u in range(cubes.movable.shape[1]):
        work.per[w.SLOPE, u] = changes[i, u]
        work.ids[w.SEEN, u] = changes[i, u] != 0.0
        work.ids[w.STATE, u] = _FREE
    work.tally[w.NODES], work.tally[w.KEPT], work.tally[w.MET], work.tally[w.N_TERMS] = 0, 0, 0, 0
    work.tally[w.N_IMPLIES], work.tally[w.N_FORBIDDEN], work.tally[w.N_BANNED] = 0, 0, 0
    return floor is not None or cubes.implies.shape[0] > 0 or cubes.banned_from[i + 1] > cubes.banned_from[i]


@inner()
def small_sets(i, first, constant, loose, cubes, work, out):  # type: ignore[no-untyped-def]
    """The empty set and, when units are counted, single ones, with all rules. Returns whether the cube is answered."""
    if cubes.limit[i] < 0:
        nothing(i, 0.0, out)
        return True
    m = localise(i, cubes, loose, work)
    counted = cubes.cost.shape[0] == 0
    for n in range(-1, m if counted and cubes.limit[i] + 1e-9 >= 1 else 0):
        if n >= 0 and work.tally[w.KEPT] > 0 and work.rank[w.BEST_COST, 0] == 0.0:
            break
        score = constant + (work.lin[0, n] if n >= 0 else 0.0)
        if score < cubes.tolerance:
            work.ids[w.PICKS, 0] = n
            offer(work, m, min(n + 1, 1), work.per[w.DISTANCE, n] if n >= 0 else 0.0, score, min(n + 1.0, 1.0))
    if work.tally[w.KEPT] > 0:
        settle(i, first, m, np.bool_(True), cubes, work, out)
        return True
    if counted and cubes.limit[i] + 1e-9 < 2:
        nothing(i, math.floor(cubes.limit[i] + 1e-9) + 1.0, out)
        return True
    return False


@inner()
def small_dense_sets(i, first, constant, loose, cubes, work, out, floor):  # type: ignore[no-untyped-def]
    """The same under a floor, where the empty set does not count. Returns whether the cube is answered."""
    m = localise(i, cubes, loose, work)
    lay_out(i, m, cubes, work, floor.body, floor.room)
    if cubes.cost.shape[0] == 0:
        for u in range(m if cubes.limit[i] + 1e-9 >= 1 else 0):
            score, far = constant + work.lin[0, u], work.per[w.DISTANCE, u]
            # Behind all those that a full list keeps, the density need not be known.
            if score < cubes.tolerance and not too_far(work, far) and dense(0, 1, u, u, floor.body, floor.room):
                work.ids[w.PICKS, 0] = u
                offer(work, m, 1, far, score, 1.0)
        if work.tally[w.KEPT] > 0:
            settle(i, first, m, np.bool_(True), cubes, work, out)
            return True
        if cubes.limit[i] + 1e-9 < 2:
            nothing(i, math.floor(cubes.limit[i] + 1e-9) + 1.0, out)
            return True
    sort_pairs(m, floor.body, floor.room)
    return False
