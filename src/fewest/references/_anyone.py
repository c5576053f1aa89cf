"""Whole domains instead of reference points: a feature that changes may take any value that accepted cases have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, UsageError
from fewest.references._round_values import as_frame
from fewest.references.base import References
from fewest.references.domains import Domain, read_domain
from fewest.references.file import Saved
from fewest.references.landing_rows import Landed
from fewest.references.single import centre_of
from fewest.references.spread import Spread
from fewest.references.training_rows import TrainingRows
from fewest.tables.schema import Schema

NAME = "any accepted values"


@dataclass(frozen=True, eq=False, kw_only=True)
class Anyone(References):
    """The values that accepted cases have, feature by feature; the one row of ``frame`` is the typical case.

    Attributes
    ----------
    domains : tuple of Domain
        One for each feature.
    """

    domains: tuple[Domain, ...] = field(repr=False)
    not_kept = "each case has values of its own, which files of references do not hold"

    def saved(self) -> Saved:
        """What run folders and saved explainers hold: the typical case, and the values that each feature may take."""
        made = {**self.provenance, "values": {domain.feature.name: domain.stated() for domain in self.domains}}
        return replace(super().saved(), provenance=made)

    def flexible(self, *_: Any, **__: Any) -> References:
        """Domains are whole already."""
        raise UsageError("references.anyone allows every accepted value already", do="use single or clusters")

    def under(self, decision: Decision) -> Anyone:
        """The same domains for another decision: they are made of labels alone."""
        if decision is self.decision:
            return self
        return replace(self, decision=decision, score=decision.verdicts(self.frame).score)

    def landed(self, rows: pd.DataFrame) -> References:
        """The rows that answers lead to as references, after the typical case, number 0."""
        frame = pd.concat([self.frame, rows], ignore_index=True).astype(dict(self.frame.dtypes)) if len(rows) else (
            self.frame)  # fmt: skip
        n = len(frame)
        return Landed(
            decision=self.decision, schema=self.schema, frame=frame, names=(NAME,) * n,
            support=np.full(n, -1, dtype=np.int64), score=np.full(n, self.score[0]), provenance=self.provenance,
            spread=self.spread, made=self,
        )  # fmt: skip


def anyone(
    decision: Decision,
    X: Any,
    y: Any,
    *,
    within: tuple[float, float] = (0.05, 0.95),
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Anyone:
    """Compare with anyone: each feature that changes may take any value that accepted cases have.

    The fewest features are then the fewest over all values, not towards one reference; among equals the closest values
    are shown. Exact for tree ensembles and additive models; other models are asked themselves, within a budget of rows.

    Parameters
    ----------
    decision : Decision
    X : table
        Training rows.
    y : (n,) labels
        Read as in `single`.
    within : pair of float
        Numbers stay between these quantiles of the accepted cases, on the feature's own grid (whole numbers, or its
        decimals; at most 50,000 values, evenly spread). Categories take the levels that accepted cases have.
    schema, groups : optional
        As in `single`.

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> out = fw.Explainer(decision, fw.references.anyone(decision, X, y, within=(0, 1))).explain(X)
    >>> out[2].sev, str(out[2].changes[0])
    (1, 'debt had been 2 instead of 8')
    """
    low, high = _band(within)
    training = TrainingRows.read(decision, X, y, schema, groups, compare=True)
    schema, rows = training.schema, training.accepted
    typical = as_frame(schema, [centre_of(schema, rows, "median")])
    domains = tuple(read_domain(schema, feature, rows, typical, low, high) for feature in schema.features)
    if not any(len(domain) for domain in domains):
        raise DataError("accepted cases have no value in any feature, so nothing can change", do="check the table")
    return Anyone(
        decision=decision, schema=schema, frame=typical, names=(NAME,), support=np.array([-1]),
        score=decision.verdicts(typical).score, domains=domains, spread=Spread.of(schema, rows),
        provenance={"kind": "anyone", "within": [low, high], "rows": len(rows)},
    )  # fmt: skip


def _band(within: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in within)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0 <= low <= high <= 1:
        raise UsageError(f"within is {within!r}", do="pass two shares of the accepted cases, such as (0.05, 0.95)")
    return low, high
