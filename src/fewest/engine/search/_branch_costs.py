"""Branch and bound where units have costs: first the least cost, then the best-ranked sets that cost as much.

Costs are bounded by a fractional knapsack, rounded up where all costs are multiples of one step. Among sets of equal
cost, how far the rest of that cost must lead at least bounds the distance, again as a fractional knapsack.
"""

from __future__ import annotations

import math

import numpy as np

from fewest.engine.numba_cache import inner
from fewest.engine.search import _work as w
from fewest.engine.search._branch import CAPPED, DONE
from fewest.engine.search._gaussians import carry, dense, hopeless
from fewest.engine.search._node import descend, gains, obey, sort_free
from fewest.engine.search._ranks import offer, outranked
from fewest.engine.search._ties import NOISE, SAME

_PARTS = 10  # the step is the least cost, or a whole part of it down to this one
_MANY = 1e6  # steps in one cost: rounding bounds up to so fine a step gains nothing


@inner()
def step_of(work, m):  # type: ignore[no-untyped-def]
    """A number that all costs are whole multiples of; 0 where none is found."""
    least = np.inf
    for u in range(m):
        least = min(least, work.per[w.COST, u])
    for parts in range(1, _PARTS + 1):
        whole = m > 0
        for u in range(m):
            count = work.per[w.COST, u] / least * parts
            whole = whole and count < _MANY and abs(count - math.floor(count + 0.5)) <= NOISE * count
        if whole:
            return least / parts
    return 0.0


@inner()
def round_up(cost, step):  # type: ignore[no-untyped-def]
    """The least cost of any set that is not below this bound."""
    if step == 0.0 or not math.isfinite(cost):
        return cost
    return math.ceil(cost / step - 1e-6) * step


@inner()
def cheapest_cover(work, t, first, tolerance):  # type: ignore[no-untyped-def]
    """Fractional knapsack: least cost at which the gains from position ``first`` on can cover what is missing."""
    need, cost = work.sum[w.CONSTANT, t] - tolerance, 0.0
    for i in range(first, work.at[w.N_FREE, t]):
        if need <= 0.0:
            break
        u = work.order[t, i]
        gain = -work.gain[t, u]
        if gain <= 0.0:
            break
        if gain >= need:
            return cost + work.per[w.COST, u] * need / gain
        need -= gain
        cost += work.per[w.COST, u]
    return cost if need <= 0.0 else np.inf


@inner()
def affordable(work, t, limit):  # type: ignore[no-untyped-def]
    """How many of the free units of depth t fit under the limit, at most; one at least."""
    n, least = work.at[w.N_FREE, t], np.inf
    for i in range(n):
        least = min(least, work.per[w.COST, work.order[t, i]])
    picks = min(n, math.floor((limit - work.sum[w.SPENT, t]) / least * (1 + SAME))) if math.isfinite(limit) else n
    return max(picks, 1)


@inner()
def open_costly(work, t, limit):  # type: ignore[no-untyped-def]
    """Keep the free units of depth t that are affordable, in knapsack order; False closes the node."""
    n = 0
    for i in range(work.at[w.N_FREE, t]):
        u = work.order[t, i]
        if work.sum[w.SPENT, t] + work.per[w.COST, u] <= limit:
            work.order[t, n] = u
            n += 1
    work.at[w.N_FREE, t] = n
    if n == 0:
        return False
    gains(work, t, affordable(work, t, limit))
    sort_free(work, t, np.bool_(True))
    return True


@inner()
def narrow(work, t, top, tolerance, step):  # type: ignore[no-untyped-def]
    """Keep the free units of depth t that some turned set of cost ``top`` at most can hold; False closes the node."""
    order, n, helpful = work.order[t], work.at[w.N_FREE, t], 0
    gained, paid = work.per[w.FIRST_GAINS], work.per[w.FIRST_COSTS]
    gained[0], paid[0] = 0.0, 0.0
    while helpful < n and work.gain[t, order[helpful]] < 0.0:
        u = order[helpful]
        gained[helpful + 1], paid[helpful + 1] = gained[helpful] - work.gain[t, u], paid[helpful] + work.per[w.COST, u]
        helpful += 1
    need = work.sum[w.CONSTANT, t] - tolerance
    need -= NOISE * (abs(need) + gained[helpful])
    kept = 0
    for i in range(n):
        u = order[i]
        rest, cost = need + work.gain[t, u], work.sum[w.SPENT, t] + work.per[w.COST, u]
        if rest > gained[helpful]:
            continue
        if rest > 0.0:
            low, high = 0, helpful  # gained[low] < rest <= gained[high]
            while high - low > 1:
                middle = (low + high) // 2
                if gained[middle] < rest:
                    low = middle
                else:
                    high = middle
            cost += paid[low] + (paid[high] - paid[low]) * (rest - gained[low]) / (gained[high] - gained[low])
        if round_up(cost, step) <= top:
            order[kept] = u
            kept += 1
    work.at[w.N_FREE, t] = kept
    return kept > 0


@inner()
def order_near(work, m):  # type: ignore[no-untyped-def]
    """The units by distance per cost."""
    for u in range(m):
        value, j = work.per[w.DISTANCE, u] / work.per[w.COST, u], u
        while j > 0:
            v = work.ids[w.NEAR, j - 1]
            if not work.per[w.DISTANCE, v] / work.per[w.COST, v] > value:
                break
            work.ids[w.NEAR, j] = v
            j -= 1
        work.ids[w.NEAR, j] = u


