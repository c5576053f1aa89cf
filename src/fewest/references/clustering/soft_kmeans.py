"""Score-based soft k-means: rows the model refuses spread over the clusters, instead of pulling one of them.

Bezdek's fuzzy c-means with an exponent per row, m'_i = 1 + 2 m max(f(x_i) - 0.5, delta). The paper
(section 4.1 and its appendix on score-based soft k-means) prints a minimum with 0, which never exceeds 1 and
contradicts its text; this is what the text asks for. How many clusters: the number with the best silhouette, or the
lowest BIC of round clusters of one width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics import silhouette_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewest.tables.arrays import Floats

Select = Literal["silhouette", "bic"]

MOST = 10
SILHOUETTE_ROWS = 2000  # pairwise distances of more rows than this say nothing new
WIDE = 8  # with more columns than this, distances inside the iteration are taken from a matrix product


class Clustering(NamedTuple):
    """Where one start of the iteration ended."""

    centres: Floats
    inertia: float
    n_iter: int


@dataclass(eq=False, repr=False)
class ScoreSoftKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Soft k-means in which rows with a high score belong to many clusters and the others nearly to one.

    Minimises the sum over rows i and clusters j of ``u_ij ** m_i * |x_i - v_j| ** 2``, where the memberships of a row
    sum to 1 and ``m_i = 1 + 2 * m * max(score_i - 0.5, delta)``. With equal exponents it is fuzzy c-means.

    Parameters
    ----------
    n_clusters : int
    m : float
        How much softer a row gets with its score; above 0.
    delta : float
        Keeps the rows with a score below 0.5 off exactly hard assignment; above 0.
    n_init : int
        Starts (k-means++); the one with the lowest objective is kept.
    max_iter : int
    tol : float
        Stop when the squared distance the centres move in all is at most this share of the mean variance of X.
    random_state : int, RandomState or None

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features)
    labels_ : (n_samples,) int
        The cluster each row belongs to most.
    inertia_ : float
        The objective.
    n_iter_ : int
        Iterations of the start that was kept.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2], [9.0]])
    >>> hard = ScoreSoftKMeans(n_clusters=2).fit(X)
    >>> soft = ScoreSoftKMeans(n_clusters=2).fit(X, score=[0.1, 0.1, 0.1, 0.1, 0.9])
    >>> sorted(hard.cluster_centers_.ravel().round(1).tolist()), sorted(soft.cluster_centers_.ravel().round(1).tolist())
    ([0.1, 6.4], [0.2, 5.9])
    """

    n_clusters: int = 5
    _: KW_ONLY
    m: float = 2.0
    delta: float = 0.01
    n_init: int = 5
    max_iter: int = 300
    tol: float = 1e-6
    random_state: Any = 0

    def fit(self, X: Any, y: Any = None, score: Any = None) -> ScoreSoftKMeans:
        """Find the centres of rows (n_samples, n_features); ``y`` is ignored.

        ``score`` (n_samples,) is the model's score of each row, with 0.5 where the decision turns. Without it no row is
        softer than another (as if every score were 0.5 or less).
        """
        X = validate_data(self, X, dtype=np.float64)
        self._check(len(X))
        exponent = self._exponents(len(X), score)
        random = check_random_state(self.random_state)
        enough = self.tol * float(np.mean(np.var(X, axis=0)))
        runs = [
            _iterate(X, exponent, _spread_out(X, self.n_clusters, random), self.max_iter, enough)
            for _ in range(self.n_init)
        ]
        best = min(runs, key=lambda run: run.inertia)
        self.cluster_centers_, self.inertia_, self.n_iter_ = best
        self.labels_ = nearest(X, best.centres)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int32]:
        """The cluster each row belongs to most: that of the nearest centre, whatever the row's exponent."""
        check_is_fitted(self)
        return nearest(validate_data(self, X, dtype=np.float64, reset=False), self.cluster_centers_)

    def memberships(self, X: Any, score: Any = None) -> Floats:
        """How much each row belongs to each cluster, (n_samples, n_clusters): rows sum to 1; arguments as in `fit`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        apart = squared_distances(X, self.cluster_centers_)
        return np.asarray(np.exp(log_memberships(apart, self._exponents(len(X), score))).T)

    def _check(self, n_rows: int) -> None:
        for name in ("n_clusters", "n_init", "max_iter"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} == {getattr(self, name)}, must be >= 1")
        if not (self.m > 0 and self.delta > 0):
            raise ValueError(f"m == {self.m} and delta == {self.delta} must both be > 0")
        if n_rows < self.n_clusters:
            raise ValueError(f"n_samples={n_rows} should be >= n_clusters={self.n_clusters}")

    def _exponents(self, n_rows: int, score: Any) -> Floats:
        if score is None:
            return np.full(n_rows, 1.0 + 2.0 * self.m * self.delta)
        scores = np.asarray(score, dtype=np.float64)
        if scores.shape != (n_rows,) or not np.isfinite(scores).all():
            raise ValueError(f"score must be {n_rows} finite numbers, one per row; its shape is {scores.shape}")
        return np.asarray(1.0 + 2.0 * self.m * np.maximum(scores - 0.5, self.delta))


def squared_distances(X: Floats, centres: Floats) -> Floats:
    """Squared distance of each centre to each row, (k, n): one long line per centre is what numpy is fast at.

    Summed column by column: every step is elementwise, so a row gets the same bits alone and in any batch.
    """
    out = np.zeros((len(centres), len(X)))
    for column, goal in zip(X.T, centres.T, strict=True):
        step = column - goal[:, None]
        step *= step
        out += step
    return out


def nearest(X: Floats, centres: Floats) -> npt.NDArray[np.int32]:
    """Nearest centre of each row, the first among equals."""
    return np.asarray(np.argmin(squared_distances(X, centres), axis=0), dtype=np.int32)


def log_memberships(apart: Floats, exponent: Floats) -> Floats:
    """Logarithm of the memberships that minimise the objective for these centres, (k, n).

    ``u_ij`` is proportional to ``d_ij ** (-2 / (m_i - 1))``. With exponents near 1 the powers overflow, their
    logarithms do not. A row that lies on centres belongs to those alone.
    """
    with np.errstate(divide="ignore"):
        weight = np.log(apart)
    touching = np.flatnonzero(apart.min(axis=0) == 0)
    weight[:, touching] = np.where(apart[:, touching] == 0, 0.0, np.inf)
    weight /= 1.0 - exponent
    weight -= weight.max(axis=0)
    return np.asarray(weight - np.log(np.exp(weight).sum(axis=0)))


def _iterate(X: Floats, exponent: Floats, centres: Floats, max_iter: int, enough: float) -> Clustering:
    """Memberships and centres in turn, until the centres stand still."""
    origin = X.mean(axis=0)
    around = X - origin
    sizes = (around**2).sum(axis=1)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        if X.shape[1] > WIDE:
            apart = _rough_distances(around, sizes, centres - origin)
        else:
            apart = squared_distances(X, centres)
        pull = np.exp(exponent * log_memberships(apart, exponent))
        total = pull.sum(axis=1, keepdims=True)
        # A centre that nothing pulls (its rows all lie on other centres) stays where it is.
        moved = np.where(total > 0, (pull @ X) / np.where(total > 0, total, 1.0), centres)
        shift = float(((moved - centres) ** 2).sum())
        centres = moved
        if shift <= enough:
            break
    apart = squared_distances(X, centres)
    return Clustering(centres, float((np.exp(exponent * log_memberships(apart, exponent)) * apart).sum()), n_iter)


def _rough_distances(X: Floats, sizes: Floats, centres: Floats) -> Floats:
    """`squared_distances` by a matrix product: many times faster, exact to rounding of the squared sizes only."""
    apart = sizes - 2.0 * (centres @ X.T) + (centres**2).sum(axis=1)[:, None]
    return np.asarray(np.maximum(apart, 0.0, out=apart))


def _spread_out(X: Floats, n_clusters: int, random: np.random.RandomState) -> Floats:
    """k-means++: each further start is a row drawn with odds that grow with its squared distance to those drawn."""
    chosen = [int(random.randint(len(X)))]
    apart = squared_distances(X, X[chosen])[0]
    for _ in range(1, n_clusters):
        mass = np.cumsum(apart)
        # Where every row lies on a start already, the draw is 0 and the last row is taken.
        row = np.searchsorted(mass, random.uniform() * mass[-1], side="right")
        chosen.append(min(int(row), len(X) - 1))
        np.minimum(apart, squared_distances(X, X[chosen[-1:]])[0], out=apart)
    return np.array(X[chosen])


def choose_clusters(
    X: Floats, fit: Callable[[int], ScoreSoftKMeans], select: Select = "silhouette", most: int = MOST
) -> ScoreSoftKMeans:
    """The fitted clustering with the best number of clusters from 2 to ``most``; the smallest among equals."""
    different = len(np.unique(X, axis=0))
    counts = range(2, min(most, different - 1) + 1)
    if len(counts) == 0:
        return fit(1)
    fitted = [fit(k) for k in counts]
    if select == "bic":
        return fitted[int(np.argmin([bic(X, clustering.cluster_centers_) for clustering in fitted]))]
    return fitted[int(np.argmax([silhouette(X, clustering.labels_) for clustering in fitted]))]


def silhouette(X: Floats, labels: npt.NDArray[np.int32]) -> float:
    """Mean silhouette over evenly spaced rows; -1 where those are all in one cluster."""
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), SILHOUETTE_ROWS)).astype(int))
    found = len(np.unique(labels[rows]))
    return float(silhouette_score(X[rows], labels[rows])) if 1 < found < len(rows) else -1.0


def bic(X: Floats, centres: Floats) -> float:
    """Bayesian information criterion of round Gaussian clusters of one common width, each row in its nearest."""
    (n, d), k = X.shape, len(centres)
    apart = squared_distances(X, centres)
    sizes = np.bincount(np.argmin(apart, axis=0), minlength=k)
    variance = max(float(apart.min(axis=0).sum()) / (d * max(n - k, 1)), np.finfo(float).tiny)
    occupied = sizes[sizes > 0]
    log_likelihood = float((occupied * np.log(occupied / n)).sum()) - n * d / 2 * np.log(2 * np.pi * variance)
    log_likelihood -= d * max(n - k, 1) / 2
    return float((k - 1 + k * d + 1) * np.log(n) - 2 * log_likelihood)
