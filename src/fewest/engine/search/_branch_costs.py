"""Branch and bound where units have costs: first the least cost, then the best-ranked sets that cost as much.

Costs are bounded by a fractional knapsack, rounded up where all costs are multiples of one step. Among sets of equal
cost, how far the rest of that cost must lead at least bounds the distance, again as a fractional knapsack.
"""

from __future__ import annotations

import math

import numpy as np

from fewest.engine.compiled import inner
from fewest.engine.search._branch import CAPPED, DONE
from fewest.engine.search._node import SAME, descend, gains, obey, offer, outranked, sort_free
from fewest.engine.search._work import (
    ALIVE,
    BEGIN,
    BEST_COST,
    CHOSEN,
    CONSTANT,
    COST,
    DISTANCE,
    END,
    FAR,
    FIRST_COSTS,
    FIRST_GAINS,
    KEPT,
    MARK,
    MARKED,
    N_BANNED,
    N_FREE,
    N_IMPLIES,
    NEAR,
    NODES,
    PICKS,
    PLACE,
    SPENT,
)

_PARTS = 10  # the step is the least cost, or a whole part of it down to this one
_MANY = 1e6  # steps in one cost: rounding bounds up to so fine a step gains nothing
_NOISE = 1e-12


@inner()
def step_of(work, m):  # type: ignore[no-untyped-def]
    """A number that all costs are whole multiples of; 0 where none is found."""
    least = np.inf
    for u in range(m):
        least = min(least, work.per[COST, u])
    for parts in range(1, _PARTS + 1):
        whole = m > 0
        for u in range(m):
            count = work.per[COST, u] / least * parts
            whole = whole and count < _MANY and abs(count - math.floor(count + 0.5)) <= _NOISE * count
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
    need, cost = work.sum[CONSTANT, t] - tolerance, 0.0
    for i in range(first, work.at[N_FREE, t]):
        if need <= 0.0:
            break
        u = work.order[t, i]
        gain = -work.gain[t, u]
        if gain <= 0.0:
            break
        if gain >= need:
            return cost + work.per[COST, u] * need / gain
        need -= gain
        cost += work.per[COST, u]
    return cost if need <= 0.0 else np.inf


@inner()
def open_costly(work, t, limit):  # type: ignore[no-untyped-def]
    """Keep the free units of depth t that are affordable, in knapsack order; False closes the node."""
    n, least = 0, np.inf
    for i in range(work.at[N_FREE, t]):
        u = work.order[t, i]
        if work.sum[SPENT, t] + work.per[COST, u] <= limit:
            work.order[t, n] = u
            least = min(least, work.per[COST, u])
            n += 1
    work.at[N_FREE, t] = n
    if n == 0:
        return False
    picks = min(n, math.floor((limit - work.sum[SPENT, t]) / least * (1 + SAME))) if math.isfinite(limit) else n
    gains(work, t, max(picks, 1))
    sort_free(work, t, np.bool_(True))
    return True


@inner()
def narrow(work, t, top, tolerance, step):  # type: ignore[no-untyped-def]
    """Keep the free units of depth t that some turned set of cost ``top`` at most can hold; False closes the node."""
    order, n, helpful = work.order[t], work.at[N_FREE, t], 0
    gained, paid = work.per[FIRST_GAINS], work.per[FIRST_COSTS]
    gained[0], paid[0] = 0.0, 0.0
    while helpful < n and work.gain[t, order[helpful]] < 0.0:
        u = order[helpful]
        gained[helpful + 1], paid[helpful + 1] = gained[helpful] - work.gain[t, u], paid[helpful] + work.per[COST, u]
        helpful += 1
    need = work.sum[CONSTANT, t] - tolerance
    need -= _NOISE * (abs(need) + gained[helpful])
    kept = 0
    for i in range(n):
        u = order[i]
        rest, cost = need + work.gain[t, u], work.sum[SPENT, t] + work.per[COST, u]
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
    work.at[N_FREE, t] = kept
    return kept > 0


@inner()
def order_near(work, m):  # type: ignore[no-untyped-def]
    """The units by distance per cost."""
    for u in range(m):
        value, j = work.per[DISTANCE, u] / work.per[COST, u], u
        while j > 0:
            v = work.ids[NEAR, j - 1]
            if not work.per[DISTANCE, v] / work.per[COST, v] > value:
                break
            work.ids[NEAR, j] = v
            j -= 1
        work.ids[NEAR, j] = u