@inner()
def behind(work, t, m, first, least):  # type: ignore[no-untyped-def]
    """Whether no set of cost ``least`` that adds free units of depth t from ``first`` on can enter the full list."""
    if work.tally[w.KEPT] < work.rank.shape[1]:
        return False
    work.tally[w.MARK] += 1
    mark, score, price = work.tally[w.MARK], work.sum[w.CONSTANT, t], 0.0
    left = least * (1.0 + 2 * SAME) - work.sum[w.SPENT, t]
    for i in range(first, work.at[w.N_FREE, t]):
        u = work.order[t, i]
        work.ids[w.MARKED, u] = mark
        if left > 0.0:
            price = min(0.0, work.gain[t, u]) / work.per[w.COST, u]
            score += price * min(work.per[w.COST, u], left)
            left -= work.per[w.COST, u]
    price = 0.0 if left > 0.0 else price
    far, left = work.sum[w.FAR, t], least * (1.0 - 2 * SAME) - work.sum[w.SPENT, t]
    for i in range(m):
        if left <= 0.0:
            break
        u = work.ids[w.NEAR, i]
        if work.ids[w.MARKED, u] == mark:
            far += work.per[w.DISTANCE, u] * min(1.0, left / work.per[w.COST, u])
            left -= work.per[w.COST, u]
    return left > 0.0 or outranked(work, t, m, first, far, score, price)


@inner()
def leave_out(work, t, place, strict):  # type: ignore[no-untyped-def]
    """The unit before ``place`` stays out at depth t: so do those that it could take the place of.

    Only where every set is permitted, each unit adds its own gain, and no more than one set is wanted.
    """
    bound = work.tally[w.N_IMPLIES] + work.tally[w.N_BANNED] > 0 or work.at[w.BEGIN, t] < work.at[w.END, t]
    if bound or not (strict or work.rank.shape[1] == 1):
        return
    out, n = work.order[t, place - 1], place
    gain, cost, far = work.gain[t, out], work.per[w.COST, out], work.per[w.DISTANCE, out]
    for i in range(place, work.at[w.N_FREE, t]):
        u = work.order[t, i]
        worse = work.gain[t, u] >= gain and work.per[w.COST, u] >= cost
        if not (worse and (strict or (work.per[w.DISTANCE, u] >= far and u > out))):
            work.order[t, n] = u
            n += 1
    work.at[w.N_FREE, t] = n


@inner()
def offer_depth(work, t, m):  # type: ignore[no-untyped-def]
    """Offer the set of depth t; whether it was taken in."""
    met = work.tally[w.KEPT]
    for j in range(t):
        work.ids[w.PICKS, j] = work.at[w.CHOSEN, j]
    offer(work, m, t, work.sum[w.FAR, t], work.sum[w.CONSTANT, t], work.sum[w.SPENT, t])
    return work.tally[w.KEPT] != met


@inner()
def by_cost(work, m, tolerance, limit, loose, step, strict, floor):  # type: ignore[no-untyped-def]
    """Rank the turned sets of least cost, at most ``limit``, that are at the floor. CAPPED: not all were seen.

    With ``strict`` only sets cheaper than the best so far are looked for: the least cost, and one set. Without it,
    ``limit`` is the least cost.
    """
    t, n = np.int64(0), 0
    for u in range(m):  # an earlier pass left some out
        if work.ids[w.ALIVE, u]:
            work.order[0, n] = u
            n += 1
    work.at[w.PLACE, 0], work.at[w.N_FREE, 0] = -1, n
    if not strict:
        order_near(work, m)
    while t >= 0:
        top = limit + (SAME * abs(limit) if math.isfinite(limit) else 0.0)
        if strict and work.tally[w.KEPT] > 0:
            best = work.rank[w.BEST_COST, 0]
            top = min(top, best - max(0.5 * step, 2 * SAME * best))
        if work.at[w.PLACE, t] < 0:
            work.at[w.PLACE, t] = 0
            if work.tally[w.NODES] >= work.tally[w.NODE_CAP]:
                return CAPPED
            work.tally[w.NODES] += 1
            turned = work.sum[w.CONSTANT, t] < tolerance and work.sum[w.SPENT, t] <= top
            if floor is not None:
                turned = turned and t > 0 and dense(t, 0, 0, 0, floor.body, floor.room)
            # Supersets cost more; they matter only where the set itself may not be permitted.
            if turned and (offer_depth(work, t, m) or not loose):
                t -= 1
                continue
            opened = obey(work, t, m) and open_costly(work, t, top) and narrow(work, t, top, tolerance, step)
            if floor is not None:
                body, room = floor.body, floor.room
                opened = opened and not hopeless(work, t, affordable(work, t, top), False, body, room)
            if not opened:
                t -= 1
                continue
            if t + 1 >= work.lin.shape[0]:
                return CAPPED
        i = work.at[w.PLACE, t]
        work.at[w.PLACE, t] = i + 1
        if i > 0 and floor is None:
            leave_out(work, t, i, strict)
        if i >= work.at[w.N_FREE, t]:
            t -= 1
            continue
        bound = round_up(work.sum[w.SPENT, t] + cheapest_cover(work, t, i, tolerance), step)
        if not bound <= top or (not strict and behind(work, t, m, i, limit)):
            t -= 1
            continue
        if work.sum[w.SPENT, t] + work.per[w.COST, work.order[t, i]] > top:
            continue
        if not descend(work, t, i, m):
            return CAPPED
        if floor is not None:
            carry(work, t, floor.body, floor.room)
        t += 1
        work.at[w.PLACE, t] = -1
    return DONE
