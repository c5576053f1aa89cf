"""The nearest values of a given set of features that turn a case, for additive models: sums along the ways.

Of each way only the steps count that lower the score more than any nearer one. The least largest step is found by
bisection; the least sum below it by trying the quickest feature first, against what the others need at the very least.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewest.engine.numba_cache import entry, inner
from fewest.engine.search._ties import NOISE
from fewest.engine.search.domains._ways import WAYS, Nearest, Ways, far_of
from fewest.tables.arrays import Floats, Ints


class Effects(NamedTuple):
    """What values add to the score."""

    start: Ints  # (p + 1,): First value of each feature
    effect: Floats  # (values,)
    rest: Floats  # (n,): Score of the case without what the features on their way add


class SumRoom(NamedTuple):
    """Room for one case."""

    step: Ints  # (values,): What the steps that count are called by whoever asks, feature by feature
    far: Floats  # (values,)
    fall: Floats  # (values,): What the step adds to the score; less with each
    at: Ints  # (WAYS,): Where the steps of a feature begin; features in the order of ``rate`` later on
    steps: Ints  # (WAYS,): How many there are
    rate: Floats  # (WAYS,): Largest fall for each standard deviation
    feature: Ints  # (WAYS,)
    chosen: Ints  # (WAYS,)
    best: Ints  # (WAYS,)
    need: Floats  # (WAYS + 1,): What is to be lost from this feature on
    spent: Floats  # (WAYS + 1,)


def make_room(m: int) -> SumRoom:
    """Room for cases with this many values."""

    def ints(n: int) -> Ints:
        return np.zeros(n, dtype=np.int64)

    return SumRoom(
        ints(m), np.zeros(m), np.zeros(m), ints(WAYS), ints(WAYS), np.zeros(WAYS), ints(WAYS), ints(WAYS), ints(WAYS),
        np.zeros(WAYS + 1), np.zeros(WAYS + 1),
    )  # fmt: skip


@inner()
def _climb(effects, ways, room, i, f, s):  # type: ignore[no-untyped-def]
    """The steps of a way that count; the first one always does, since every feature of the set changes."""
    first, last = ways.first[i, f], ways.last[i, f]
    begin, n = effects.start[f], effects.start[f]
    for step in range(abs(last - first) + 1):
        effect = effects.effect[first + step if last >= first else first - step]
        if step == 0 or effect < room.fall[n - 1]:
            room.step[n], room.far[n], room.fall[n] = step, far_of(ways, i, f, step), effect
            n += 1
    room.feature[s], room.at[s], room.steps[s] = f, begin, n - begin


@inner()
def _within(room, s, most):  # type: ignore[no-untyped-def]
    """How many steps of a feature are not longer than ``most``."""
    low, high = 0, room.steps[s]
    while low < high:
        middle = (low + high) // 2
        if room.far[room.at[s] + middle] <= most:
            low = middle + 1
        else:
            high = middle
    return low


@inner()
def _does(room, size, most, need):  # type: ignore[no-untyped-def]
    """Whether steps up to ``most`` are enough."""
    total = 0.0
    for s in range(size):
        n = _within(room, s, most)
        if n == 0:
            return False
        total += room.fall[room.at[s] + n - 1]
    return total < need


@inner()
def _least_most(room, size, need):  # type: ignore[no-untyped-def]
    """The least largest step; inf where nothing is enough."""
    best = np.inf
    for s in range(size):
        low, high = 0, room.steps[s]
        while low < high:
            middle = (low + high) // 2
            if _does(room, size, room.far[room.at[s] + middle], need):
                high = middle
            else:
                low = middle + 1
        if low < room.steps[s]:
            best = min(best, room.far[room.at[s] + low])
    return best


@inner()
def rank(room, size):  # type: ignore[no-untyped-def]
    """The quickest features first."""
    for s in range(size):
        first, room.rate[s] = room.at[s], 0.0
        for k in range(1, room.steps[s]):
            fall, far = room.fall[first] - room.fall[first + k], room.far[first + k] - room.far[first]
            room.rate[s] = max(room.rate[s], fall / far)
    for a in range(1, size):
        b = a
        while b > 0 and room.rate[b] > room.rate[b - 1]:
            room.at[b], room.at[b - 1] = room.at[b - 1], room.at[b]
            room.steps[b], room.steps[b - 1] = room.steps[b - 1], room.steps[b]
            room.feature[b], room.feature[b - 1] = room.feature[b - 1], room.feature[b]
            room.rate[b], room.rate[b - 1] = room.rate[b - 1], room.rate[b]
            b -= 1


@inner()
def _at_least(room, first, size, need):  # type: ignore[no-untyped-def]
    """What the features from ``first`` on have to go together at the very least; inf where they cannot."""
    total, left = 0.0, need
    for s in range(first, size):
        total += room.far[room.at[s]]
        left -= room.fall[room.at[s]]
    if left > 0:  # already lost with the first steps: ``need`` is what they may add at most
        return total
    left = -left
    for s in range(first, size):
        most = room.fall[room.at[s]] - room.fall[room.at[s] + room.steps[s] - 1]
        part = min(left, most)
        if part > 0:
            total += part / room.rate[s]
            left -= part
    return total if left <= NOISE * (1 + abs(need)) else np.inf


@inner()
def _last(room, s, need):  # type: ignore[no-untyped-def]
    """The first step of a feature that is enough; their number where none is."""
    low, high = 0, room.steps[s]
    while low < high:
        middle = (low + high) // 2
        if room.fall[room.at[s] + middle] < need:
            high = middle
        else:
            low = middle + 1
    return low


@inner()
def least_sum(room, size, need, best, out, i, nodes):  # type: ignore[no-untyped-def]
    """The least sum of steps below ``best``, the steps in ``room.best``; and False where the budget ran out.

    The features are ranked. Where no sum is less, it is inf.
    """
    found, depth = np.inf, 0
    if _at_least(room, 0, size, need) >= best - NOISE:
        return found, True
    room.need[0], room.spent[0], room.chosen[0] = need, 0.0, room.steps[0]
    while depth >= 0:
        if out.nodes[i] >= nodes:
            return found, False
        out.nodes[i] += 1
        if depth == size - 1:
            k = _last(room, depth, room.need[depth])
            if k < room.steps[depth]:
                total = room.spent[depth] + room.far[room.at[depth] + k]
                if total < best - NOISE:
                    best, found, room.chosen[depth] = total, total, k
                    for s in range(size):
                        room.best[s] = room.chosen[s]
            depth -= 1
            continue
        room.chosen[depth] -= 1
        if room.chosen[depth] < 0:
            depth -= 1
            continue
        at = room.at[depth] + room.chosen[depth]
        room.need[depth + 1] = room.need[depth] - room.fall[at]
        room.spent[depth + 1] = room.spent[depth] + room.far[at]
        if room.spent[depth + 1] + _at_least(room, depth + 1, size, room.need[depth + 1]) < best - NOISE:
            depth += 1
            room.chosen[depth] = room.steps[depth]
    return found, True


@inner()
def _nearest(effects, ways, room, out, i, wall, nodes):  # type: ignore[no-untyped-def]
    """The nearest point of one case."""
    size, need = 0, wall - effects.rest[i]
    for f in range(ways.first.shape[1]):
        if ways.first[i, f] >= 0:
            if size >= WAYS:
                return
            _climb(effects, ways, room, i, f, size)
            size += 1
    most = _least_most(room, size, need) if size > 0 else np.inf
    if most == np.inf:
        return
    for s in range(size):
        room.steps[s] = _within(room, s, most)
    rank(room, size)
    far, whole = least_sum(room, size, need, np.inf, out, i, nodes)
    if not whole or far == np.inf:
        return
    out.found[i] = True
    for s in range(size):
        f, step = room.feature[s], room.step[room.at[s] + room.best[s]]
        out.place[i, f] = ways.first[i, f] + (step if ways.last[i, f] >= ways.first[i, f] else -step)


@entry
def search(effects: Effects, ways: Ways, room: SumRoom, out: Nearest, wall: float, nodes: int) -> None:
    """All cases, one after the other."""
    for i in range(ways.first.shape[0]):
        if not out.found[i]:
            _nearest(effects, ways, room, out, i, wall, nodes)
