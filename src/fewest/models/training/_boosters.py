"""The booster whose trees are kept: fitted on encoded rows, or taken as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.errors import UsageError
from fewest.models.training._heads import Head


def leaves_head(session: Any, device: str) -> Head:
    """The head over the trees of a session's booster."""
    from fewest.engine.structure.read import read
    from fewest.models.training._leaves_head import LeavesHead, check_readable

    booster = _fitted(session)
    ensemble = check_readable(booster, read(booster))
    return LeavesHead(ensemble, session.blocks, device, learn=session.estimator.learn)


def _fitted(session: Any) -> Any:
    from sklearn.base import clone
    from sklearn.ensemble import GradientBoostingClassifier

    wanted = session.estimator.booster
    if wanted is None:
        wanted = GradientBoostingClassifier(
            n_estimators=200, max_depth=3, random_state=session.estimator.random_state
        )  # the paper's
    if not hasattr(wanted, "fit"):
        raise UsageError(f"booster is a {type(wanted).__name__}", do="pass a booster such as XGBClassifier()")
    # Some boosters want labels of zero and one; the head scores the positive class either way.
    return clone(wanted).fit(session.Z, (session.labels == session.positive).astype(np.int64))