@inner()
def behind(work, t, m, first, least):  # type: ignore[no-untyped-def]
    """Whether no set of cost ``least`` that adds free units of depth t from ``first`` on can enter the full list."""
    if work.tally[KEPT] < work.rank.shape[1]:
        return False
    work.tally[MARK] += 1
    mark, score, price = work.tally[MARK], work.sum[CONSTANT, t], 0.0
    left = least * (1.0 + 2 * SAME) - work.sum[SPENT, t]
    for i in range(first, work.at[N_FREE, t]):
        u = work.order[t, i]
        work.ids[MARKED, u] = mark
        if left > 0.0:
            price = min(0.0, work.gain[t, u]) / work.per[COST, u]
            score += price * min(work.per[COST, u], left)
            left -= work.per[COST, u]
    price = 0.0 if left > 0.0 else price
    far, left = work.sum[FAR, t], least * (1.0 - 2 * SAME) - work.sum[SPENT, t]
    for i in range(m):
        if left <= 0.0:
            break
        u = work.ids[NEAR, i]
        if work.ids[MARKED, u] == mark:
            far += work.per[DISTANCE, u] * min(1.0, left / work.per[COST, u])
            left -= work.per[COST, u]
    return left > 0.0 or outranked(work, t, m, first, far, score, price)


@inner()
def leave_out(work, t, place, strict):  # type: ignore[no-untyped-def]
    """The unit before ``place`` stays out at depth t: so do those that it could take the place of.

    Only where every set is permitted, each unit adds its own gain, and no more than one set is wanted.
    """
    bound = work.tally[N_IMPLIES] + work.tally[N_BANNED] > 0 or work.at[BEGIN, t] < work.at[END, t]
    if bound or not (strict or work.rank.shape[1] == 1):
        return
    out, n = work.order[t, place - 1], place
    gain, cost, far = work.gain[t, out], work.per[COST, out], work.per[DISTANCE, out]
    for i in range(place, work.at[N_FREE, t]):
        u = work.order[t, i]
        worse = work.gain[t, u] >= gain and work.per[COST, u] >= cost
        if not (worse and (strict or (work.per[DISTANCE, u] >= far and u > out))):
            work.order[t, n] = u
            n += 1
    work.at[N_FREE, t] = n


@inner()
def offer_depth(work, t, m):  # type: ignore[no-untyped-def]
    """Offer the set of depth t; whether it was taken in."""
    met = work.tally[KEPT]
    for j in range(t):
        work.ids[PICKS, j] = work.at[CHOSEN, j]
    offer(work, m, t, work.sum[FAR, t], work.sum[CONSTANT, t], work.sum[SPENT, t])
    return work.tally[KEPT] != met


@inner()
def by_cost(work, m, tolerance, limit, node_cap, loose, step, strict):  # type: ignore[no-untyped-def]
    """Rank the turned sets of least cost, at most ``limit``; the root is loaded. CAPPED: not all were seen.

    With ``strict`` only sets cheaper than the best so far are looked for: the least cost, and one set. Without it,
    ``limit`` is the least cost.
    """
    t, n = np.int64(0), 0
    for u in range(m):  # an earlier pass left some out
        if work.ids[ALIVE, u]:
            work.order[0, n] = u
            n += 1
    work.at[PLACE, 0], work.at[N_FREE, 0] = -1, n
    if not strict:
        order_near(work, m)
    while t >= 0:
        top = limit + (SAME * abs(limit) if math.isfinite(limit) else 0.0)
        if strict and work.tally[KEPT] > 0:
            best = work.rank[BEST_COST, 0]
            top = min(top, best - max(0.5 * step, 2 * SAME * best))
        if work.at[PLACE, t] < 0:
            work.at[PLACE, t] = 0
            if work.tally[NODES] >= node_cap:
                return CAPPED
            work.tally[NODES] += 1
            turned = work.sum[CONSTANT, t] < tolerance and work.sum[SPENT, t] <= top
            # Supersets cost more; they matter only where the set itself may not be permitted.
            if turned and (offer_depth(work, t, m) or not loose):
                t -= 1
                continue
            if not obey(work, t, m) or not open_costly(work, t, top) or not narrow(work, t, top, tolerance, step):
                t -= 1
                continue
            if t + 1 >= work.lin.shape[0]:
                return CAPPED
        i = work.at[PLACE, t]
        work.at[PLACE, t] = i + 1
        if i > 0:
            leave_out(work, t, i, strict)
        if i >= work.at[N_FREE, t]:
            t -= 1
            continue
        bound = round_up(work.sum[SPENT, t] + cheapest_cover(work, t, i, tolerance), step)
        if not bound <= top or (not strict and behind(work, t, m, i, limit)):
            t -= 1
            continue
        if work.sum[SPENT, t] + work.per[COST, work.order[t, i]] > top:
            continue
        if not descend(work, t, i, m):
            return CAPPED
        t += 1
        work.at[PLACE, t] = -1
    return DONE
