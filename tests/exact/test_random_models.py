"""Every structure against brute force on the user's own model: random models, constraints, weights, both directions."""

from __future__ import annotations

import numpy as np
import pytest
import random_models as rm
from slow_cases import mostly_slow

from fewest import checks

SETTINGS = {
    "boolean functions": (rm.boolean_function, 3100),
    "linear": (rm.linear, 400),
    "tree ensembles": (rm.tree_ensemble, 900),
    "networks": (rm.network, 400),
    "hist gradient": (rm.hist_gradient, 120),
    "kernel machines": (rm.kernel_machine, 120),
    "neighbours": (rm.neighbours, 120),
    "calibrated": (rm.calibrated, 60),
    "xgboost": (rm.xgboost, 120),
    "lightgbm": (rm.lightgbm, 120),
}
BLOCKS = 40


@pytest.mark.parametrize("block", mostly_slow(range(BLOCKS), (0,)))
@pytest.mark.parametrize("name", SETTINGS)
def test_the_engine_agrees_with_brute_force(name: str, block: int) -> None:
    if name in ("xgboost", "lightgbm"):
        pytest.importorskip(name)
    make, count = SETTINGS[name]
    queries = 0
    for seed in range(block, count, BLOCKS):
        random = np.random.default_rng([seed, len(name)])
        setting = make(random)
        explainer = rm.random_explainer(random, setting)
        out = explainer.explain(setting.cases, alternatives=200)
        checks.check_turns(out)
        queries += checks.check_exact(explainer, out)
    assert queries >= count // BLOCKS // 2
