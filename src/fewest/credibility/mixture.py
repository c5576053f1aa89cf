"""A Gaussian mixture of the accepted cases, regularised so that levels and numbers weigh alike (Section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fewest.credibility.base import Credibility, check_quantile
from fewest.credibility.points import OnPoints, Points, sample
from fewest.decision import Decision
from fewest.engine.search.problem import Mixture
from fewest.errors import DataError, UsageError, check_count, check_number, check_word
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Floats
from fewest.tables.schema import Schema

Covariance = Literal["full", "tied", "diag", "spherical"]

SANE, PAPER = 0.05, 1e-6
MOST_COMPONENTS = 8
CHOOSE_ROWS = 4_000


@dataclass(frozen=True, eq=False)
class GaussianDensity(OnPoints):
    """The mixture on the points of raw rows."""

    mixture: Mixture

    def at(self, points: Floats) -> Floats:
        """Log-density of points (n, e) -> (n,), each by itself."""
        from fewest.credibility._log_densities import log_densities

        return np.asarray(log_densities(np.ascontiguousarray(points), *self.mixture))


def mixture(
    decision: Decision,
    X: Any,
    y: Any,
    *,
    quantile: float = 0.05,
    n_components: int | None = None,
    paper: bool = False,
    covariance: Covariance = "full",
    regularization: float | None = None,
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    random_state: int = 0,
    max_rows: int = 20_000,
) -> Credibility:
    """Density of the accepted cases as a Gaussian mixture.

    Numbers are in standard deviations of the accepted cases, every level is a column of 0 and 1. Such columns have
    singular covariances: a level that a component has never seen has variance zero there, and without regularisation
    a case with that level is some 500,000 nats less likely than its neighbour. The log-likelihoods of -57,437 and
    -124,914 in the paper are of this kind. ``regularization`` is added to every variance. At the default, 0.05, no
    component is narrower than 0.22 standard deviations of a number, and a level that a component has never seen costs
    at most 1 / 0.05 in squared distance for each of the two columns that differ: 20 nats, as much as a number 6.3
    standard deviations away. Rare levels count against a case; none of them alone decides.

    Parameters
    ----------
    decision : Decision
    X : table
        Training rows.
    y : (n,) labels
        Their labels; the rows that do not have the positive label are used. Read as in `references.single`.
    quantile : float
        Quantile of the accepted cases' own log-densities below which nothing counts as credible; 0 sets no floor.
    n_components : int, optional
        Default: the number with the lowest BIC, up to 8, tried on a sample of 4,000 rows.
    paper : bool
        The authors' setting: full covariances, regularisation 1e-6, as many components as there are clusters (which
        you pass). For comparison with published figures only.
    covariance : str
        ``full``, ``tied``, ``diag`` or ``spherical``, as in scikit-learn.
    regularization : float, optional
    schema : Schema, optional
        Default: read off X.
    groups : mapping, optional
        Feature -> columns, for tables that are encoded already.
    random_state : int
    max_rows : int
        More accepted rows than this are sampled for the fit; the floor is always that of all of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 8, 9], "age": [30, 40, 50, 30, 50]}); y = [0, 0, 0, 1, 1]
    >>> dense = mixture(Decision(LogisticRegression().fit(X, y)), X, y, n_components=1, quantile=0.5)
    >>> dense.log_density(X).round(1).tolist()
    [-1.4, -0.7, -1.4, -372.8, -282.4]
    """
    check_quantile(quantile)
    check_count("max_rows", max_rows)
    check_word("covariance", covariance, ("full", "tied", "diag", "spherical"))
    if n_components is not None:
        check_count("n_components", n_components, do=", or None")
    if regularization is not None:
        check_number("regularization", regularization, f"use a number above 0, e.g. {SANE}", above=0)
    if paper and n_components is None:
        raise UsageError("the paper's mixture has as many components as clusters", do="pass n_components")
    if paper and covariance != "full":
        raise UsageError("the paper's mixture has full covariances", do='leave covariance at "full"')
    training = TrainingRows.read(decision, X, y, schema, groups)
    rows = training.accepted
    encoder = Points.fit(training.schema, rows)
    points = encoder.points(rows)
    fitted = sample(points, max_rows, random_state)
    added = regularization if regularization is not None else PAPER if paper else SANE
    count = n_components or _best_count(fitted, covariance, added, random_state)
    if count > len(fitted):
        raise DataError(f"there are {len(fitted)} accepted cases but n_components is {count}", do="use fewer")
    density = GaussianDensity(encoder, as_mixture(_fit(fitted, count, covariance, added, random_state)))
    provenance = {
        "kind": "mixture", "rows": len(rows), "n_components": count, "covariance": covariance,
        "regularization": added, "paper": paper, "random_state": random_state,
    }  # fmt: skip
    return Credibility.calibrate(training.schema, density, density.at(points), quantile, "mixture", provenance)


def _fit(points: Floats, count: int, covariance: str, added: float, random_state: int) -> Any:
    """A fitted scikit-learn mixture."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(count, covariance_type=covariance, reg_covar=added, random_state=random_state)
    with warnings.catch_warnings():
        # A mixture that is still moving is as good a density; duplicate rows make k-means find fewer centres.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(points)


def _best_count(points: Floats, covariance: str, added: float, random_state: int) -> int:
    """Components with the lowest BIC; two rises in a row end the trials."""
    points = sample(points, CHOOSE_ROWS, random_state)
    best, least, rises = 1, np.inf, 0
    for count in range(1, min(MOST_COMPONENTS, len(points)) + 1):
        bic = float(_fit(points, count, covariance, added, random_state).bic(points))
        rises = 0 if bic < least else rises + 1
        if bic < least:
            best, least = count, bic
        if rises == 2:
            break
    return best


def as_mixture(model: Any) -> Mixture:
    """A scikit-learn mixture as arrays of full components."""
    count, width = model.means_.shape
    given = model.precisions_cholesky_
    if model.covariance_type == "full":
        root = given
    elif model.covariance_type == "tied":
        root = np.broadcast_to(given, (count, width, width))
    else:
        root = np.zeros((count, width, width))
        root[:, np.arange(width), np.arange(width)] = given if given.ndim == 2 else given[:, None]
    volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    constant = np.log(model.weights_) + volume - 0.5 * width * np.log(2 * np.pi)
    return Mixture(*(np.ascontiguousarray(part, dtype=np.float64) for part in (constant, model.means_, root)))
