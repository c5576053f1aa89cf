"""Positive monomials that pay for negative ones: still a lower bound, and a tighter one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from fewest.engine.search import _work as w
from fewest.engine.search._node import gains
from fewest.engine.search._set_off import set_off


def load(terms, lin, free, exact=True):
    """A polynomial at depth 0 of fresh buffers."""
    units, top = len(lin), 0
    work = w.make_work(units, 0, 0, 1)
    for v in range(units):
        # Without room for bits keys are hashes; that these are all alike is the worst that can be.
        work.ids[w.BIT, v] = 1 << v if exact else 0
    work.ids[w.BIT, units] = exact
    for i, (members, weight) in enumerate(terms.items()):
        for v in members:
            work.units[top] = v
            work.key[i] ^= work.ids[w.BIT, v]
            top += 1
        work.weight[i], work.begin[i + 1] = weight, top
    work.at[w.END, 0], work.at[w.N_FREE, 0] = len(terms), len(free)
    work.order[0, : len(free)] = free
    work.lin[0, :units] = lin
    work.tally[w.DEGREE] = 4
    return work


def random_polynomial(seed, units=7):
    """Monomials with their weights, what single units add, and the free units."""
    rng = np.random.default_rng(seed)
    everything = [m for d in (2, 3, 4) for m in combinations(range(units), d)]
    terms = {m: float(rng.normal()) for m in everything if rng.random() < 0.5}
    return terms, rng.normal(size=units), np.flatnonzero(rng.random(units) < 0.9).tolist()


def bound(work, picks, setting=True):
    """Fill the gains, with what pays for negative weight or without."""
    if setting:
        with np.errstate(over="ignore"):  # hashing
            set_off.py_func(work, 0, picks)
    gains.py_func(work, 0, picks)


def value(work, terms, chosen):
    return work.lin[0, list(chosen)].sum() + sum(v for m, v in terms.items() if set(m) <= set(chosen))


def violations(work, terms, free, picks):
    """How many sets of at most ``picks`` free units the gains promise too much for."""
    sets = [s for k in range(1, picks + 1) for s in combinations(free, k)]
    return sum(work.gain[0, list(s)].sum() > value(work, terms, s) + 1e-9 for s in sets)


def least(work, free, picks):
    return np.sort(work.gain[0, free])[:picks].sum()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("picks", [3, 4, 5])
def test_what_is_left_is_a_lower_bound_of_every_set(picks, exact):
    tighter = 0
    for seed in range(6):
        terms, lin, free = random_polynomial([seed, picks])
        work = load(terms, lin, free, exact)
        bound(work, picks, setting=False)
        plain = least(work, free, picks)
        bound(work, picks)
        assert violations(work, terms, free, picks) == 0
        tighter += least(work, free, picks) > plain + 1e-9
    assert tighter >= 4


def test_a_weight_pays_once():
    terms, free = {(0, 1): 1.0, (0, 1, 2): -1.0, (0, 1, 3): -1.0}, [0, 1, 2, 3]
    work = load(terms, np.zeros(4), free)
    bound(work, 4)
    assert least(work, free, 4) == value(work, terms, free) == -1.0
    # A twin that pays twice with it promises too much, which is seen.
    work.weight[:3] = 0.0
    bound(work, 4)
    assert violations(work, terms, free, 4) == 1
