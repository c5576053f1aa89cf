"""How many clusters: the number with the best silhouette, or the lowest BIC of round clusters of one width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt
from sklearn.metrics import silhouette_score

from fewest.references.clustering.soft_kmeans import ScoreSoftKMeans, squared_distances
from fewest.tables.arrays import Floats

Select = Literal["silhouette", "bic"]

MOST = 10
SILHOUETTE_ROWS = 2000  # pairwise distances of more rows than this say nothing new


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
