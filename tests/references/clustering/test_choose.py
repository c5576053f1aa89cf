"""The number of clusters is found where there is one to find."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from fewest.references.clustering import ScoreSoftKMeans, choose


@pytest.mark.parametrize("select", ["silhouette", "bic"])
@pytest.mark.parametrize("count", [2, 4, 6])
def test_separate_groups_are_counted(select: choose.Select, count: int) -> None:
    random = np.random.default_rng(count)
    angle = 2 * np.pi * np.arange(count * 60) / (count * 60)
    ring = np.floor(angle / (2 * np.pi / count)) * (2 * np.pi / count)
    X = 12 * np.column_stack([np.cos(ring), np.sin(ring)]) + random.normal(size=(count * 60, 2))
    fitted = choose.choose_clusters(X, lambda k: ScoreSoftKMeans(k, n_init=10).fit(X), select)
    assert len(fitted.cluster_centers_) == count


def test_rows_without_two_places_are_one_cluster() -> None:
    X = np.zeros((5, 2))
    assert len(choose.choose_clusters(X, lambda k: ScoreSoftKMeans(k).fit(X)).cluster_centers_) == 1


def test_the_silhouette_is_that_of_scikit_learn_and_defined_where_theirs_is_not() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    labels = (X[:, 0] > 0).astype(np.int32)
    assert choose.silhouette(X, labels) == silhouette_score(X, labels)
    assert choose.silhouette(X, np.zeros(50, dtype=np.int32)) == -1
